package device

import (
	"context"
	"testing"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/exec"
	"github.com/simccl/simccl/exec/exectest"
	"github.com/simccl/simccl/internal/require"
	"github.com/simccl/simccl/plan"
	"github.com/simccl/simccl/plan/build"
	"github.com/simccl/simccl/real/internal/cuda"
	"github.com/simccl/simccl/trace"
	"github.com/simccl/simccl/trace/nccl"
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
		return subject(nodes, &Executor{Driver: d, GPUs: gpus, Buffered: nodes == 2,
			Trace: nccl.Options{Detail: nccl.DetailStep}})
	})
}

// everyType runs each protocol with each type and reduction that has a kernel.
func everyType(t *testing.T, e *Executor, types []coll.DataType) {
	t.Helper()
	c := exectest.Comm(4, 1, 2)
	for _, typ := range types {
		for _, red := range coll.RedOps() {
			for _, pr := range []coll.Protocol{coll.LL, coll.LL128, coll.Simple} {
				p, err := build.Plan(c, plan.Request{Func: coll.AllReduce, Type: typ, Op: red, Count: 50_021,
					Algo: coll.Ring, Proto: pr, Channels: 2, Warps: 16})
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
	everyType(t, &Executor{Driver: d, GPUs: gpus}, allTypes)
}
