// Package gaps keeps which frames of a window have come, for selective repeat.
//
// In: numbers of frames that came. Out: which are missing. It must not know
// frames, hosts or time.
package gaps

// Bitmap is a ring of bits by frame number, of a window that grows.
type Bitmap []uint64

// Has says that a frame's bit is set.
func (b Bitmap) Has(psn uint32) bool {
	return len(b) > 0 && b[psn/64%uint32(len(b))]>>(psn%64)&1 != 0
}

// Set sets a bit; first is the lowest frame that is still of interest.
func (b *Bitmap) Set(psn, first uint32) {
	for psn-first >= uint32(len(*b))*64-min(64, uint32(len(*b))*64) {
		n := make(Bitmap, max(4, 2*len(*b)))
		for p := first; p < first+uint32(len(*b))*64; p++ {
			if b.Has(p) {
				n[p/64%uint32(len(n))] |= 1 << (p % 64)
			}
		}
		*b = n
	}
	(*b)[psn/64%uint32(len(*b))] |= 1 << (psn % 64)
}

// Clear clears a bit.
func (b Bitmap) Clear(psn uint32) {
	if len(b) > 0 {
		b[psn/64%uint32(len(b))] &^= 1 << (psn % 64)
	}
}

// Take takes note of a frame that came, and returns the first that has not, which was expected.
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

// Gaps is what a sender knows of its window.
type Gaps struct {
	came  Bitmap // frames above the first that the receiver has
	again Bitmap // frames that were sent again
	next  uint32 // no frame below is missing and not sent again
	high  uint32 // frames below this are missing unless they came
}

// Any says that frames at or above una may be missing.
func (g *Gaps) Any(una uint32) bool { return g.high > una }

// Missing returns the next frame to be sent again.
func (g *Gaps) Missing(una uint32) (uint32, bool) {
	g.next = max(g.next, una)
	for ; g.next < g.high; g.next++ {
		if !g.came.Has(g.next) && !g.again.Has(g.next) {
			return g.next, true
		}
	}
	return 0, false
}

// Sent takes note that a frame was sent again.
func (g *Gaps) Sent(psn, una uint32) { g.again.Set(psn, una) }

// Advance clears the bits of frames that no longer matter, so that the rings can
// turn.
func (g *Gaps) Advance(from, to uint32) {
	if len(g.came) > 0 || len(g.again) > 0 {
		for p := from; p < to; p++ {
			g.came.Clear(p)
			g.again.Clear(p)
		}
	}
}

// Came takes note that a frame came out of order; frames that reorder others
// have overtaken count as missing.
func (g *Gaps) Came(psn, una, reorder uint32) {
	g.came.Set(psn, una)
	if psn >= reorder {
		g.high = max(g.high, psn-reorder)
	}
}

// Lost takes all frames from una to nxt that did not come as missing.
func (g *Gaps) Lost(una, nxt uint32) {
	clear(g.again)
	g.next, g.high = una, nxt
}
