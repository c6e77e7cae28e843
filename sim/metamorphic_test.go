package sim_test

import (
	"context"
	"testing"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/comm"
	"github.com/simccl/simccl/connect"
	"github.com/simccl/simccl/dev/golden"
	"github.com/simccl/simccl/exec"
	"github.com/simccl/simccl/plan"
	"github.com/simccl/simccl/plan/build"
	"github.com/simccl/simccl/sim"
	"github.com/simccl/simccl/topo"
	"github.com/simccl/simccl/trace"
	"github.com/simccl/simccl/units"
)

// faster returns the systems with the speed of the chosen links times factor:
// only the simulated wires change, NCCL's decisions stay what they were.
func faster(systems []*topo.System, factor float64, chosen func(topo.LinkKind) bool,
	ports bool) []*topo.System {
	s := *systems[0]
	s.Links = append([]topo.Link(nil), s.Links...)
	for i := range s.Links {
		if chosen(s.Links[i].Kind) {
			s.Links[i].BW = units.GBps(float64(s.Links[i].BW) * factor)
		}
	}
	s.Nodes = append([]topo.Node(nil), s.Nodes...)
	for i := range s.Nodes {
		if n := s.Nodes[i].Net; n != nil && ports {
			port := *n
			port.BW = units.GBps(float64(port.BW) * factor)
			s.Nodes[i].Net = &port
		}
	}
	out := make([]*topo.System, len(systems))
	for i := range out {
		out[i] = &s
	}
	return out
}

// forced lists the requests that the metamorphic tests put to a machine.
func forced(t testing.TB, c *comm.Comm, bytes int64) []plan.Request {
	t.Helper()
	var out []plan.Request
	for _, f := range []coll.Func{coll.AllReduce, coll.AllGather, coll.ReduceScatter, coll.Broadcast} {
		for _, a := range []coll.Algorithm{coll.Ring, coll.Tree, coll.NVLSTree} {
			if a != coll.Ring && f != coll.AllReduce || a == coll.NVLSTree && len(c.NVLS) == 0 {
				continue
			}
			count := bytes / 4
			if f.PerRank() {
				count /= int64(c.NRanks)
			}
			req, _, err := c.Request(comm.Op{Func: f, Count: count, Type: coll.Float32})
			if err != nil {
				t.Fatal(err)
			}
			req.Algo, req.Proto = a, coll.Simple
			req.Channels, req.Warps = 8, 16
			out = append(out, req)
		}
	}
	return out
}

// More bandwidth is never slower, on any kind of wire.
func TestMoreBandwidthIsNeverSlower(t *testing.T) {
	kinds := []struct {
		name   string
		ports  bool
		chosen func(topo.LinkKind) bool
	}{
		{"NVLink", false, func(k topo.LinkKind) bool { return k == topo.LinkNVL }},
		{"network", true, func(k topo.LinkKind) bool { return k == topo.LinkNET }},
		{"all", true, func(topo.LinkKind) bool { return true }},
	}
	for _, name := range []string{"dgx-h100+nvls.n2", "dgx-a100.n2"} {
		c, systems := nodes(t, name, 2, comm.Params{})
		for _, req := range forced(t, c, 16<<20) {
			cfg := sim.Config{Systems: systems, NoJitter: true, Kernels: 1}
			class := sim.ClassOf(systems[0])
			cfg.Class = &class
			turn := units.FromMicros(class.Net.Turn)
			base, _ := simulatePlan(t, c, cfg, req, trace.Discard)
			for _, k := range kinds {
				last := base.Elapsed
				for _, factor := range []float64{1.5, 4} {
					cfg.Systems = faster(systems, factor, k.chosen, k.ports)
					r, _ := simulatePlan(t, c, cfg, req, trace.Discard)
					// Steps reorder by a fraction of a slice, and a proxy thread may
					// come a turn later; never by more.
					if r.Elapsed > last+last/500+turn {
						t.Errorf("%s %v %v: %s %g times as fast: %v, was %v", name, req.Func, req.Algo,
							k.name, factor, r.Elapsed, last)
					}
					last = r.Elapsed
				}
			}
		}
	}
}

