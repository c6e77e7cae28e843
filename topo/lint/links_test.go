package lint

import (
	"testing"

	"github.com/simccl/simccl/topo"
)

// TestLinksByComputeCapability: how many NVLinks NCCL asks for, by the compute capability of the GPU
// (xml.cc:760): more of them in a file are doubtful.
func TestLinksByComputeCapability(t *testing.T) {
	for sm, want := range map[int]int{50: 0, 59: 0, 60: 4, 69: 4, 70: 6, 79: 6, 80: 12, 89: 12, 90: 18,
		120: 18} {
		if got := topo.MaxNVLinks(sm); got != want {
			t.Errorf("sm_%d: %d, want %d", sm, got, want)
		}
	}
}
