package sim_test

import (
	"testing"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/comm"
	"github.com/simccl/simccl/dev/golden"
	"github.com/simccl/simccl/exec/exectest"
	"github.com/simccl/simccl/plan"
	"github.com/simccl/simccl/sim"
	"github.com/simccl/simccl/trace/nccl"
)

// TestConforms runs the suite of all executors on the simulator.
func TestConforms(t *testing.T) {
	exectest.Conform(t, golden.Few([]int{2, 1}, 2), func(t *testing.T, nodes int) exectest.Subject {
		for _, r := range golden.Own(t) {
			if r.Nodes != nodes || len(r.Env) > 0 || r.Multicast || r.Name == "" {
				continue
			}
			c, systems := machine(t, &r, comm.Params{})
			if c == nil || c.NRanks < 2 || c.NRanks > 16 || c.NNodes != nodes {
				continue
			}
			x, err := sim.New(sim.Config{Comm: c.Layout, Systems: systems, Kernels: 1, Launch: sim.Graph,
				Trace: nccl.Options{Detail: nccl.DetailStep}})
			if err != nil {
				t.Fatal(err)
			}
			return exectest.Subject{Comm: c.Layout, Executor: x, Exact: true, Arrows: true,
				Skip: func(q plan.Request) string {
					if q.Algo == coll.NVLS || q.Algo == coll.NVLSTree {
						return "the machine is taken without multicast"
					}
					return ""
				}}
		}
		t.Fatal("no machine")
		return exectest.Subject{}
	})
}
