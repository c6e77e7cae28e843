package fluid

import (
	"cmp"
	"slices"

	"github.com/simccl/simccl/sim/wire"
)

// ended is a flow whose last byte was sent, with the work that it would have left if it went on.
type ended struct {
	own  int32
	id   wire.FlowID
	left wire.Work
	seq  int64
}

func (a ended) compare(b ended) int {
	return cmp.Or(cmp.Compare(a.own, b.own), cmp.Compare(a.left, b.left), cmp.Compare(a.seq, b.seq))
}

// manyEnded is from how many flows on it pays to put them in order by digits.
const manyEnded = 48

// sortEnded puts the flows of Advance in order. Many that end at one instant mostly come
// in the order in which they began, so that those of a bundle need no more than to be
// put together, digit by digit of its number.
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

// sortDigit puts the flows in order by 8 bits of their bundle, and leaves those that
// are equal there in theirs.
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
