package sim_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"testing"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/comm"
	"github.com/simccl/simccl/dev/golden"
	"github.com/simccl/simccl/exec"
	"github.com/simccl/simccl/plan"
	"github.com/simccl/simccl/plan/build"
	"github.com/simccl/simccl/sim"
	"github.com/simccl/simccl/topo"
	"github.com/simccl/simccl/topo/fabric"
	"github.com/simccl/simccl/trace"
	"github.com/simccl/simccl/units"
)

// onCores runs a request on one processor and on several, reports where they differ, and
// returns in how many parts the second was handled.
func onCores(t testing.TB, c *comm.Comm, cfg sim.Config, req plan.Request, cores int) (parts int) {
	t.Helper()
	p, err := build.Plan(c.Layout, req)
	if err != nil {
		t.Fatal(err)
	}
	var results [2]exec.Result
	var errs [2]error
	for i, n := range []int{1, cores} {
		cfg.Comm, cfg.Cores = c.Layout, n
		x, err := sim.New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		results[i], errs[i] = x.Run(context.Background(), exec.One(p), trace.Discard)
		parts = x.Parts()
	}
	what := fmt.Sprintf("%v %v/%v of %d elements, %d channels, %d ranks, in %d parts", req.Func, req.Algo,
		req.Proto, req.Count, req.Channels, c.NRanks, parts)
	switch got, want := &results[1], &results[0]; {
	case fmt.Sprint(errs[1]) != fmt.Sprint(errs[0]):
		t.Errorf("%s: %v, in one %v", what, errs[1], errs[0])
	case !sameResult(got, want):
		t.Errorf("%s: %v, in one %v; %d and %d events; links %v and %v", what, got.Elapsed, want.Elapsed,
			got.Events, want.Events, got.Links, want.Links)
	}
	return parts
}

// What nodes do side by side is what they do one after the other: times of all ranks, bytes,
// busy times and queues of all links, and events, on random programs of every algorithm and
// protocol, on machines whose NICs read GPUs' memory and host memory, with jitter, late
// ranks, several queue pairs, networks that block, slow ranks and slow ports, whether they are
// divided at once or after a search for a steady state.
func TestCoresChangeNothing(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: large machines on several processors")
	}
	machines := []*steadyMachine{{name: "dgx-h100.n2", nodes: 2}, {name: "dgx-h100+nvls.n2", nodes: 3},
		{name: "hgx-a100-4.n2", nodes: 4}, {name: "gh200.n2", nodes: 6}, {name: "pcie-l40s-8.n2", nodes: 2}}
	for _, m := range machines {
		m.c, m.systems = nodes(t, m.name, m.nodes, smallBuffers())
	}
	const programs = 48
	apart, kinds := 0, map[string]int{}
	for i := range programs {
		if golden.UnderRace && i >= 8 && kinds["later"] > 0 {
			break
		}
		rng := rand.New(rand.NewPCG(uint64(i), 16))
		m := machines[rng.IntN(len(machines))]
		req, what := coreRequest(t, rng, m)
		class := sim.ClassOf(m.systems[0])
		cfg := sim.Config{Systems: m.systems, Class: &class, NoJitter: rng.IntN(2) == 0,
			NoSkip: rng.IntN(2) == 0, Fold: sim.Unfolded, Launch: sim.Graph,
			Kernels: 1 + rng.IntN(2), QPs: 1 + rng.IntN(2), SplitData: rng.IntN(2) == 0}
		what = append(what, disturb(t, rng, m, &cfg)...)
		if cfg.NoJitter && !cfg.NoSkip {
			what = append(what, "later")
		} else if golden.UnderRace && i >= 8 {
			continue // until one is divided in flight
		}
		if onCores(t, m.c, cfg, req, 2+rng.IntN(3)) > 1 {
			apart++
			for _, w := range what {
				kinds[w]++
			}
		}
	}
	t.Logf("%d programs in parts: %v", apart, kinds)
	for _, want := range []string{"later", "AllReduce", "AlltoAll", "Ring", "Tree", "NVLSTree", "fabric",
		"slow port", "slow rank", "late rank"} {
		if kinds[want] == 0 && (!golden.UnderRace || want == "later") {
			t.Errorf("no program in parts has: %s", want)
		}
	}
}

