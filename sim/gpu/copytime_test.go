package gpu

import (
	"math"
	"testing"
)

// TestCopyTimes: copies one after the other cost a node and their bytes each, a copy alone its own cost, a
// batch the longest of its engines, and the links bound all; the own copy reads and writes device memory.
func TestCopyTimes(t *testing.T) {
	c := &Class{Copy: CopyCost{Single: 5, Batch: 11, Node: 3, Rate: 200}} // 1 MB: 5 us to a peer
	c.One.MemoryRate = 1000                                               // 2 us of its own
	const mb = 1_000_000
	for _, x := range []struct {
		peers int
		own   bool
		batch bool
		links float64
		want  float64
	}{
		{0, false, false, 9, 0}, {0, false, true, 9, 0},
		{1, false, false, 0, 3 + 5}, {3, false, false, 0, 3*3 + 3*5}, {3, false, false, 100, 100},
		{3, true, false, 0, 4*3 + 3*5 + 2}, {0, true, false, 0, 3 + 2},
		{1, false, true, 0, 5 + 5}, {1, false, true, 20, 5 + 20}, {0, true, true, 0, 5 + 2},
		{1, true, true, 0, 11 + 5 + 2}, {3, false, true, 0, 11 + 5}, {3, true, true, 30, 11 + 30 + 2},
	} {
		if got := c.CopyTime(x.peers, x.own, mb, x.batch, x.links); math.Abs(got-x.want) > 1e-9 {
			t.Errorf("%+v: %g us", x, got)
		}
	}
}