// What crosses the network is the closed form, and no run ends before the
// fullest link has carried its bytes.
func TestNetworkBytesAreTheClosedForm(t *testing.T) {
	const bytes = 16 << 20
	for _, n := range []int64{2, 4} {
		c, systems := nodes(t, "dgx-h100+nvls.n2", int(n), comm.Params{})
		ranks := int64(c.NRanks)
		for _, req := range forced(t, c, bytes) {
			// Bytes over all boundaries between nodes.
			want := map[coll.Func]int64{
				coll.AllReduce:     n * 2 * (ranks - 1) * bytes / ranks,
				coll.AllGather:     n * (ranks - 1) * bytes / ranks,
				coll.ReduceScatter: n * (ranks - 1) * bytes / ranks,
				coll.Broadcast:     broadcastBytes(c, n, bytes, req.Channels),
			}[req.Func]
			if req.Algo != coll.Ring {
				want = 2 * (n - 1) * bytes
			}
			cfg := sim.Config{Systems: systems, NoJitter: true, Kernels: 1, Fold: sim.Unfolded}
			r, p := simulatePlan(t, c, cfg, req, trace.Discard)
			if got := netBytes(p); got != want {
				t.Errorf("%d nodes, %v %v: %d B leave nodes, closed form %d", n, req.Func, req.Algo, got,
					want)
			}
			if err := plausible(&r); err != nil {
				t.Errorf("%d nodes, %v %v: %v", n, req.Func, req.Algo, err)
			}
			var least units.Time
			for _, l := range r.Links {
				least = max(least, l.Ideal())
			}
			if r.Elapsed < least {
				t.Errorf("%d nodes, %v %v: %v, its fullest link needs %v", n, req.Func, req.Algo, r.Elapsed,
					least)
			}
		}
	}
}

// broadcastBytes is what a chain around the ring from rank 0 sends between n
// nodes: into every node once, save into the first where the ring enters it at
// the root itself.
func broadcastBytes(c *comm.Comm, n, bytes int64, channels int) int64 {
	var sum int64
	for ch := range channels {
		sum += n * bytes / int64(channels)
		if prev := c.Channels[ch].Ring[0].Prev; c.NodeOf[prev] != c.NodeOf[0] {
			sum -= bytes / int64(channels)
		}
	}
	return sum
}

// netBytes counts what a plan sends between nodes.
func netBytes(p *plan.Plan) int64 {
	var sum units.Bytes
	var op plan.Op
	for r := range int32(p.Comm.NRanks) {
		for _, pr := range p.Programs(r) {
			for cur := p.Open(&pr); cur.Next(&op); {
				for _, id := range op.To {
					if c := p.Conn(id); c.Kind != connect.NVLSRoute && c.Route.Transport == connect.NET {
						sum += op.Bytes
					}
				}
			}
		}
	}
	return int64(sum)
}

// Writing a trace changes no time, between nodes as within one.
func TestTraceChangesNoTimeBetweenNodes(t *testing.T) {
	c, systems := nodes(t, "dgx-h100+nvls.n2", 2, comm.Params{})
	for _, req := range forced(t, c, 4<<20) {
		cfg := sim.Config{Systems: systems, NoJitter: true, Kernels: 1}
		quiet, _ := simulatePlan(t, c, cfg, req, trace.Discard)
		told, _ := simulatePlan(t, c, cfg, req, new(trace.Memory))
		if quiet.Elapsed != told.Elapsed {
			t.Errorf("%v %v: %v quietly, %v told", req.Func, req.Algo, quiet.Elapsed, told.Elapsed)
		}
		for i := range quiet.Finish {
			if quiet.Finish[i] != told.Finish[i] {
				t.Errorf("%v %v: rank %d ends at %v quietly, %v told", req.Func, req.Algo, i, quiet.Finish[i],
					told.Finish[i])
				break
			}
		}
	}
}

// engineRun prepares a run of the engine without folding.
func engineRun(t testing.TB, bytes int64) func() int64 {
	t.Helper()
	c, systems := nodes(t, "dgx-h100.n2", 1, comm.Params{})
	p, err := build.Plan(c.Layout, plan.Request{Func: coll.AllReduce, Algo: coll.Ring, Proto: coll.Simple,
		Channels: 16, Warps: 16,
		Count: bytes / 4, Type: coll.Float32})
	if err != nil {
		t.Fatal(err)
	}
	x, err := sim.New(sim.Config{Comm: c.Layout, Systems: systems, NoJitter: true, Fold: sim.Unfolded,
		Kernels: 1})
	if err != nil {
		t.Fatal(err)
	}
	return func() int64 {
		r, err := x.Run(context.Background(), exec.One(p), trace.Discard)
		if err != nil {
			t.Fatal(err)
		}
		return r.Events
	}
}

// The engine allocates to set up and to grow, nothing per event: sixteen times
// the events take the same memory.
func TestEngineAllocatesNothingPerEvent(t *testing.T) {
	if golden.UnderRace {
		t.Skip("the race detector allocates too")
	}
	small, large := engineRun(t, 32<<20), engineRun(t, 512<<20)
	events := large() - small()
	// The queue may grow a time more, and the runtime itself allocates occasionally.
	extra := testing.AllocsPerRun(3, func() { large() }) - testing.AllocsPerRun(3, func() { small() })
	if per := extra / float64(events); per > 1e-3 {
		t.Errorf("%.0f allocations for %d more events", extra, events)
	}
}

// The engine without folding; events/s counts the queue's events.
func BenchmarkEngine(b *testing.B) {
	run := engineRun(b, 64<<20)
	b.ReportAllocs()
	var events int64
	for b.Loop() {
		events += run()
	}
	b.ReportMetric(float64(events)/b.Elapsed().Seconds(), "events/s")
}
