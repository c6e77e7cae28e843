package sim_test

import (
	"flag"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/comm"
	"github.com/simccl/simccl/dev/golden"
	"github.com/simccl/simccl/exec"
	"github.com/simccl/simccl/plan"
	"github.com/simccl/simccl/sim"
	"github.com/simccl/simccl/sim/gpu"
	"github.com/simccl/simccl/topo"
	"github.com/simccl/simccl/trace"
	"github.com/simccl/simccl/units"
	"pgregory.net/rapid"
)

// sameResult compares all of two results but their accounts.
func sameResult(a, b *exec.Result) bool {
	return a.Elapsed == b.Elapsed && a.AlgBW == b.AlgBW && a.BusBW == b.BusBW && a.Events == b.Events &&
		slices.Equal(a.Finish, b.Finish) && slices.Equal(a.Links, b.Links)
}

// bothWays runs a request in full and with its steady state skipped, and
// reports where they differ.
func bothWays(t testing.TB, c *comm.Comm, cfg sim.Config, req plan.Request) exec.Result {
	t.Helper()
	cfg.NoSkip = true
	want, _ := simulatePlan(t, c, cfg, req, trace.Discard)
	cfg.NoSkip = false
	got, _ := simulatePlan(t, c, cfg, req, trace.Discard)
	if want.Account.Periods != 0 || want.Account.Skipped != 0 {
		t.Errorf("the whole run says that it skipped %d periods", want.Account.Periods)
	}
	if !sameResult(&got, &want) {
		t.Errorf("%v %v/%v of %d elements, %d channels: %v with %d periods skipped, %v in full; %d and %d "+
			"events; links %v and %v", req.Func, req.Algo, req.Proto, req.Count, req.Channels,
			got.Elapsed, got.Account.Periods, want.Elapsed, got.Events, want.Events, got.Links, want.Links)
	}
	return got
}

// steadyMachine is a communicator of the property test.
type steadyMachine struct {
	name    string
	nodes   int
	c       *comm.Comm
	systems []*topo.System
}

// smallBuffers make many periods of few bytes: a FIFO of 8 steps of 16 KiB.
func smallBuffers() comm.Params {
	var p comm.Params
	p.Connect.BuffSize = units.Some[int64](128 << 10)
	p.Connect.LLBuffSize = units.Some[int64](64 << 10)
	p.Connect.LL128BuffSize = units.Some[int64](120 << 10)
	return p
}

// Periods that are skipped change nothing: times of all ranks, bytes, busy times
// and queues of all links, and events are those of the whole run, folded or not,
// on 200 programs of every algorithm (make equal: 2,500).
func TestSkippedEqualsWhole(t *testing.T) {
	oneGoroutine(t)
	machines := []*steadyMachine{{name: "dgx-h100.n2", nodes: 1}, {name: "dgx-h100.n2", nodes: 2},
		{name: "dgx-h100+nvls.n2", nodes: 1}, {name: "dgx-h100+nvls.n2", nodes: 2},
		{name: "hgx-a100-4.n2", nodes: 3}, {name: "gh200.n2", nodes: 4}, {name: "dgx-1v.n2", nodes: 1}}
	for _, m := range machines {
		m.c, m.systems = nodes(t, m.name, m.nodes, smallBuffers())
	}
	programs, skipped := 0, 0
	seen := map[coll.Algorithm]int{}
	rapid.Check(t, func(rt *rapid.T) {
		for range programsDrawn() {
			m := rapid.SampledFrom(machines).Draw(rt, "machine")
			req := steadyRequest(rt, m)
			class := sim.ClassOf(m.systems[0])
			cfg := sim.Config{Systems: m.systems, Class: &class, NoJitter: true, Fold: sim.Unfolded,
				Launch: sim.Graph, Kernels: rapid.IntRange(1, 2).Draw(rt, "kernels"),
				QPs: rapid.SampledFrom([]int{1, 1, 3}).Draw(rt, "qps"), SplitData: rapid.Bool().Draw(rt,
					"split")}
			if rapid.Bool().Draw(rt, "folded") {
				cfg.Fold = sim.FoldExact
			}
			got := bothWays(t, m.c, cfg, req)
			if t.Failed() {
				rt.Fatalf("on %d %s", m.nodes, m.name)
			}
			programs++
			if got.Account.Periods > 0 {
				skipped++
				seen[req.Algo]++
			}
		}
	})
	t.Logf("%d programs, periods skipped in %d: %v", programs, skipped, seen)
	if skipped*4 < programs {
		t.Errorf("periods were skipped in %d of %d programs: too few to show anything", skipped, programs)
	}
}

