package sim_test

import (
	"context"
	"math"
	"slices"
	"testing"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/comm"
	"github.com/simccl/simccl/dev/golden"
	"github.com/simccl/simccl/exec"
	"github.com/simccl/simccl/plan"
	"github.com/simccl/simccl/plan/launch"
	"github.com/simccl/simccl/sim"
	"github.com/simccl/simccl/trace"
	"github.com/simccl/simccl/units"
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
			cfg := sim.Config{Comm: c.Layout, Systems: systems, NoJitter: share < 0, Kernels: 1,
				Launch: sim.Graph}
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

// Of a group's sends and receives on more than 16 ranks a window is simulated, where all cost
// too much: within its margin, with the bytes of the whole on each link. A shortened
// plan has the programs of the whole with fewer ops.
func TestWindowsOfGroupsOfMessages(t *testing.T) {
	for _, x := range golden.Few([]struct{ nodes, n, per int }{{4, 2, 1 << 20}, {4, 3, 700_000},
		{3, 2, 1 << 20}, {2, 2, 1 << 20}}, 4) {
		c, systems := nodes(t, "dgx-h100.n2", x.nodes, smallBuffers())
		p := grouped(t, c, launch.Call{Func: coll.AllToAll, Type: coll.Float32, Count: int64(x.per)}, x.n)
		n := p.Iterations()
		if n < 12 {
			t.Fatalf("%+v: %d iterations", x, n)
		}
		if all, err := p.Shorten(n, true); err != nil || all == nil || all.Req.Count != p.Req.Count {
			t.Fatalf("%+v: of %d iterations all are another plan: %v", x, n, err)
		}
		for _, rest := range []bool{true, false} {
			short, err := p.Shorten(3, rest)
			if err != nil || short == nil {
				t.Fatalf("%+v: no plan of 3 of %d iterations: %v", x, n, err)
			}
			last := int32(c.NRanks - 1)
			for i, pr := range short.Programs(last) {
				was := p.Programs(last)[i]
				if pr.Role == plan.RoleCopy { // a rank's own part, at once
					continue
				}
				if fewer := p.NumOps(&was) - short.NumOps(&pr); pr.Channel != was.Channel ||
					pr.Group != was.Group || pr.Transfer.Chunk != was.Transfer.Chunk || rest && fewer != n-3 {
					t.Fatalf("%+v: %+v has %d ops fewer than %+v", x, pr, fewer, was)
				}
			}
		}
		cfg := sim.Config{Systems: systems, Launch: sim.Graph, Kernels: 1}
		whole := within(t, c, cfg, p, 1000*units.Second)
		got := within(t, c, cfg, p, units.Second/10)
		if whole.Account.Method == exec.Window {
			t.Fatalf("%+v: the whole found as %+v", x, whole.Account)
		}
		if x.nodes < 4 {
			if got.Elapsed != whole.Elapsed {
				t.Errorf("%+v: %v, and %v whole", x, got.Elapsed, whole.Elapsed)
			}
			continue
		}
		off := float64(got.Elapsed)/float64(whole.Elapsed) - 1
		t.Logf("%+v: %d of %d iterations not simulated, %+.2f %%", x, got.Account.Periods, n, 100*off)
		if got.Account.Method != exec.Window || got.Account.Periods == 0 ||
			math.Abs(off) > got.Account.Margin {
			t.Errorf("%+v: %v in a window, %v whole, %+v", x, got.Elapsed, whole.Elapsed, got.Account)
		}
		for i := range whole.Links {
			if a, b := &got.Links[i], &whole.Links[i]; a.Name != b.Name || a.Bytes != b.Bytes {
				t.Errorf("%+v: %s carries %d bytes, in the whole %s %d", x, a.Name, a.Bytes, b.Name, b.Bytes)
			}
		}
	}
}
