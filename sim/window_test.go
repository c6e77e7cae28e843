package sim_test

import (
	"context"
	"fmt"
	"math"
	"testing"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/comm"
	"github.com/simccl/simccl/dev/golden"
	"github.com/simccl/simccl/exec"
	"github.com/simccl/simccl/plan"
	"github.com/simccl/simccl/plan/build"
	"github.com/simccl/simccl/plan/launch"
	"github.com/simccl/simccl/sim"
	"github.com/simccl/simccl/topo"
	"github.com/simccl/simccl/trace"
	"github.com/simccl/simccl/units"
)

// windowCase is an operation whose sizes go from below a window to beyond it.
type windowCase struct {
	machine string
	nodes   int
	f       coll.Func
	algo    coll.Algorithm
	proto   coll.Protocol
	step    int64 // elements: of some iterations, on every channel equally
}

func windowCases() []windowCase {
	return []windowCase{
		{"dgx-h100.n2", 1, coll.AllReduce, coll.Ring, coll.Simple, 1 << 20},
		{"dgx-h100.n2", 2, coll.AllReduce, coll.Ring, coll.LL, 1 << 18},
		{"dgx-h100.n2", 2, coll.AllGather, coll.Ring, coll.Simple, 1 << 16},
		{"dgx-h100.n2", 2, coll.Broadcast, coll.Ring, coll.LL128, 1 << 18},
		{"dgx-h100.n2", 2, coll.AllReduce, coll.Tree, coll.Simple, 1 << 19},
		{"dgx-h100+nvls.n2", 1, coll.AllReduce, coll.NVLS, coll.Simple, 1 << 21},
		{"dgx-h100+nvls.n2", 2, coll.AllReduce, coll.NVLSTree, coll.Simple, 1 << 20},
		{"dgx-h100.n2", 1, coll.AllToAll, 0, coll.Simple, 1 << 19},
		{"dgx-h100.n2", 2, coll.SendRecv, 0, coll.Simple, 1 << 19},
		{"dgx-h100.n2", 4, coll.Scatter, 0, coll.Simple, 1 << 19},
		{"dgx-h100.n2", 4, coll.Gather, 0, coll.Simple, 1 << 19},
	}
}

// request is the operation of so many steps.
func (w *windowCase) request(t testing.TB, c *comm.Comm, steps int64) plan.Request {
	t.Helper()
	req, _, err := c.Request(comm.Op{Func: w.f, Count: steps * w.step, Type: coll.Float32})
	if err != nil {
		t.Fatal(err)
	}
	req.Algo, req.Proto, req.Warps, req.Channels = w.algo, w.proto, 16, 2
	return req
}

func (w *windowCase) String() string {
	return fmt.Sprintf("%d %s %v %v/%v", w.nodes, w.machine, w.f, w.algo, w.proto)
}

// each calls do for every case, with its communicator and a Config with jitter.
func each(t *testing.T, do func(t *testing.T, w *windowCase, c *comm.Comm, cfg sim.Config)) {
	for _, w := range windowCases() {
		t.Run(w.String(), func(t *testing.T) {
			c, systems := nodes(t, w.machine, w.nodes, smallBuffers())
			class := sim.ClassOf(systems[0])
			do(t, &w, c, sim.Config{Systems: systems, Class: &class, Launch: sim.Graph, Kernels: 1, Seed: 1})
		})
	}
}