// programsDrawn is how many programs a check of a random test draws: two, and five where
// -rapid.checks asks for more than the usual checks, as make equal does.
func programsDrawn() int {
	if f := flag.Lookup("rapid.checks"); f.Value.String() != f.DefValue {
		return 5
	}
	return 2
}

// steadyRequest draws a request of some loops.
func steadyRequest(t *rapid.T, m *steadyMachine) plan.Request {
	f := rapid.SampledFrom([]coll.Func{coll.AllReduce, coll.AllReduce, coll.AllGather, coll.ReduceScatter,
		coll.Broadcast, coll.Reduce, coll.SendRecv, coll.AllToAll}).Draw(t, "op")
	count := rapid.Int64Range(1<<16, 1<<20).Draw(t, "count") * rapid.Int64Range(1, 8).Draw(t, "times") * 4
	if f.PerRank() {
		count = count/int64(m.c.NRanks) + 1
	}
	req, _, err := m.c.Request(comm.Op{Func: f, Count: count, Type: coll.Float32})
	if err != nil {
		t.Fatal(err)
	}
	if f.IsP2P() {
		return req
	}
	algos := []coll.Algorithm{coll.Ring}
	if f == coll.AllReduce {
		algos = append(algos, coll.Tree)
		if m.name == "dgx-h100+nvls.n2" {
			algos = append(algos, coll.NVLS)
			if m.nodes > 1 {
				algos[2] = coll.NVLSTree
			}
		}
	}
	req.Algo = rapid.SampledFrom(algos).Draw(t, "algo")
	if m.nodes == 1 && req.Algo == coll.Tree && m.name != "dgx-h100.n2" {
		req.Algo = coll.Ring
	}
	req.Proto = rapid.SampledFrom([]coll.Protocol{coll.LL, coll.LL128, coll.Simple, coll.Simple}).Draw(t,
		"proto")
	if req.Algo.IsNVLS() {
		req.Proto = coll.Simple
	}
	req.Warps = 16
	req.Channels = rapid.IntRange(1, min(4, m.c.NChannels)).Draw(t, "channels")
	return req
}

// A whole run has no steady state where each period is its own: with a trace, where
// packets are lost. With jitter it has windows.
func TestNothingIsSkippedWherePeriodsDiffer(t *testing.T) {
	c, systems := nodes(t, "dgx-h100.n2", 2, smallBuffers())
	req, _, err := c.Request(comm.Op{Func: coll.AllReduce, Count: 8 << 20, Type: coll.Float32})
	if err != nil {
		t.Fatal(err)
	}
	req.Algo, req.Proto, req.Warps, req.Channels = coll.Ring, coll.LL, 16, 2
	class := sim.ClassOf(systems[0])
	plain := sim.Config{Systems: systems, NoJitter: true, Class: &class}
	if r := bothWays(t, c, plain, req); r.Account.Periods == 0 || r.Account.Skipped <= 0 ||
		r.Account.Skipped >= r.Elapsed*3 {
		t.Errorf("no periods were skipped: %+v", r.Account)
	}
	jitter := plain
	jitter.NoJitter = false
	if r := atOnce(t, c, jitter, req); r.Account.Method != exec.Window {
		t.Errorf("with jitter: %+v, want a window", r.Account)
	}
	lossy := jitter
	lossy.Faults = []sim.Fault{{Rank: -1, Host: 0, Net: 0, Slow: 1, Loss: 1e-6}}
	if r, _ := simulatePlan(t, c, lossy, req, trace.Discard); r.Account.Periods != 0 {
		t.Errorf("losses: %d periods were skipped", r.Account.Periods)
	}
	small := req
	small.Count = 1 << 18
	var m trace.Memory
	if r, _ := simulatePlan(t, c, plain, small, &m); r.Account.Periods != 0 {
		t.Errorf("traced: %d periods were skipped", r.Account.Periods)
	}
	if class.Jitter == (gpu.JitterCost{}) {
		t.Error("the class has no jitter: the test shows nothing")
	}
}

