package device

import (
	"context"
	"errors"
	"os"
	"testing"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/exec"
	"github.com/simccl/simccl/internal/require"
	"github.com/simccl/simccl/real/internal/nccl"
	"github.com/simccl/simccl/units"
)

// TestRegistrationNeedsNCCL: the free algorithms have no library to inform of
// buffers.
func TestRegistrationNeedsNCCL(t *testing.T) {
	for _, how := range []Registration{Registered, Symmetric} {
		var u *exec.UnsupportedError
		if _, err := Open(context.Background(), Config{Register: how}); !errors.As(err, &u) {
			t.Errorf("registration %d without NCCL: %v, want *exec.UnsupportedError", how, err)
		}
	}
}

// TestRegisteredBuffersOnGPUs: NCCL's results stay right, to the last element,
// where it takes other paths through buffers that it knows, launched and as a
// graph, in and out of place, aligned and not.
func TestRegisteredBuffersOnGPUs(t *testing.T) {
	d, gpus := hardware(t)
	lib, err := nccl.Open(os.Getenv("SIMCCL_TEST_LIBNCCL"))
	require.Hardware(t, "nccl", err, exec.ErrUnsupported)
	gpus = gpus[:min(len(gpus), d.Count())]
	for _, c := range []struct {
		how     Registration
		unalign int
	}{{Registered, 0}, {Symmetric, 0}, {Symmetric, 3}} {
		s, err := Open(context.Background(), Config{Driver: d, NCCL: lib, GPUs: gpus, Ranks: len(gpus),
			Buffer: 4 << 20, Register: c.how, Unalign: c.unalign})
		if err != nil {
			t.Fatalf("registration %d: %v", c.how, err)
		}
		for _, f := range []coll.Func{coll.AllReduce, coll.AllGather, coll.ReduceScatter, coll.Broadcast,
			coll.Reduce, coll.AllToAll, coll.SendRecv, coll.Gather, coll.Scatter} {
			if len(gpus) == 1 && f == coll.SendRecv {
				continue
			}
			for mode := range 4 {
				for _, size := range []units.Bytes{1040, 3 << 20} {
					op := &Case{Func: f, Type: coll.Float32, Red: coll.Sum, InPlace: mode&1 == 1,
						Sizes: coll.TestSizes(f, size, coll.Float32, len(gpus))}
					m, err := s.Measure(context.Background(), op, NCCL, Options{Iters: 2, Warmup: 1,
						Replays: mode >> 1, Check: 1, Seed: 7})
					if err != nil || m.Wrong > 0 {
						t.Errorf("registration %d, unalign %d, %v of %d bytes, in place %t, %d replays: %d "+
							"wrong (%s), %v",
							c.how, c.unalign, f, size, op.InPlace, mode>>1, m.Wrong, m.First, err)
					}
				}
			}
		}
		if err := s.Close(); err != nil {
			t.Errorf("registration %d: close: %v", c.how, err)
		}
	}
}