// atOnce simulates windows however little the whole would cost.
func atOnce(t testing.TB, c *comm.Comm, cfg sim.Config, req plan.Request) exec.Result {
	t.Helper()
	p, err := build.Plan(c.Layout, req)
	if err != nil {
		t.Fatal(err)
	}
	cfg.Comm = c.Layout
	x, err := sim.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	x.Within(0)
	r, err := x.Run(context.Background(), exec.One(p), trace.Discard)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// Where an operation has no more iterations than a window, it is the whole run's
// result; beyond it the time is within 3 %, the bytes of links are exact, and
// the number of programs is the same.
func TestWindowsAreTheWholeRun(t *testing.T) {
	oneGoroutine(t)
	each(t, func(t *testing.T, w *windowCase, c *comm.Comm, cfg sim.Config) {
		if testing.Short() && w.algo == coll.NVLS {
			t.Skip("-short: a window of NVLS has 64 iterations")
		}
		below, beyond := 0, 0
		for _, steps := range golden.Few([]int64{1, 2, 4, 27, 9, 16}, 3) { // one within a window, one beyond
			req := w.request(t, c, steps)
			got := atOnce(t, c, cfg, req)
			all := cfg
			all.NoSkip = true
			want, _ := simulatePlan(t, c, all, req, trace.Discard)
			if want.Account.Method != exec.Each || want.Account.Periods != 0 {
				t.Fatalf("the whole run is %+v", want.Account)
			}
			if got.Account.Method != exec.Window {
				below++
				if !sameResult(&got, &want) {
					t.Errorf("%d steps: %v, the whole run %v", steps, got.Elapsed, want.Elapsed)
				}
				continue
			}
			beyond++
			if off := float64(got.Elapsed)/float64(want.Elapsed) - 1; math.Abs(off) > 0.03 {
				t.Errorf("%d steps: %v, the whole run %v: %+.1f %%", steps, got.Elapsed, want.Elapsed,
					100*off)
			}
			if a := got.Account.Margin; a < 0.03 || a > 0.08 || got.Account.Periods <= 0 ||
				got.Account.Skipped <= 0 || got.Account.Programs != want.Account.Programs {
				t.Errorf("%d steps: account %+v, of the whole run %+v", steps, got.Account, want.Account)
			}
			sameBytes(t, w, &got, &want)
		}
		if below == 0 || beyond == 0 {
			t.Errorf("%d sizes within a window and %d beyond it: the test shows nothing", below, beyond)
		}
	})
}

// Where few thread groups draw, their phases wander for longer than a window, and it says so.
func TestWindowsOfFewGroups(t *testing.T) {
	oneGoroutine(t)
	c, systems := nodes(t, "h200x4-h4x1.n2", 6, comm.Params{})
	req, _, err := c.Request(comm.Op{Func: coll.AllReduce, Count: 16 << 20, Type: coll.Float32})
	if err != nil {
		t.Fatal(err)
	}
	req.Algo, req.Proto, req.Channels, req.Warps = coll.Ring, coll.LL, 5, 16
	cfg := sim.Config{Systems: systems, Launch: sim.Graph, Kernels: 1, Seed: 1}
	whole, _ := simulatePlan(t, c, cfg, req, trace.Discard)
	got := atOnce(t, c, cfg, req)
	cfg.NoSkip = true
	want, _ := simulatePlan(t, c, cfg, req, trace.Discard)
	if off := math.Abs(float64(got.Elapsed)/float64(want.Elapsed) - 1); off < 0.03 ||
		off > got.Account.Margin {
		t.Errorf("%.2f %% off, %+v; at least 3 %%, or the test shows nothing", 100*off, got.Account)
	}
	if whole.Account.Method != exec.Each || !sameResult(&whole, &want) {
		t.Errorf("by default %v (%v), the whole run %v: it costs little", whole.Elapsed, whole.Account.Method,
			want.Elapsed)
	}
}

// Blocks of a window are aligned as those of the whole: copies of what is not are slower.
func TestWindowsOfBlocksThatAreNotAligned(t *testing.T) {
	oneGoroutine(t)
	for _, w := range golden.Few([]windowCase{
		{"dgx-h100.n2", 1, coll.AllToAll, 0, coll.Simple, 1<<19 + 1},
		{"dgx-h100.n2", 1, coll.AllGather, coll.Ring, coll.Simple, 1<<16 + 1},
		{"dgx-h100.n2", 1, coll.ReduceScatter, coll.Ring, coll.Simple, 1<<16 + 1},
	}, 2) {
		c, systems := nodes(t, w.machine, w.nodes, smallBuffers())
		class := sim.ClassOf(systems[0])
		cfg := sim.Config{Systems: systems, Class: &class, Launch: sim.Graph, Kernels: 1, Seed: 1}
		took := func(step int64, noSkip bool) exec.Result {
			w.step, cfg.NoSkip = step, noSkip
			return atOnce(t, c, cfg, w.request(t, c, 27))
		}
		got, want, aligned := took(w.step, false), took(w.step, true), took(w.step-1, true)
		off := float64(got.Elapsed)/float64(want.Elapsed) - 1
		if got.Account.Method != exec.Window || math.Abs(off) > 0.03 ||
			float64(want.Elapsed) < 1.05*float64(aligned.Elapsed) {
			t.Errorf("%v: %v as %v, the whole run %v, aligned %v", &w, got.Elapsed, got.Account.Method,
				want.Elapsed, aligned.Elapsed)
		}
	}
}

// sameBytes compares what links carry. Of LL and LL128 that is the payload over a
// share, and rounded for each of the runs that are added up.
func sameBytes(t *testing.T, w *windowCase, got, want *exec.Result) {
	t.Helper()
	for i := range want.Links {
		a, b := &got.Links[i], &want.Links[i]
		off := a.Bytes - b.Bytes
		if most := units.Bytes(3 + got.Account.Periods); a.Name != b.Name || off != 0 &&
			(w.proto == coll.Simple || off > most || off < -most) {
			t.Errorf("%s carries %d bytes, in the whole run %s %d", a.Name, a.Bytes, b.Name, b.Bytes)
		}
	}
}

// Beyond a window more iterations take longer, and as much longer for each.
func TestWindowsGrowWithTheSize(t *testing.T) {
	each(t, func(t *testing.T, w *windowCase, c *comm.Comm, cfg sim.Config) {
		cfg.Windows = new(sim.Windows)
		last, windows := units.Time(0), 0
		for steps := int64(1); steps <= 1<<10; steps *= 2 {
			r := atOnce(t, c, cfg, w.request(t, c, steps))
			if r.Elapsed <= last {
				t.Errorf("%d steps take %v, half as many %v", steps, r.Elapsed, last)
			}
			if last = r.Elapsed; r.Account.Method == exec.Window {
				windows++
			}
		}
		if windows < 5 {
			t.Errorf("%d windows: the test shows nothing", windows)
		}
	})
}

// What runs share changes nothing: not which came first, nor that there are others.
func TestSharedWindowsChangeNothing(t *testing.T) {
	oneGoroutine(t)
	each(t, func(t *testing.T, w *windowCase, c *comm.Comm, cfg sim.Config) {
		shared := cfg
		shared.Windows = new(sim.Windows)
		for _, steps := range []int64{64, 30, 1, 64, 31} {
			req := w.request(t, c, steps)
			a := atOnce(t, c, cfg, req)
			b := atOnce(t, c, shared, req)
			if !sameResult(&a, &b) || a.Account != b.Account {
				t.Errorf("%d steps: %v %+v, with shared windows %v %+v", steps, a.Elapsed, a.Account,
					b.Elapsed, b.Account)
			}
		}
	})
}

// Sizes of groups share windows, which changes nothing either.
func TestGroupsShareWindows(t *testing.T) {
	oneGoroutine(t)
	c, systems := nodes(t, "dgx-h100+nvls.n2", 2, comm.Params{})
	cfg := sim.Config{Comm: c.Layout, Systems: systems, Launch: sim.Graph}
	shared := cfg
	shared.Windows = new(sim.Windows)
	for _, floats := range []int64{1 << 26, 1 << 27, 1 << 26} {
		p := grouped(t, c, launch.Call{Func: coll.AllReduce, Type: coll.Float32, Count: floats}, 4)
		var all [2]exec.Result
		for i, cfg := range []sim.Config{cfg, shared} {
			x, err := sim.New(cfg)
			if err != nil {
				t.Fatal(err)
			}
			if all[i], err = x.Run(context.Background(), exec.One(p), trace.Discard); err != nil {
				t.Fatal(err)
			}
		}
		if !sameResult(&all[0], &all[1]) || all[0].Account != all[1].Account ||
			all[0].Account.Method != exec.Window {
			t.Errorf("%d floats: %v %+v, with shared windows %v %+v", floats, all[0].Elapsed, all[0].Account,
				all[1].Elapsed, all[1].Account)
		}
	}
}

// A size that would take minutes in full is no longer refused.
func TestWindowsMakeLargeSizesAffordable(t *testing.T) {
	c, systems := dgx(t, 2)
	p, err := build.Plan(c, plan.Request{Func: coll.AllReduce, Count: 1 << 40, Type: coll.Int8,
		Algo: coll.Ring, Proto: coll.LL, Channels: 2, Warps: 16})
	if err != nil {
		t.Fatal(err)
	}
	x, err := sim.New(sim.Config{Comm: c, Systems: systems})
	if err != nil {
		t.Fatal(err)
	}
	r, err := x.Run(context.Background(), exec.One(p), nil)
	if err != nil || r.Account.Method != exec.Window || r.Account.ByCost {
		t.Errorf("1 TiB: %v, %+v", err, r.Account)
	}
}

// BenchmarkWindow is one size with jitter that has a window, 16 GiB on two DGX H100.
func BenchmarkWindow(b *testing.B) {
	c, systems := nodes(b, "dgx-h100+nvls.n2", 2, comm.Params{})
	benchWindow(b, c, systems)
}

func benchWindow(b *testing.B, c *comm.Comm, systems []*topo.System) {
	req, _, err := c.Request(comm.Op{Func: coll.AllReduce, Count: 4 << 30, Type: coll.Float32})
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if r, _ := simulatePlan(b, c, sim.Config{Systems: systems, Seed: 1}, req,
			trace.Discard); r.Account.Method != exec.Window {
			b.Fatalf("no window: %+v", r.Account)
		}
	}
}
