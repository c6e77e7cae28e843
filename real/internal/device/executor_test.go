package device

import (
	"testing"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/exec/exectest"
	"github.com/simccl/simccl/plan"
	"github.com/simccl/simccl/real/internal/cuda"
	"github.com/simccl/simccl/real/realtest"
	"github.com/simccl/simccl/trace/nccl"
	"github.com/simccl/simccl/units"
)

// driver opens the driver of tests.
func driver(t *testing.T) (*cuda.Driver, *realtest.Control) {
	t.Helper()
	path, control := realtest.Open(t)
	d, err := cuda.OpenFrom(path)
	if err != nil {
		t.Fatal(err)
	}
	return d, control
}

// TestExecutorConforms runs the suite that every executor must pass: the
// kernels that GPUs run, compiled for the CPU, with a warp to a thread. Of two
// nodes half of the connections are in peer memory, half on the host.
func TestExecutorConforms(t *testing.T) {
	if testing.Short() {
		t.Skip("takes ten seconds of two CPUs")
	}
	d, _ := driver(t)
	exectest.Conform(t, []int{2}, func(t *testing.T, nodes int) exectest.Subject {
		return subject(nodes, &Executor{Driver: d, GPUs: []int{0, 1, 2, 3}, Warps: 2,
			Trace: nccl.Options{Detail: nccl.DetailStep}})
	})
}

// TestPlanOfEveryReduction runs all reductions and protocols, straight to the
// outputs and through FIFOs alone.
func TestPlanOfEveryReduction(t *testing.T) {
	d, _ := driver(t)
	for _, buffered := range []bool{false, true} {
		if buffered && testing.Short() {
			continue
		}
		everyType(t, &Executor{Driver: d, GPUs: []int{0, 1, 2, 3}, Warps: 2, Buffered: buffered},
			[]coll.DataType{coll.Float16})
	}
}

// subject is an executor on a small communicator; FIFOs are small so that they
// wrap.
func subject(nodes int, e *Executor) exectest.Subject {
	c := exectest.Comm(4/nodes, nodes, 2)
	c.BuffSizes = [3]units.Bytes{32 << 10, 8 * 5760 * 8, 64 << 10}
	c.P2PChunkSize, c.NVLSChunkSize = 8<<10, 8<<10
	return exectest.Subject{Comm: c, Executor: e, Arrows: true, Skip: func(r plan.Request) string {
		if (r.Algo == coll.NVLS || r.Algo == coll.NVLSTree) && !r.Func.IsP2P() {
			return "these kernels have no NVLink multicast"
		}
		if r.Proto == coll.LL128 && nodes > 1 {
			return "a line of 128 bytes does not arrive whole in host memory"
		}
		return ""
	}}
}
