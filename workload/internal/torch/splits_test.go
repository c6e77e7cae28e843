package torch

import (
	"slices"
	"testing"
)

// TestSplitsOfRows: the rows of an alltoall become elements where they divide them; equal rows, and what
// cannot be, are none.
func TestSplitsOfRows(t *testing.T) {
	for i, c := range []struct {
		rows           []int64
		elements, size int64
		want           []int64
	}{
		{[]int64{1, 3}, 8, 2, []int64{2, 6}}, {[]int64{1, 3}, 4, 2, []int64{1, 3}},
		{[]int64{0, 4}, 4, 2, []int64{0, 4}},
		{[]int64{1, 3}, 8, 3, nil}, {nil, 8, 0, nil}, {[]int64{2, 2}, 8, 2, nil}, {[]int64{0, 0}, 8, 2, nil},
		{[]int64{1, 2}, 8, 2, nil}, {[]int64{-1, 5}, 4, 2, nil}, {[]int64{0, 5}, 4, 2, nil},
		{[]int64{1, 1, 2}, 4, 3, []int64{1, 1, 2}}, {[]int64{2, 1, 1}, 4, 3, []int64{2, 1, 1}},
	} {
		if got := splits(c.rows, c.elements, c.size); !slices.Equal(got, c.want) {
			t.Errorf("%d: %v, want %v", i, got, c.want)
		}
	}
}
