package qp

// Bitmap is a ring of bits by sequence number, for a window that moves and grows.
type Bitmap []uint64

func (b Bitmap) Has(psn uint32) bool {
	return len(b) > 0 && b[psn/64%uint32(len(b))]>>(psn%64)&1 != 0
}

// Cover grows the ring until it holds psn; first is the lowest number still in use.
func (b *Bitmap) Cover(psn, first uint32) {
	for psn-first >= uint32(len(*b))*64-min(64, uint32(len(*b))*64) {
		n := make(Bitmap, max(4, 2*len(*b)))
		for p := first; p < first+uint32(len(*b))*64; p++ {
			if b.Has(p) {
				n[p/64%uint32(len(n))] |= 1 << (p % 64)
			}
		}
		*b = n
	}
}

// Set sets a bit and reports whether it was clear; first is the lowest number still in use.
func (b *Bitmap) Set(psn, first uint32) (fresh bool) {
	b.Cover(psn, first)
	word, bit := &(*b)[psn/64%uint32(len(*b))], uint64(1)<<(psn%64)
	fresh = *word&bit == 0
	*word |= bit
	return fresh
}

func (b Bitmap) Clear(psn uint32) {
	if len(b) > 0 {
		b[psn/64%uint32(len(b))] &^= 1 << (psn % 64)
	}
}

// Take records a received frame and returns the next expected one.
func (b *Bitmap) Take(psn, expected uint32) uint32 {
	if psn != expected {
		b.Set(psn, expected)
		return expected
	}
	for expected++; b.Has(expected); expected++ {
		b.Clear(expected)
	}
	return expected
}

// SACKMap is a sender's scoreboard: which frames of its window have arrived, were lost, or were
// retransmitted.
type SACKMap struct {
	came  Bitmap // selectively acknowledged
	again Bitmap // retransmitted
	next  uint32 // no frame below awaits retransmission
	high  uint32 // frames below are lost unless they have arrived
	there uint32 // bits set in came
	lost  uint32 // lost and not yet retransmitted, except refused
	// trimmed frames that the receiver asked for, in order, from index head on
	refused []uint32
	head    int
}

// Any reports whether frames at or above una may be missing.
func (g *SACKMap) Any(una uint32) bool { return g.high > una || g.head < len(g.refused) }

// Away counts frames of the window that are not in flight: arrived, lost, or asked for.
func (g *SACKMap) Away() uint32 { return g.there + g.lost + uint32(len(g.refused)-g.head) }

// awaits reports whether a frame is lost and not yet retransmitted.
func (g *SACKMap) awaits(psn uint32) bool {
	return g.lost > 0 && psn < g.high && !g.came.Has(psn) && !g.again.Has(psn)
}

// Refuse records that the receiver asks for a frame. It returns false if the frame has arrived.
func (g *SACKMap) Refuse(psn, una uint32) bool {
	if g.came.Cover(psn, una); g.came.Has(psn) {
		return false
	}
	g.refused = append(g.refused, psn)
	return true
}

// skip removes the first of refused.
func (g *SACKMap) skip() {
	if g.head++; g.head == len(g.refused) {
		g.refused, g.head = g.refused[:0], 0
	}
}

// Missing returns the next frame to retransmit: first the frames asked for, then the lost ones in order.
func (g *SACKMap) Missing(una uint32) (uint32, bool) {
	for g.head < len(g.refused) {
		if p := g.refused[g.head]; p >= una && !g.came.Has(p) {
			return p, true
		}
		g.skip()
	}
	g.next = max(g.next, una)
	for ; g.next < g.high; g.next++ {
		if !g.came.Has(g.next) && !g.again.Has(g.next) {
			return g.next, true
		}
	}
	return 0, false
}

// Sent records a retransmission and reports whether the receiver had asked for it.
func (g *SACKMap) Sent(psn, una uint32) bool {
	if g.head < len(g.refused) && g.refused[g.head] == psn {
		g.skip()
		return true
	}
	if g.awaits(psn) {
		g.lost--
	}
	g.again.Set(psn, una)
	return false
}

// Advance drops frames [from, to), which are acknowledged.
func (g *SACKMap) Advance(from, to uint32) {
	if len(g.came) > 0 || len(g.again) > 0 {
		for p := from; p < to; p++ {
			if g.there > 0 && g.came.Has(p) {
				g.there--
			} else if g.awaits(p) {
				g.lost--
			}
			g.came.Clear(p)
			g.again.Clear(p)
		}
	}
}

// Came records a selective acknowledgement; frames more than reorder below it count as lost.
func (g *SACKMap) Came(psn, una, reorder uint32) {
	if g.awaits(psn) {
		g.lost--
	}
	if g.came.Set(psn, una) {
		g.there++
	}
	if psn >= reorder && psn-reorder > g.high {
		for p := max(g.high, una); p < psn-reorder; p++ {
			if !g.came.Has(p) {
				g.lost++
			}
		}
		if g.high = psn - reorder; g.high > una {
			g.again.Cover(g.high, una)
		}
	}
}

// Lost marks all frames of [una, nxt) that have not arrived as lost, after a timeout.
func (g *SACKMap) Lost(una, nxt uint32) {
	clear(g.again)
	g.came.Cover(nxt, una)
	g.again.Cover(nxt, una)
	g.next, g.high, g.lost = una, nxt, nxt-una-min(g.there, nxt-una)
	g.refused, g.head = g.refused[:0], 0
}
