package device

import (
	"context"
	"testing"

	"github.com/simccl/simccl/real/internal/cuda"
)

// TestBesideMeasuresBoth: collectives run beside compute on every GPU, so many kernels as the
// collectives take time for, and all memory is given back.
func TestBesideMeasuresBoth(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: it measures kernels side by side")
	}
	d, control := driver(t)
	s, err := team(t, d)
	if err != nil {
		t.Fatal(err)
	}
	op := allReduce(t, 1<<12)
	for _, w := range []Work{{Bytes: 1 << 12}, {Bytes: 1 << 13}} {
		got, err := s.Beside(context.Background(), op, Free(cuda.OneShot), w, 3)
		if err != nil {
			t.Fatal(err)
		}
		if got.Alone <= 0 || got.Calls <= 0 || got.Kernel <= 0 || got.Compute <= 0 || got.Kernels < 4 ||
			got.Kernels > besideKernels || got.Total < got.Calls {
			t.Errorf("%+v", got)
		}
	}
	if _, err := s.Beside(context.Background(), op, NCCL, Work{Bytes: 1 << 12}, 3); err == nil {
		t.Error("a session without NCCL measured it")
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	empty(t, control)
}