// coreRequest draws a request of some thousand ops.
func coreRequest(t *testing.T, rng *rand.Rand, m *steadyMachine) (plan.Request, []string) {
	f := []coll.Func{coll.AllReduce, coll.AllReduce, coll.AllReduce, coll.AllGather, coll.ReduceScatter,
		coll.Broadcast, coll.AllToAll, coll.SendRecv}[rng.IntN(8)]
	if m.name == "dgx-h100+nvls.n2" {
		f = coll.AllReduce
	}
	count := int64(1<<16 + rng.IntN(1<<20))
	if f.PerRank() {
		count = count/int64(m.c.NRanks) + 1
	}
	req, _, err := m.c.Request(comm.Op{Func: f, Count: count, Type: coll.Float32})
	if err != nil {
		t.Fatal(err)
	}
	what := []string{f.String()}
	if f == coll.AllReduce {
		algos := []coll.Algorithm{coll.Ring, coll.Tree}
		if m.name == "dgx-h100+nvls.n2" {
			algos = []coll.Algorithm{coll.NVLSTree, coll.Tree}
		}
		req.Algo = algos[rng.IntN(len(algos))]
		req.Proto = coll.Simple
		if req.Algo != coll.NVLSTree {
			req.Proto = coll.Protocol(rng.IntN(3))
		} else {
			req.Count = 1<<22 + req.Count
		}
		what = append(what, req.Algo.String())
	}
	return req, what
}

// disturb draws what makes nodes unequal.
func disturb(t *testing.T, rng *rand.Rand, m *steadyMachine, cfg *sim.Config) (what []string) {
	nets := len(m.systems[0].Of(topo.NET))
	if rng.IntN(3) == 0 {
		l := fabric.Layout{Kind: []string{"leaf-spine", "fat-tree", "rail"}[rng.IntN(3)], Hosts: m.nodes,
			Nets: nets, Gbit: 200, PerLeaf: 1, Spines: 2, Oversub: float64(1 + rng.IntN(3))}
		n, err := fabric.Generate(l)
		if err != nil {
			t.Fatal(err)
		}
		ports := make([]int, m.nodes)
		for i := range ports {
			ports[i] = nets
		}
		if cfg.Fabric, err = n.Bind(ports, 1); err != nil {
			t.Fatal(err)
		}
		what = append(what, "fabric")
	}
	switch rng.IntN(5) {
	case 0:
		cfg.Faults = []sim.Fault{{Rank: -1, Host: rng.IntN(m.nodes), Net: rng.IntN(nets), Slow: 1 +
			5*rng.Float64(), Later: units.Time(rng.IntN(3)) * units.Microsecond}}
		what = append(what, "slow port")
	case 1:
		cfg.Faults = []sim.Fault{{Rank: rng.IntN(m.c.NRanks), Slow: 1 + 2*rng.Float64()}}
		what = append(what, "slow rank")
	case 2:
		cfg.Late = make([]units.Time, m.c.NRanks)
		for r := range cfg.Late {
			cfg.Late[r] = units.Time(rng.IntN(20)) * units.Microsecond
		}
		what = append(what, "late rank")
	}
	return what
}

// A rank that is down, a port that is, and a call that is cancelled end a run on several
// processors with the error that they have on one, and no goroutine is left.
func TestErrorsOnCores(t *testing.T) {
	c, systems := nodes(t, "dgx-h100.n2", 2, smallBuffers())
	req, _, err := c.Request(comm.Op{Func: coll.AllReduce, Count: 1 << 19, Type: coll.Float32})
	if err != nil {
		t.Fatal(err)
	}
	req.Algo, req.Proto = coll.Ring, coll.Simple
	before := runtime.NumGoroutine()
	cfg := sim.Config{Systems: systems, NoSkip: true, Fold: sim.Unfolded,
		Faults: []sim.Fault{{Rank: 3, Slow: 1, Down: true}}}
	if parts := onCores(t, c, cfg, req, 4); parts < 2 {
		t.Errorf("a hanging operation is handled in %d parts", parts)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cfg.Comm, cfg.Cores, cfg.Faults = c.Layout, 3, nil
	cfg.Progress = func(part float64) {
		if part > 0.3 {
			cancel()
		}
	}
	p, err := build.Plan(c.Layout, req)
	if err != nil {
		t.Fatal(err)
	}
	x, err := sim.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := x.Run(ctx, exec.One(p), trace.Discard); !errors.Is(err, context.Canceled) || x.Parts() < 2 {
		t.Errorf("a cancelled run in %d parts ends with %v", x.Parts(), err)
	}
	if now := runtime.NumGoroutine(); now > before {
		t.Errorf("%d goroutines, before %d", now, before)
	}
}
