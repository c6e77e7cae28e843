package sim_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/comm"
	"github.com/simccl/simccl/exec"
	"github.com/simccl/simccl/plan"
	"github.com/simccl/simccl/plan/build"
	"github.com/simccl/simccl/sim"
	"github.com/simccl/simccl/topo"
	"github.com/simccl/simccl/topo/fabric"
	"github.com/simccl/simccl/trace"
	"github.com/simccl/simccl/units"
)

// leafSpine is a network of leaves of so many hosts of 8 ports.
func leafSpine(t testing.TB, hosts, perLeaf int, oversub float64, seed uint64) *fabric.Fabric {
	t.Helper()
	n, err := fabric.Generate(fabric.Layout{Kind: "leaf-spine", Hosts: hosts, Nets: 8, Gbit: 400,
		PerLeaf: perLeaf, Oversub: oversub})
	if err != nil {
		t.Fatal(err)
	}
	f, err := n.Bind(slices.Repeat([]int{8}, hosts), seed)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// within runs a plan of which no more than so much is simulated.
func within(t testing.TB, c *comm.Comm, cfg sim.Config, p *plan.Plan, limit units.Time) exec.Result {
	t.Helper()
	if cfg.Comm = c.Layout; limit < units.FromMicros(1e4) {
		cfg.Budget = units.FromMicros(5e4)
	}
	x, err := sim.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	x.Within(limit)
	r, err := x.Run(context.Background(), exec.One(p), trace.Discard)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// What is simulated for some turns or iterations takes as long as the whole, within what
// the result says, over networks that block and with slow ports; links carry the same.
func TestShortenedRunsStayWithinTheirMargin(t *testing.T) {
	oneGoroutine(t)
	cases := []struct {
		f     coll.Func
		algo  coll.Algorithm
		proto coll.Protocol
		count int64
	}{
		{coll.AllReduce, coll.Ring, coll.LL128, 1 << 22},
		{coll.AllReduce, coll.Ring, coll.Simple, 1 << 23},
		{coll.AllGather, coll.Ring, coll.Simple, 1 << 18},
		{coll.AllReduce, coll.Tree, coll.Simple, 1 << 23},
		{coll.Broadcast, coll.Ring, coll.Simple, 1 << 23},
		{coll.AllToAll, 0, coll.Simple, 1 << 18},
	}
	rng := rand.New(rand.NewPCG(7, 20))
	c, systems := nodes(t, "dgx-h100.n2", 10, smallBuffers())
	worst := 0.0
	for i, x := range cases {
		if testing.Short() && i%2 > 0 {
			continue
		}
		req, _, err := c.Request(comm.Op{Func: x.f, Count: x.count, Type: coll.Float32})
		if err != nil {
			t.Fatal(err)
		}
		if req.Channels = 2; !x.f.IsP2P() {
			req.Algo, req.Proto = x.algo, x.proto
		}
		cfg := sim.Config{Systems: systems, Launch: sim.Graph, Kernels: 1}
		what := fmt.Sprintf("%v %v/%v", x.f, x.algo, x.proto)
		if i%2 == 0 {
			cfg.Fabric = leafSpine(t, 10, 2, 2, rng.Uint64())
			what += " over leaves and spines"
		} else {
			cfg.Faults = []sim.Fault{{Rank: -1, Host: rng.IntN(10), Net: rng.IntN(8), Slow: 1.5 +
				3*rng.Float64()}}
			what += fmt.Sprintf(" with %+v", cfg.Faults)
		}
		p, err := build.Plan(c.Layout, req)
		if err != nil {
			t.Fatal(err)
		}
		whole := within(t, c, cfg, p, units.FromMicros(1e9))
		got := within(t, c, cfg, p, units.FromMicros(2e4))
		off := float64(got.Elapsed)/float64(whole.Elapsed) - 1
		worst = max(worst, math.Abs(off))
		if a := got.Account; whole.Account.Method == exec.Window || a.Method != exec.Window ||
			a.Periods == 0 || !a.ByCost {
			t.Errorf("%s: the whole found as %+v, a part as %+v", what, whole.Account, a)
		} else if math.Abs(off) > a.Margin {
			t.Errorf("%s: %v shortened, %v whole: %+.2f %%", what, got.Elapsed, whole.Elapsed, 100*off)
		}
		if a, b := fullest(&got), fullest(&whole); math.Abs(float64(a-b)) > float64(b)/1000 {
			t.Errorf("%s: the fullest link carries %d shortened, %d in all", what, a, b)
		}
		t.Logf("%s: %+.2f %%", what, 100*off)
	}
	t.Logf("worst: %.4f", worst)
}

// longTree is an all_reduce of so many floats by NVLSTree on one channel with small buffers, so that
// it has many iterations.
func longTree(t *testing.T, hosts int, floats int64) (*comm.Comm, []*topo.System, *plan.Plan) {
	t.Helper()
	c, systems := nodes(t, "dgx-h100+nvls.n2", hosts, smallBuffers())
	req, _, err := c.Request(comm.Op{Func: coll.AllReduce, Count: floats, Type: coll.Float32})
	if err != nil {
		t.Fatal(err)
	}
	req.Algo, req.Proto, req.Channels = coll.NVLSTree, coll.Simple, 1
	p, err := build.Plan(c.Layout, req)
	if err != nil {
		t.Fatal(err)
	}
	return c, systems, p
}

// An NVLSTree over a network that has too few iterations for half of it to be saved is
// shortened to as many as are in progress at a time where it would cost much, and only there.
func TestLongTreesOverNetworksAreShortened(t *testing.T) {
	c, systems, p := longTree(t, 6, 7<<20)
	if n := p.Iterations(); n < 3*16 || n >= 3*32 {
		t.Fatalf("%d iterations", n)
	}
	for seed := range uint64(3) {
		cfg := sim.Config{Systems: systems, Launch: sim.Graph, Kernels: 1, NoJitter: true,
			Fabric: leafSpine(t, 6, int(1+seed%2), 2, seed)}
		whole, some := within(t, c, cfg, p, units.FromMicros(1e9)),
			within(t, c, cfg, p, units.FromMicros(1e5))
		got := within(t, c, cfg, p, units.FromMicros(2e3))
		off := float64(got.Elapsed)/float64(whole.Elapsed) - 1
		t.Logf("%d of %d iterations not simulated: %+.2f %%", got.Account.Periods, p.Iterations(), 100*off)
		if some.Elapsed != whole.Elapsed || some.Account.Method == exec.Window {
			t.Errorf("what costs little: %v, %+v, whole %v", some.Elapsed, some.Account, whole.Elapsed)
		}
		if got.Account.Method != exec.Window || got.Account.Periods != p.Iterations()-16 ||
			math.Abs(off) > got.Account.Margin {
			t.Errorf("%v shortened, %v whole, %+v", got.Elapsed, whole.Elapsed, got.Account)
		}
	}
}

// Trees over NVLink switches settle slowly, so that no period recurs: what would be refused
// for its steps is simulated for some iterations, and its time is within the margin.
func TestWhatSettlesSlowlyIsShortened(t *testing.T) {
	c, systems, p := longTree(t, 3, 5<<23)
	cfg := sim.Config{Systems: systems, Launch: sim.Graph, Kernels: 1, NoJitter: true}
	whole := within(t, c, cfg, p, units.FromMicros(1e9))
	got := within(t, c, cfg, p, units.FromMicros(500))
	off := float64(got.Elapsed)/float64(whole.Elapsed) - 1
	t.Logf("%d iterations, %d of them not simulated: %+.2f %%", p.Iterations(), got.Account.Periods, 100*off)
	if whole.Account.Method == exec.Window || got.Account.Method != exec.Window || got.Account.Periods == 0 {
		t.Errorf("the whole found as %+v, a part as %+v", whole.Account, got.Account)
	}
	if math.Abs(off) > got.Account.Margin || fullest(&got) != fullest(&whole) {
		t.Errorf("%v shortened, %v whole: %+.2f %%; links carry %d and %d", got.Elapsed, whole.Elapsed,
			100*off, fullest(&got), fullest(&whole))
	}
}

// Along a chain iterations settle once as many are in progress as there are ranks: what has more
// than twice as many is simulated for so many, and its time is within the margin.
func TestLongChainsAreShortened(t *testing.T) {
	oneGoroutine(t)
	c, systems := nodes(t, "dgx-h100.n2", 5, smallBuffers())
	cfg := sim.Config{Systems: systems, Launch: sim.Graph, Kernels: 1, NoJitter: true}
	for _, f := range []coll.Func{coll.Broadcast, coll.Reduce} {
		req, _, err := c.Request(comm.Op{Func: f, Count: 1 << 23, Type: coll.Float32})
		if err != nil {
			t.Fatal(err)
		}
		req.Algo, req.Proto, req.Channels = coll.Ring, coll.Simple, 2
		p, err := build.Plan(c.Layout, req)
		if err != nil {
			t.Fatal(err)
		}
		cfg.Comm = c.Layout
		x, err := sim.New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		x.Within(units.FromMicros(500))
		m, err := x.InPlaceOf(p)
		if all := p.Iterations(); err != nil || all < 100 || m.Iterations.Ran < int64(c.NRanks) {
			t.Errorf("%v: %+v of %d iterations, %v", f, m.Iterations, all, err)
		}
		whole, got := within(t, c, cfg, p, units.FromMicros(1e9)), within(t, c, cfg, p, units.FromMicros(500))
		off := float64(got.Elapsed)/float64(whole.Elapsed) - 1
		t.Logf("%v: %+v, %+.2f %%", f, got.Account.Reduction.Iterations, 100*off)
		if math.Abs(off) > got.Account.Margin {
			t.Errorf("%v: %v shortened, %v whole, %+v", f, got.Elapsed, whole.Elapsed, got.Account)
		}
	}
}

// Iterations that become shorter in proportion to 1/n are continued so, by half: what stays as it is
// stays, and no result leaves the two.
func TestIterationsThatBecomeShorter(t *testing.T) {
	at := func(n, more float64) units.Time {
		return units.Time((100 + 10*n + more*math.Log(n)) * float64(units.Microsecond))
	}
	if pace := sim.Settled(64, 1024, at(64, 0), at(32, 0), at(16, 0)); math.Abs(pace-1) > 1e-9 {
		t.Errorf("equal iterations go on at %v", pace)
	}
	for _, more := range []float64{20, 100} {
		full, half := at(64, more), at(32, more)
		mean := float64(full-half) / 32 * (1024 - 64)
		exact := float64(at(1024, more)-full) / mean
		if pace := sim.Settled(64, 1024, full, half, at(16, more)); math.Abs(pace-(1+exact)/2) > 0.01 {
			t.Errorf("with %v log n: a pace of %v, half way to %v", more, pace, exact)
		}
	}
	if pace := sim.Settled(64, 1024, at(64, -5), at(32, -5), at(16, -5)); pace != 1 {
		t.Errorf("iterations that become longer go on at %v", pace)
	}
}

// A slow port of a tree is simulated with the nodes above it and right below; the rest
// are near.
func TestTreesWithSlowPortsAreNear(t *testing.T) {
	oneGoroutine(t)
	rng := rand.New(rand.NewPCG(7, 21))
	for _, name := range []string{"dgx-h100.n2", "dgx-h100+nvls.n2"} {
		for _, n := range []int{8, 11} {
			c, systems := nodes(t, name, n, comm.Params{})
			req, _, err := c.Request(comm.Op{Func: coll.AllReduce, Count: 1 << 21, Type: coll.Float32})
			if err != nil {
				t.Fatal(err)
			}
			if req.Algo != coll.NVLSTree {
				req.Algo = coll.Tree
			}
			cfg := sim.Config{Systems: systems, NoJitter: true, Kernels: 1, Fold: sim.FoldNear,
				Faults: []sim.Fault{{Rank: -1, Host: rng.IntN(n), Net: rng.IntN(8), Slow: 2 +
					10*rng.Float64()}}}
			near, _ := simulatePlan(t, c, cfg, req, trace.Discard)
			cfg.Fold = sim.FoldExact
			exact, _ := simulatePlan(t, c, cfg, req, trace.Discard)
			off := float64(near.Elapsed)/float64(exact.Elapsed) - 1
			if near.Account.Method != exec.Near || math.Abs(off) > near.Account.Margin {
				t.Errorf("%v on %d nodes, %+v: %v nearly (%v), %v exactly: %+.1f %%", req.Algo, n, cfg.Faults,
					near.Elapsed, near.Account.Method, exact.Elapsed, 100*off)
			}
			t.Logf("%v on %d nodes, %+v: %+.1f %%", req.Algo, n, cfg.Faults, 100*off)
		}
	}
}

// What would take minutes or much memory is refused before anything is laid out, with
// the forecast and what to do instead.
func TestLongRunsAreForecast(t *testing.T) {
	c, systems := nodes(t, "dgx-h100.n2", 128, comm.Params{})
	req, _, err := c.Request(comm.Op{Func: coll.AllToAll, Count: 1 << 18, Type: coll.Float32})
	if err != nil {
		t.Fatal(err)
	}
	p, err := build.Plan(c.Layout, req)
	if err != nil {
		t.Fatal(err)
	}
	for _, cfg := range []sim.Config{{Fabric: leafSpine(t, 128, 16, 2, 1)},
		{Faults: []sim.Fault{{Rank: 100, Slow: 1, Down: true}}}} {
		cfg.Comm, cfg.Systems = c.Layout, systems
		x, err := sim.New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		_, err = x.Run(context.Background(), exec.One(p), trace.Discard)
		var refused *exec.NotImplementedError
		if !errors.As(err, &refused) {
			t.Fatalf("%+v: got %v", cfg.Faults, err)
		}
		for _, word := range []string{"steps", "connections", " of a processor", "GB", "--fold exact",
			"fewer nodes"} {
			if !strings.Contains(refused.Missing, word) {
				t.Errorf("%q does not say %q", refused.Missing, word)
			}
		}
	}
}

// Folding changes nothing, bit for bit, with faults, on unequal hosts and over networks.
// More programs: -rapid.checks 500.
func TestRandomFoldsEqualUnfolded(t *testing.T) {
	oneGoroutine(t)
	folded, programs, how := 0, 0, map[string]int{}
	rapid.Check(t, func(rt *rapid.T) {
		if programs++; testing.Short() && programs > 25 {
			return
		}
		m := &steadyMachine{name: rapid.SampledFrom([]string{"dgx-h100.n2", "dgx-h100+nvls.n2",
			"dgx-a100.n2"}).Draw(rt, "machine"), nodes: rapid.IntRange(2, 5).Draw(rt, "nodes")}
		differ := rapid.SampledFrom([]string{"port", "rank", "leaf-spine", "wide leaf-spine", "rails",
			"rails", "rails", "systems", "hosts", "hosts"}).Draw(rt, "differ")
		if differ == "hosts" {
			m.name = "dgx-h100.n2"
			m.c, m.systems = unequalNodes(t,
				rapid.SliceOfN(rapid.SampledFrom([]string{m.name, m.name, "dgx-a100.n2"}), m.nodes,
					m.nodes).Draw(rt, "hosts"), smallBuffers())
		} else {
			m.c, m.systems = nodes(t, m.name, m.nodes, smallBuffers())
		}
		req := steadyRequest(rt, m)
		req.Count = req.Count/16 + 1
		if rapid.IntRange(0, 3).Draw(rt, "even") > 0 { // programs of equal parts
			req.Count = (req.Count>>12 + 1) << 12
		}
		cfg := sim.Config{Systems: m.systems, NoJitter: true, Launch: sim.Graph, Kernels: 1,
			Fold: sim.Unfolded}
		switch differ {
		case "hosts":
		case "port":
			cfg.Faults = []sim.Fault{{Rank: -1, Host: rapid.IntRange(0, m.nodes-1).Draw(rt, "host"),
				Net: rapid.IntRange(0, 7).Draw(rt, "net"), Slow: rapid.Float64Range(1.1, 8).Draw(rt, "slow")}}
		case "rank":
			cfg.Faults = []sim.Fault{{Rank: rapid.IntRange(0, m.c.NRanks-1).Draw(rt, "rank"),
				Slow: rapid.Float64Range(1.1, 4).Draw(rt, "slow")}}
		case "systems": // equal hosts that are not known to be equal
			other := *m.systems[0]
			m.systems = append(slices.Clone(m.systems[:m.nodes-1]), &other)
			cfg.Systems = m.systems
		case "rails":
			n, err := fabric.Generate(fabric.Layout{Kind: "rail", Hosts: m.nodes, Nets: 8, Gbit: 400,
				PerLeaf: m.nodes, Spines: 1, Oversub: 1})
			if err != nil {
				rt.Fatal(err)
			}
			if cfg.Fabric, err = n.Bind(slices.Repeat([]int{8}, m.nodes), 1); err != nil {
				rt.Fatal(err)
			}
		default:
			cfg.Fabric = leafSpine(t, m.nodes, rapid.IntRange(1, 3).Draw(rt, "per leaf"),
				map[string]float64{"leaf-spine": 2, "wide leaf-spine": 0.5}[differ], 1)
		}
		want, _ := simulatePlan(t, m.c, cfg, req, trace.Discard)
		cfg.Fold = sim.FoldExact
		got, _ := simulatePlan(t, m.c, cfg, req, trace.Discard)
		if got.Account.Method == exec.Folded {
			folded++
			how[differ]++
		}
		if same := got.Elapsed == want.Elapsed && slices.Equal(got.Finish, want.Finish); !same ||
			fullest(&got) != fullest(&want) {
			rt.Fatalf("%d %s that differ by %s, %v %v/%v of %d: %v folded (%v), %v rank by rank", m.nodes,
				m.name, differ, req.Func, req.Algo, req.Proto, req.Count, got.Elapsed, got.Account.Method,
				want.Elapsed)
		}
	})
	t.Logf("%d of %d programs folded: %v", folded, programs, how)
	if folded == 0 {
		t.Error("no program folded")
	}
}
