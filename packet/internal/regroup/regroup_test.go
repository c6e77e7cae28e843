package regroup

import (
	"slices"
	"testing"
)

// TestOrder: pairs come in the order in which a std::unordered_map of GNU's C++ library has them after
// the same insertions and removals, over two growths.
func TestOrder(t *testing.T) {
	x, pairs := uint64(1), []Pair{}
	for i := range int32(40) {
		x = x*6364136223846793005 + 1442695040888963407
		p := Pair{Flow: i, Hash: x >> 33, Begin: int64(10 * i), End: never}
		if i <= 9 && i%3 == 1 {
			p.End = 95
		} else if i <= 20 && i%3 == 1 {
			p.End = 205
		}
		pairs = append(pairs, p)
	}
	want := []int32{39, 38, 37, 36, 15, 8, 30, 14, 11, 21, 3, 9, 2, 32, 0, 27, 5, 17, 34, 18, 20, 22, 23, 31,
		35, 28, 25, 12, 24, 26, 6, 29, 33}
	if got := Order(pairs, 1000); !slices.Equal(got, want) {
		t.Errorf("%v\nwant %v", got, want)
	}
	if got := Order(pairs[:0], 0); len(got) != 0 {
		t.Errorf("of none: %v", got)
	}
}
