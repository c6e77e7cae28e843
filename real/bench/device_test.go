package bench

import (
	"context"
	"fmt"
	"os"
	"testing"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/exec"
	"github.com/simccl/simccl/exec/exectest"
	"github.com/simccl/simccl/internal/require"
	"github.com/simccl/simccl/plan"
	"github.com/simccl/simccl/plan/build"
	"github.com/simccl/simccl/real/cuda"
	"github.com/simccl/simccl/trace"
	"github.com/simccl/simccl/trace/nccltrace"
	"github.com/simccl/simccl/units"
)

// hardware opens CUDA and returns four GPUs, the same again where there are
// fewer. Without any the test is skipped, or fails (internal/require).
func hardware(t *testing.T) (*cuda.Driver, []int) {
	t.Helper()
	d, err := cuda.Open()
	require.Hardware(t, "cuda", err, exec.ErrUnsupported)
	var gpus []int
	for i := range 4 {
		gpus = append(gpus, i%d.Count())
	}
	return d, gpus
}

// TestExecutorConformsOnGPUs is TestExecutorConforms on real ones.
func TestExecutorConformsOnGPUs(t *testing.T) {
	d, gpus := hardware(t)
	exectest.Conform(t, []int{1, 2, 4}, func(t *testing.T, nodes int) exectest.Subject {
		return subject(nodes, &Executor{Driver: d, GPUs: gpus, Buffered: nodes == 2, Trace: nccltrace.Options{Detail: nccltrace.DetailStep}})
	})
}

// everyType runs each protocol with each type and reduction that has a kernel.
func everyType(t *testing.T, e *Executor, types []coll.DataType) {
	t.Helper()
	c := exectest.Comm(4, 1, 2)
	for _, typ := range types {
		for _, red := range coll.RedOps() {
			for _, pr := range []coll.Protocol{coll.LL, coll.LL128, coll.Simple} {
				p, err := build.Plan(c, plan.Request{Func: coll.AllReduce, Type: typ, Op: red, Count: 50_021, Algo: coll.Ring, Proto: pr, Channels: 2, Warps: 16})
				if err != nil {
					t.Fatal(err)
				}
				res, err := e.Run(context.Background(), exec.One(p), trace.Discard)
				if err != nil || res.Wrong != 0 {
					t.Errorf("%v %v %v: %d wrong, %v", typ, red, pr, res.Wrong, err)
				}
			}
		}
	}
}

func TestPlanOfEveryTypeOnGPUs(t *testing.T) {
	d, gpus := hardware(t)
	everyType(t, &Executor{Driver: d, GPUs: gpus}, []coll.DataType{coll.Float64, coll.Float32, coll.Float16, coll.BFloat16, coll.Int8, coll.Uint8,
		coll.Int32, coll.Uint32, coll.Int64, coll.Uint64})
}

// TestGeometryOnGPUs measures grids and pieces of the free algorithms, for
// whoever chooses them; SIMCCL_SWEEP=1 runs it.
func TestGeometryOnGPUs(t *testing.T) {
	if os.Getenv("SIMCCL_SWEEP") == "" {
		t.Skip("SIMCCL_SWEEP is not set")
	}
	d, gpus := hardware(t)
	s, err := Open(context.Background(), Config{Driver: d, Free: true, GPUs: gpus, Ranks: 4, Buffer: 256 << 20})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for _, f := range []coll.Func{coll.AllReduce, coll.ReduceScatter} {
		for size := units.Bytes(64 << 10); size <= 256<<20; size *= 4 {
			for _, shape := range cuda.FreeShapes(f) {
				if shape == cuda.Copies || (shape == cuda.OneShot || shape == cuda.TwoWords) && size > 512<<10 || shape == cuda.TwoShot && size > 16<<20 {
					continue
				}
				sweep(t, s, f, size, shape)
			}
		}
	}
}

// TestBufferedOnGPUs measures what it is worth to go straight to the receiver's
// output; SIMCCL_SWEEP=1 runs it.
func TestBufferedOnGPUs(t *testing.T) {
	if os.Getenv("SIMCCL_SWEEP") == "" {
		t.Skip("SIMCCL_SWEEP is not set")
	}
	d, gpus := hardware(t)
	c := exectest.Comm(4, 1, 32)
	for _, buffered := range []bool{false, true} {
		s, err := Open(context.Background(), Config{Driver: d, Plans: true, GPUs: gpus, Ranks: 4, Buffer: 1 << 30, Buffered: buffered})
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range []coll.Func{coll.AllReduce, coll.AllGather, coll.AllToAll} {
			for size := units.Bytes(16 << 20); size <= 1<<30; size *= 4 {
				sizes := coll.TestSizes(f, size, coll.Float32, 4)
				p, err := build.Plan(c, plan.Request{Func: f, Type: coll.Float32, Count: sizes.Count, Algo: coll.Ring, Proto: coll.Simple, Channels: 24, Warps: 16})
				if err != nil {
					t.Fatal(err)
				}
				m, err := s.Measure(context.Background(), OpOf(p), Planned, Options{Iters: 10, Warmup: 1, Replays: 2, Check: 1, Average: Slowest})
				if err != nil || m.Wrong > 0 {
					t.Fatal(m.Wrong, err)
				}
				fmt.Printf("%v %9d buffered %t: %.2f us\n", f, size, buffered, m.Time.Micros())
			}
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

func sweep(t *testing.T, s *Session, f coll.Func, size units.Bytes, shape cuda.Shape) {
	pieces := []units.Bytes{0}
	if shape == cuda.Push {
		pieces = []units.Bytes{4 << 10, 8 << 10, 16 << 10, 32 << 10, 64 << 10}
	}
	for _, piece := range pieces {
		line := ""
		for _, blocks := range []int{16, 32, 64, 96, 128} {
			op := &Op{Func: f, Type: coll.Float32, Sizes: coll.TestSizes(f, size, coll.Float32, 4), Blocks: blocks, Piece: piece}
			m, err := s.Measure(context.Background(), op, Free(shape), Options{Iters: 20, Warmup: 1, Replays: 3, Check: 1, Average: Slowest, Seed: 1})
			if err != nil || m.Wrong > 0 {
				t.Fatalf("%v %v %d bytes, %d blocks, piece %d: %d wrong, %v", f, shape, size, blocks, piece, m.Wrong, err)
			}
			line += fmt.Sprintf(" %d:%.2f", blocks, m.Time.Micros())
		}
		fmt.Printf("%v %9d %v piece %d%s\n", f, size, shape, piece, line)
	}
}
