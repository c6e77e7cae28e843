package diagnose

import (
	"slices"
	"testing"
)

// TestAnchors: the smallest size that is about as far off as the farthest, the least and the largest, each
// once; a choice made again forgets the one before.
func TestAnchors(t *testing.T) {
	h := &hunt{rows: []int{0, 1, 2, 3, 4}}
	for _, c := range []struct {
		measured, spread []float64
		want             []int
	}{
		{[]float64{0, 0.1, 0.5, 0.55, 0.1}, []float64{1, 1, 1, 1, 1}, []int{2, 0, 4}},
		{[]float64{0, 0.1, -0.5, 0.55, 0.1}, []float64{1, 1, 1, 1, 1}, []int{2, 0, 4}},
		{[]float64{0, 0.1, 0.4, 0.55, 0.1}, []float64{1, 1, 1, 1, 1}, []int{3, 0, 4}},
		{[]float64{0, 0.1, 0.4, 0.5, 0.1}, []float64{1, 1, 1, 1, 1}, []int{2, 0, 4}},
		{[]float64{0, 0.1, 0.4, 0.55, 0.1}, []float64{1, 0.1, 1, 1, 1}, []int{1, 0, 4}},
		{[]float64{1, 0, 0, 0, 0}, []float64{1, 1, 1, 1, 1}, []int{0, 4}},
		{[]float64{0, 0, 0, 0, 1}, []float64{1, 1, 1, 1, 1}, []int{4, 0}},
	} {
		h.measured, h.spread = c.measured, c.spread
		if h.anchor(); !slices.Equal(h.anchors, c.want) {
			t.Errorf("%v by %v: %v, want %v", c.measured, c.spread, h.anchors, c.want)
		}
	}
}
