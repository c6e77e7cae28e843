package sim_test

import (
	"context"
	"testing"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/comm"
	"github.com/simccl/simccl/exec"
	"github.com/simccl/simccl/plan"
	"github.com/simccl/simccl/plan/build"
	"github.com/simccl/simccl/sim"
	"github.com/simccl/simccl/trace"
	"pgregory.net/rapid"
)

// onCores runs a request on one processor and on several, and reports where they differ, and
// in how many parts the second was handled.
func onCores(t testing.TB, c *comm.Comm, cfg sim.Config, req plan.Request, cores int) (parts int) {
	t.Helper()
	p, err := build.Plan(c.Layout, req)
	if err != nil {
		t.Fatal(err)
	}
	var results [2]exec.Result
	for i, n := range []int{1, cores} {
		cfg.Comm, cfg.Cores = c.Layout, n
		x, err := sim.New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		if results[i], err = x.Run(context.Background(), exec.One(p), trace.Discard); err != nil {
			t.Fatalf("%v %v/%v %d: %v", req.Func, req.Algo, req.Proto, req.Count, err)
		}
		parts = x.Parts()
	}
	if got, want := &results[1], &results[0]; !sameResult(got, want) {
		t.Errorf("%v %v/%v of %d elements, %d channels, in %d parts: %v, in one %v; %d and %d events; links %v and %v", req.Func, req.Algo, req.Proto, req.Count, req.Channels,
			parts, got.Elapsed, want.Elapsed, got.Events, want.Events, got.Links, want.Links)
	}
	return parts
}

// What nodes do side by side is what they do one after the other: times of all ranks, bytes,
// busy times and queues of all links, and events, on random programs of every algorithm and
// protocol, with jitter and several queue pairs.
func TestCoresChangeNothing(t *testing.T) {
	machines := []*steadyMachine{{name: "dgx-h100.n2", nodes: 2}, {name: "dgx-h100+nvls.n2", nodes: 2}, {name: "hgx-a100-4.n2", nodes: 3}, {name: "gh200.n2", nodes: 4}}
	for _, m := range machines {
		m.c, m.systems = nodes(t, m.name, m.nodes, smallBuffers())
	}
	programs, apart := 0, map[string]int{}
	rapid.Check(t, func(rt *rapid.T) {
		m := rapid.SampledFrom(machines).Draw(rt, "machine")
		req := steadyRequest(rt, m)
		req.Count = min(req.Count, 1<<20)
		class := sim.ClassOf(m.systems[0])
		cfg := sim.Config{Systems: m.systems, Class: &class, NoJitter: rapid.Bool().Draw(rt, "lockstep"), NoSkip: rapid.Bool().Draw(rt, "whole"), Fold: sim.Unfolded, Launch: sim.Graph,
			Kernels: rapid.IntRange(1, 2).Draw(rt, "kernels"), QPs: rapid.SampledFrom([]int{1, 1, 3}).Draw(rt, "qps"), SplitData: rapid.Bool().Draw(rt, "split")}
		parts := onCores(t, m.c, cfg, req, rapid.IntRange(2, 4).Draw(rt, "cores"))
		if t.Failed() {
			rt.Fatalf("on %d %s", m.nodes, m.name)
		}
		if programs++; parts > 1 {
			apart[m.name+" "+req.Algo.String()]++
		}
	})
	t.Logf("%d programs, in parts %v", programs, apart)
}

var _ = coll.AllReduce
