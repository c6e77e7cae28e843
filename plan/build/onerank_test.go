package build_test

import (
	"errors"
	"testing"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/exec/exectest"
	"github.com/simccl/simccl/plan"
	"github.com/simccl/simccl/plan/build"
	"github.com/simccl/simccl/plan/check"
	"github.com/simccl/simccl/units"
)

// What NCCL launches for one rank (enqueue.cc:2569, onerank.cu), every plan of
// which moves all bytes.
func TestOneRank(t *testing.T) {
	c := exectest.Comm(1, 1, 4)
	for f := range coll.NumFuncs {
		for _, red := range []coll.RedOp{coll.Sum, coll.Prod, coll.Avg} {
			for _, typ := range []coll.DataType{coll.Int32, coll.Float16, coll.Float64} {
				for _, in := range []bool{false, true} {
					scales := f.Reduces() && red == coll.Avg && typ.IsFloat()
					want := plan.DeviceCopy
					switch {
					case scales:
						want = plan.OneRankKernel
					case in:
						want = plan.NoLaunch
					case f == coll.SendRecv:
						want = plan.SelfSend
					}
					for _, count := range []int64{1, 7, 4096, 524289, 33 << 20} {
						p, err := build.Plan(c, plan.Request{Func: f, Count: count, Type: typ, Op: red,
							InPlace: in})
						if err != nil {
							t.Fatal(err)
						}
						if p.OneRank() != want {
							t.Fatalf("%v %v %v in place %v: launches %d, want %d", f, red, typ, in,
								p.OneRank(), want)
						}
						if err := check.Plan(p); err != nil {
							t.Errorf("%v %v %v in place %v, %d: %v", f, red, typ, in, count, err)
						}
					}
				}
			}
		}
	}
}

// The kernel that scales has a block for each 16 KiB, 32 at most (onerank.cu:82).
func TestOneRankBlocks(t *testing.T) {
	c := exectest.Comm(1, 1, 4)
	for bytes, want := range map[int64]int{8: 1, 16 << 10: 1, 16<<10 + 8: 2, 512 << 10: 32, 64 << 30: 32} {
		p, err := build.Plan(c, plan.Request{Func: coll.AllReduce, Count: bytes / 8, Type: coll.Float64,
			Op: coll.Avg})
		if err != nil {
			t.Fatal(err)
		}
		if got := len(p.Programs(0)); got != want {
			t.Errorf("%d bytes: %d blocks, want %d", bytes, got, want)
		}
	}
}

// NCCL answers "invalid argument" (seen on an H200).
func TestOneRankHasNoKernelOfEightBits(t *testing.T) {
	c := exectest.Comm(1, 1, 4)
	for _, typ := range []coll.DataType{coll.Float8e4m3, coll.Float8e5m2} {
		_, err := build.Plan(c, plan.Request{Func: coll.AllReduce, Count: 8, Type: typ, Op: coll.Avg})
		if !errors.Is(err, plan.ErrUnsupported) {
			t.Errorf("%v: %v", typ, err)
		}
	}
	if p, err := build.Plan(exectest.Comm(1, 1, 4), plan.Request{Func: coll.AllReduce, Count: 0,
		Type: coll.Float32}); err != nil || p.OneRank() != plan.NoLaunch {
		t.Errorf("nothing to do: %v", err)
	}
}

// NCCL_CHUNK_SIZE is not cut to the FIFO's steps, past which NCCL would write.
func TestChunksFitSteps(t *testing.T) {
	c := exectest.Comm(2, 1, 4)
	for size, fits := range map[int64]bool{0: true, 4096: true, 64 << 10: true, 64<<10 + 1: false,
		1 << 32: false} {
		r := plan.Request{Func: coll.SendRecv, Count: 1 << 33, Type: coll.Int8}
		r.Params.ChunkSize = units.Some(size)
		if _, err := build.Plan(c, r); (err == nil) != fits || err != nil &&
			!errors.Is(err, plan.ErrUnsupported) {
			t.Errorf("chunks of %d bytes: %v", size, err)
		}
	}
}
