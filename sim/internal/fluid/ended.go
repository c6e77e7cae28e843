package fluid

import (
	"cmp"
	"slices"

	"github.com/simccl/simccl/sim/wire"
)

// ended is a completed flow as a sort key. left is its work left at the time of Advance, zero or less: the
// flow that ended first has the most negative one.
type ended struct {
	own  int32
	id   wire.FlowID
	left wire.Work
	seq  int64
}

func (a ended) compare(b ended) int {
	return cmp.Or(cmp.Compare(a.own, b.own), cmp.Compare(a.left, b.left), cmp.Compare(a.seq, b.seq))
}

// manyEnded is the number of flows from which on sorting by digits is faster.
const manyEnded = 48

// sortEnded sorts the completed flows of Advance. Many flows that end at one instant mostly come in the
// order of their starts, so it is enough to group them by bundle: a stable radix sort of the bundle's number.
func (f *Fluid) sortEnded() {
	if len(f.ended) >= manyEnded && !slices.IsSortedFunc(f.ended, ended.compare) {
		for shift := 0; len(f.bundles)>>shift > 0; shift += 8 {
			f.sortDigit(shift)
		}
	}
	if len(f.ended) > 1 && !slices.IsSortedFunc(f.ended, ended.compare) {
		slices.SortFunc(f.ended, ended.compare)
	}
}

// sortDigit is one pass of the radix sort: a stable counting sort by 8 bits of the bundle's number.
func (f *Fluid) sortDigit(shift int) {
	var first [257]int32
	for i := range f.ended {
		first[int(uint8(f.ended[i].own>>shift))+1]++
	}
	for i := range 256 {
		first[i+1] += first[i]
	}
	f.sorting = append(f.sorting[:0], f.ended...)
	for i := range f.sorting {
		d := uint8(f.sorting[i].own >> shift)
		f.ended[first[d]] = f.sorting[i]
		first[d]++
	}
}
