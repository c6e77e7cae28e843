package sim_test

import (
	"context"
	"slices"
	"testing"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/comm"
	"github.com/simccl/simccl/exec"
	"github.com/simccl/simccl/plan"
	"github.com/simccl/simccl/plan/launch"
	"github.com/simccl/simccl/sim"
	"github.com/simccl/simccl/trace"
)

// grouped is the plan of the only kernel of equal calls.
func grouped(t *testing.T, c *comm.Comm, call launch.Call, n int) *plan.Plan {
	t.Helper()
	calls := slices.Repeat([]launch.Call{call}, n)
	kernels, err := c.Group(calls, launch.Eager)
	if err != nil {
		t.Fatal(err)
	}
	p, err := kernels[0].Plan(c.Launcher(calls, launch.Eager))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// Ranks fold in a kernel of several operations as in one of one: to the picosecond.
func TestGroupsFold(t *testing.T) {
	oneGoroutine(t)
	folded := 0
	for _, x := range []struct {
		machine string
		nodes   int
		f       coll.Func
		perRank int64
		n       int
	}{
		{"dgx-h100+nvls.n2", 4, coll.AllReduce, 1 << 15, 2},
		{"dgx-h100+nvls.n2", 3, coll.AllReduce, 1 << 12, 2},
		{"dgx-h100.n2", 4, coll.AllGather, 1 << 14, 4},
		{"dgx-h100.n2", 2, coll.AllGather, 5000, 3},
		{"dgx-a100.n2", 3, coll.ReduceScatter, 1 << 13, 2},
		{"hgx-a100-4.n2", 3, coll.AllReduce, 1 << 15, 8},
		{"dgx-h100.n2", 1, coll.AllReduce, 1 << 16, 2},
	} {
		c, systems := nodes(t, x.machine, x.nodes, comm.Params{})
		count := x.perRank
		if !x.f.PerRank() {
			count *= int64(c.NRanks)
		}
		p := grouped(t, c, launch.Call{Func: x.f, Type: coll.Float32, Count: count}, x.n)
		if len(p.Members()) != x.n {
			t.Fatalf("%+v: %d operations in a kernel", x, len(p.Members()))
		}
		for _, share := range []int64{-1, 0} {
			cfg := sim.Config{Comm: c.Layout, Systems: systems, NoJitter: share < 0, Kernels: 1, Launch: sim.Graph}
			run := func(fold sim.Folding) exec.Result {
				cfg.Fold = fold
				s, err := sim.New(cfg)
				if err != nil {
					t.Fatal(err)
				}
				s.Share(share)
				r, err := s.Run(context.Background(), exec.One(p), trace.Discard)
				if err != nil {
					t.Fatal(err)
				}
				return r
			}
			got, each := run(sim.FoldAuto), run(sim.Unfolded)
			if got.Account.Method == exec.Folded {
				folded++
			}
			if err := sameTimes(&got, &each); err != nil {
				t.Errorf("%+v, %s, %v: %v", x, p.Members()[0].Plan.Req.Algo, got.Account, err)
			}
		}
	}
	if folded < 6 {
		t.Errorf("%d of 14 folded", folded)
	}
}
