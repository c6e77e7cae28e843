package sym

import "fmt"

// Part is a block's share of a work, alone or together with other blocks that divide it warp by warp.
type Part struct {
	Work     int   // index in Launch.Works
	Elements int64 // of the work, processed by all sharing blocks together
	Blocks   int   // number of blocks that share them
	Offset   int64 // of the first element in the work
}

// Parts returns the shares of a block, in order, as the kernels read them from their arguments
// (device/symmetric/primitives.cuh:51-125).
func (l *Launch) Parts(block int) []Part {
	lo, frac := 0, int64(0)
	if block > 0 {
		before := l.Ranges[block-1]
		if lo, frac = before.Hi, int64(before.Frac)+1; frac == 1<<16 {
			lo, frac = lo+1, 0
		}
	}
	own := l.Ranges[block]
	var out []Part
	for i := lo; i <= own.Hi; i++ {
		w := &l.Works[i]
		p := Part{Work: i, Blocks: 1}
		from, to := int64(0), w.Task.Count
		if w.Blocks > 0 && block >= w.First && block < w.First+w.Blocks && !l.Kernel.LL() {
			from, to = l.shared(i)
			p.Blocks = w.Blocks
		} else {
			if i == lo {
				from = w.at(frac)
			}
			if i == own.Hi {
				to = w.at(int64(own.Frac) + 1)
			}
		}
		if p.Offset, p.Elements = from, to-from; p.Elements > 0 {
			out = append(out, p)
		}
	}
	return out
}

// shared returns the range of a work that the blocks which share it process together.
func (l *Launch) shared(i int) (from, to int64) {
	w := &l.Works[i]
	if w.First > 0 && l.Ranges[w.First-1].Hi == i {
		from = w.at((int64(l.Ranges[w.First-1].Frac) + 1) & 0xffff)
	}
	to = w.Task.Count
	if last := l.Ranges[w.First+w.Blocks-1]; last.Hi == i {
		to = w.at(int64(last.Frac) + 1)
	}
	return from, to
}

// at returns the element at frac 65,536ths of a work, rounded down to whole cells.
func (w *Work) at(frac int64) int64 {
	cell := CellSize / int64(w.Task.Type.Size())
	return min(w.Task.Count, frac*divUp(w.Task.Count, cell)>>16*cell)
}

// CoverError reports an element that a launch omits or processes twice: a defect of the distribution.
type CoverError struct {
	Work    int
	Element int64
}

func (e *CoverError) Error() string {
	return fmt.Sprintf("symmetric kernel: element %d of work %d is not done exactly once", e.Element, e.Work)
}

// Check proves that the blocks process each element of each work exactly once. Errors: a *CoverError.
func (l *Launch) Check() error {
	next := make([]int64, len(l.Works))
	for b := range l.Channels {
		for _, p := range l.Parts(b) {
			if p.Offset == next[p.Work] {
				next[p.Work] += p.Elements
			} else if p.Blocks == 1 || p.Offset+p.Elements != next[p.Work] { // another block shares it
				return &CoverError{p.Work, p.Offset}
			}
		}
	}
	for w, n := range next {
		if n != l.Works[w].Task.Count {
			return &CoverError{w, n}
		}
	}
	return nil
}
