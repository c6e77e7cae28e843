package qp

// Bitmap is a ring of bits by frame number, of a window that grows.
type Bitmap []uint64

// Has reports whether a frame's bit is set.
func (b Bitmap) Has(psn uint32) bool {
	return len(b) > 0 && b[psn/64%uint32(len(b))]>>(psn%64)&1 != 0
}

// Cover makes the ring large enough for a frame; first is the lowest that is still of
// interest.
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

// Set sets a bit; first is the lowest frame that is still of interest. It reports whether
// the bit was clear.
func (b *Bitmap) Set(psn, first uint32) (fresh bool) {
	b.Cover(psn, first)
	word, bit := &(*b)[psn/64%uint32(len(*b))], uint64(1)<<(psn%64)
	fresh = *word&bit == 0
	*word |= bit
	return fresh
}

// Clear clears a bit.
func (b Bitmap) Clear(psn uint32) {
	if len(b) > 0 {
		b[psn/64%uint32(len(b))] &^= 1 << (psn % 64)
	}
}

// Take records a frame that came, and returns the first that has not, which was expected.
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

// SACKMap is what a sender knows of its window.
type SACKMap struct {
	came  Bitmap // frames above the first that the receiver has
	again Bitmap // frames that were sent again
	next  uint32 // no frame below is missing and not sent again
	high  uint32 // frames below this are missing unless they came
	there uint32 // how many bits came has
	lost  uint32 // how many frames are missing and were not sent again, but for refused
	// Frames that the receiver has asked for, in this order, from head on.
	refused []uint32
	head    int
}

// Any reports whether frames at or above una may be missing.
func (g *SACKMap) Any(una uint32) bool { return g.high > una || g.head < len(g.refused) }

// Away is how many frames from the first on are not on their way: those that came, those that are lost, and
// those that are asked for.
func (g *SACKMap) Away() uint32 { return g.there + g.lost + uint32(len(g.refused)-g.head) }

// awaits reports whether a frame is one of those that are lost and were not sent again.
func (g *SACKMap) awaits(psn uint32) bool {
	return g.lost > 0 && psn < g.high && !g.came.Has(psn) && !g.again.Has(psn)
}

// Refuse records that the receiver asks for a frame; it reports whether it is missing.
func (g *SACKMap) Refuse(psn, una uint32) bool {
	if g.came.Cover(psn, una); g.came.Has(psn) {
		return false
	}
	g.refused = append(g.refused, psn)
	return true
}

// skip forgets the first frame that the receiver has asked for.
func (g *SACKMap) skip() {
	if g.head++; g.head == len(g.refused) {
		g.refused, g.head = g.refused[:0], 0
	}
}

// Missing returns the next frame to be sent again.
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

// Sent records that a frame was sent again; it reports whether the receiver had asked for it.
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

// Advance clears the bits of frames that no longer matter, so that the rings can
// turn.
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

// Came records that a frame came out of order; frames that reorder others
// have overtaken count as missing.
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

// Lost takes all frames from una to nxt that did not come as missing.
func (g *SACKMap) Lost(una, nxt uint32) {
	clear(g.again)
	g.came.Cover(nxt, una)
	g.again.Cover(nxt, una)
	g.next, g.high, g.lost = una, nxt, nxt-una-min(g.there, nxt-una)
	g.refused, g.head = g.refused[:0], 0
}
