package engine

import (
	"slices"
	"testing"

	"github.com/simccl/simccl/plan"
)

// TestHeldSlicesKnowTheirPeers: as many as an op has, few or many, whatever the slice before had; the first
// slice of an op alone is the first.
func TestHeldSlicesKnowTheirPeers(t *testing.T) {
	var h heldSlice
	for slice, to := range [][]int32{{7}, {1, 2, 3, 4}, {1, 2, 3, 4, 5}, {9, 8, 7, 6, 5, 4}, {3}, nil} {
		h.set(&Group{Op: plan.Op{To: to, Chunk: 5}, Bytes: 6, slice: int32(slice)}, 11)
		if !slices.Equal(h.peers(), to) || !h.on || h.first != (slice == 0) || h.bytes != 6 || h.at != 11 ||
			h.chunk != 5 {
			t.Errorf("%v: %+v", to, h)
		}
	}
}