// onOwnMachines calls do for each machine of our own goldens, of 2 to 64 ranks, with -short for
// the first of them, and returns how many there are.
func onOwnMachines(t *testing.T, do func(name string, c *comm.Comm, systems []*topo.System)) int {
	seen := map[string]bool{}
	for _, r := range golden.Own(t) {
		if seen[r.Machine] || testing.Short() && len(seen) > 5 {
			continue
		}
		seen[r.Machine] = true
		c, systems := machine(t, &r, comm.Params{})
		if c == nil || c.NRanks < 2 || c.NRanks > 64 {
			continue
		}
		do(r.Machine, c, systems)
	}
	return len(seen)
}

// Periods that are skipped change nothing on any machine: what NCCL takes for an
// all_reduce of 1 GiB, and for 64 MiB rank by rank.
func TestSkippedEqualsWholeOnEveryMachine(t *testing.T) {
	runs, skipped := 0, 0
	machines := onOwnMachines(t, func(name string, c *comm.Comm, systems []*topo.System) {
		for _, x := range []struct {
			bytes int64
			fold  sim.Folding
		}{{1 << 30, sim.FoldExact}, {64 << 20, sim.Unfolded}} {
			req, _, err := c.Request(comm.Op{Func: coll.AllReduce, Count: x.bytes / 4, Type: coll.Float32})
			if err != nil {
				t.Fatal(err)
			}
			runs++
			if got := bothWays(t, c, sim.Config{Systems: systems, NoJitter: true, Fold: x.fold, Kernels: 1},
				req); got.Account.Periods > 0 {
				skipped++
			}
		}
	})
	t.Logf("%d runs on %d machines, periods skipped in %d", runs, machines, skipped)
	if skipped == 0 {
		t.Error("nothing was skipped")
	}
}

// Ranks that are merged change nothing on any machine: what NCCL takes for an all_reduce of
// 1 GiB.
func TestFoldedEqualsUnfoldedOnEveryMachine(t *testing.T) {
	folded := 0
	machines := onOwnMachines(t, func(name string, c *comm.Comm, systems []*topo.System) {
		req, _, err := c.Request(comm.Op{Func: coll.AllReduce, Count: 1 << 28, Type: coll.Float32})
		if err != nil {
			t.Fatal(err)
		}
		begin := cpuTime(t)
		cfg := sim.Config{Systems: systems, NoJitter: true, Fold: sim.Unfolded, Kernels: 1}
		want, _ := simulatePlan(t, c, cfg, req, trace.Discard)
		cfg.Fold = sim.FoldExact
		got, _ := simulatePlan(t, c, cfg, req, trace.Discard)
		if got.Account.Method == exec.Folded {
			folded++
		}
		if took := cpuTime(t) - begin; took > time.Second {
			t.Logf("%s, %d ranks, %v %v/%v: %v", name, c.NRanks, req.Func, req.Algo, req.Proto,
				took.Round(100*time.Millisecond))
		}
		if got.Elapsed != want.Elapsed || !slices.Equal(got.Finish, want.Finish) ||
			fullest(&got) != fullest(&want) {
			t.Errorf("%s, %v/%v: %v folded (%v), %v rank by rank", name, req.Algo, req.Proto, got.Elapsed,
				got.Account.Method, want.Elapsed)
		}
	})
	if t.Logf("%d machines, %d folded", machines, folded); folded == 0 {
		t.Error("no machine folded")
	}
}

// A trace that shows periods as such is of a run that counts them: it has the times
// and the loads of the whole one, and links carry in it what they did.
func TestTraceOfPeriods(t *testing.T) {
	c, systems := nodes(t, "dgx-h100.n2", 2, smallBuffers())
	req, _, err := c.Request(comm.Op{Func: coll.AllReduce, Count: 2 << 20, Type: coll.Float32})
	if err != nil {
		t.Fatal(err)
	}
	req.Algo, req.Proto, req.Warps, req.Channels = coll.Ring, coll.LL, 16, 1
	cfg := sim.Config{Systems: systems, NoJitter: true, NoSkip: true, Kernels: 1, Trace: sim.TraceOptions{
		Detail: sim.DetailStep}}
	var whole, shown trace.Memory
	want, _ := simulatePlan(t, c, cfg, req, &whole)
	cfg.NoSkip, cfg.NoJitter, cfg.Trace.Periods = false, false, true // periods have no jitter
	got, _ := simulatePlan(t, c, cfg, req, &shown)
	if got.Account.Periods == 0 || !sameResult(&got, &want) {
		t.Errorf("%d periods were counted; %v, in full %v", got.Account.Periods, got.Elapsed, want.Elapsed)
	}
	if len(shown.Events) >= len(whole.Events) {
		t.Errorf("%d events, of the whole run %d", len(shown.Events), len(whole.Events))
	}
	a, b := summed(&shown), summed(&whole)
	if a.periods == 0 || b.periods != 0 || a.end != b.end || a.kernels != b.kernels || a.steps != b.steps {
		t.Errorf("%d periods, end %d, %d in kernels, %d steps; of the whole run %d, %d, %d, %d", a.periods,
			a.end, a.kernels, a.steps, b.periods, b.end, b.kernels, b.steps)
	}
	for name, area := range b.areas {
		if d := a.areas[name] - area; math.Abs(d) > 1e-3*area {
			t.Errorf("%s: an area of %g, of the whole run %g", name, a.areas[name], area)
		}
	}
	if len(b.areas) == 0 {
		t.Error("no counters of links")
	}
}

// sums are what a trace adds up to.
type sums struct {
	periods      int
	end, kernels units.Time // of the collectives; time in kernels
	steps        int64      // of proxies
	areas        map[string]float64
}

// summed adds up a trace. Counters come in order of time, link by link.
func summed(m *trace.Memory) sums {
	s := sums{areas: map[string]float64{}}
	type value struct {
		v  float64
		at units.Time
	}
	last := map[string]value{}
	counters := slices.Clone(m.Events)
	slices.SortStableFunc(counters, func(a, b trace.Event) int { return int(a.Start - b.Start) })
	for i := range counters {
		e := &counters[i]
		switch {
		case e.Cat == "period":
			s.periods++
		case e.Cat == "COLL":
			s.end = max(s.end, (e.Start+e.Dur)/trace.Tick)
		case e.Cat == "GPU":
			s.kernels += e.Dur / trace.Tick
		case e.Cat == "PROXY" && strings.HasPrefix(e.Name, "Progress"):
			for _, a := range e.Args {
				if a.Key == "Steps" {
					s.steps += a.Int
				}
			}
		case e.Phase == trace.Counter && e.Args[0].Key == "GB/s":
			l := last[e.Name]
			s.areas[e.Name] += l.v * float64(e.Start-l.at)
			last[e.Name] = value{e.Args[0].Num, e.Start}
		}
	}
	return s
}
