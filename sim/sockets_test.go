package sim_test

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/comm"
	"github.com/simccl/simccl/dev/golden"
	"github.com/simccl/simccl/exec"
	"github.com/simccl/simccl/plan"
	"github.com/simccl/simccl/plan/build"
	"github.com/simccl/simccl/rules"
	"github.com/simccl/simccl/sim"
	"github.com/simccl/simccl/sim/gpu"
	simhost "github.com/simccl/simccl/sim/internal/host"
	"github.com/simccl/simccl/topo"
	"github.com/simccl/simccl/trace"
	"github.com/simccl/simccl/units"
)

// renewed joins n hosts of a reference's kind whose nets are changed.
func renewed(t testing.TB, name string, n int, p comm.Params, change func(*topo.NetInfo)) (*comm.Comm,
	[]*topo.System) {
	t.Helper()
	p.Rules = rules.Default()
	one := hostOf(t, name)
	s := *one.system
	s.Nodes = append([]topo.Node(nil), s.Nodes...)
	for i := range s.Nodes {
		if s.Nodes[i].Net != nil {
			net := *s.Nodes[i].Net
			change(&net)
			s.Nodes[i].Net = &net
		}
	}
	parts, systems := make([]comm.Part, n), make([]*topo.System, n)
	for h := range n {
		parts[h] = comm.Part{System: &s, First: int32(h * len(s.Of(topo.GPU))), Host: int32(h)}
		systems[h] = &s
	}
	p.Multicast = comm.MulticastOff
	c, err := comm.FromSystems(parts, p)
	if err != nil {
		t.Fatal(err)
	}
	return c, systems
}

// ethernet makes nets interfaces of the socket plugin.
func ethernet(gbit float64) func(*topo.NetInfo) {
	return func(n *topo.NetInfo) {
		n.Name, n.Sockets, n.GDR, n.Fused, n.BW = "eth0", true, false, nil, units.GBps(gbit/8)
	}
}

// bare is a class in which only bytes take time.
func bare(s *topo.System) gpu.Class {
	class := sim.ClassOf(s)
	class.Simple.PerByte /= 1000
	class.Simple.Slice, class.Simple.PerThreads, class.Simple.SliceLocal = 0, 0, 0
	class.Net = gpu.NIC{Eff: 1, TCP: gpu.TCP{Send: 4, Recv: 8, Flow: 3, Eff: 0.95}}
	return class
}

const messages = 64 << 20

// exchange lets two hosts of one GPU each send to the other on one channel, and
// reports how many bytes a nanosecond each sent.
func exchange(t *testing.T, gbit float64, class func(*gpu.Class), cfg sim.Config) (float64, error) {
	t.Helper()
	var p comm.Params
	p.Connect.NChannelsPerNetPeer = units.Some[int64](1)
	c, systems := renewed(t, "h200x4-h4x1.n2", 2, p, ethernet(gbit))
	b := bare(systems[0])
	if class != nil {
		class(&b)
	}
	cfg.Comm, cfg.Systems, cfg.Class, cfg.NoJitter, cfg.Kernels, cfg.Fold, cfg.Launch = c.Layout, systems, &b,
		true, 1, sim.Unfolded, sim.Graph
	pl, _, err := c.Plan(comm.Op{Func: coll.SendRecv, Count: messages / 4, Type: coll.Float32})
	if err != nil {
		t.Fatal(err)
	}
	if n := pl.Comm.P2PChannelsPerPeer; n != 1 {
		t.Fatalf("%d channels of the peer, want 1", n)
	}
	x, err := sim.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	r, err := x.Run(context.Background(), exec.One(pl), trace.Discard)
	if err != nil {
		return 0, err
	}
	return messages / r.Elapsed.Micros() * 1e-3, nil
}

func helpers(threads, each, task int) sim.Sockets {
	return sim.Sockets{Threads: units.Some(threads), PerThread: units.Some(each), MinTask: units.Some(task)}
}

// Where bytes alone take time, a connection over TCP is as fast as the slowest of
// thread, stream and port, and sockets add up until the next of them binds.
func TestSocketsAreAsFastAsTheirThreadsStreamsAndPort(t *testing.T) {
	for _, x := range []struct {
		name    string
		gbit    float64
		sockets sim.Sockets
		flow    float64
		want    float64
	}{
		{"one thread writes and reads", 400, sim.Sockets{}, 3, 1 / (1.0/4 + 1.0/8)},
		{"its stream is slower", 400, sim.Sockets{}, 2, 2},
		{"the port is slower", 10, sim.Sockets{}, 3, 1.25 * 0.95},
		{"a helper for each way", 400, helpers(1, 1, 1<<16), 8, 4},
		{"one helper's stream", 400, helpers(1, 1, 1<<16), 3, 3},
		{"two streams of one helper", 400, helpers(1, 2, 1<<14), 3, 4},
		{"two helpers", 400, helpers(2, 1, 1<<14), 3, 6},
		{"four helpers", 400, helpers(4, 1, 1<<14), 3, 12},
		{"messages of one task", 400, helpers(4, 1, 1<<20), 3, 3},
		{"four helpers at a slow port", 80, helpers(4, 1, 1<<14), 3, 9.5},
	} {
		got, err := exchange(t, x.gbit, func(c *gpu.Class) { c.Net.TCP.Flow = x.flow },
			sim.Config{Sockets: x.sockets})
		if err != nil {
			t.Fatal(err)
		}
		if math.Abs(got/x.want-1) > 0.03 {
			t.Errorf("%s: %.2f GB/s, want %.2f", x.name, got, x.want)
		}
	}
}

// More helpers and more sockets are never slower where cores are not short.
func TestMoreSocketsAreNeverSlower(t *testing.T) {
	real := func(c *gpu.Class) { c.Net = sim.ClassOf(hostOf(t, "h200x4-h4x1.n2").system).Net }
	for _, each := range []int{1, 4} {
		last := 0.0
		for _, threads := range []int{1, 2, 4, 8, 16} {
			got, err := exchange(t, 400, real, sim.Config{Sockets: helpers(threads, each, 1<<14)})
			if err != nil {
				t.Fatal(err)
			}
			if got < 0.999*last {
				t.Errorf("%d threads of %d sockets: %.3f GB/s, %.3f with half as many", threads, each, got,
					last)
			}
			last = got
		}
	}
}

// A stream of which packets are lost is held to what Mathis et al. give; one over
// which nothing gets through ends with NCCL's error.
func TestLossOverTCP(t *testing.T) {
	lost := func(p float64) (float64, error) {
		return exchange(t, 400, func(c *gpu.Class) { c.Net.TCP.Wire = 20 },
			sim.Config{Faults: []sim.Fault{{Rank: -1, Host: 0, Net: 0, Slow: 1, Loss: p, Down: p == 1}}})
	}
	for _, p := range []float64{0.001, 0.004} {
		// Both ways pass the lossy port; a message waits for the wire twice more.
		want := 1.448 / 40 * math.Sqrt(1.5/p)
		got, err := lost(p)
		if err != nil {
			t.Fatal(err)
		}
		if got > want || got < 0.85*want {
			t.Errorf("loss %g: %.3f GB/s, a stream carries %.3f", p, got, want)
		}
	}
	_, err := lost(1)
	var out *sim.TimedOutError
	if !errors.As(err, &out) || out.After != simhost.GiveUp || out.Src == out.Dst {
		t.Fatalf("a dead port: %v", err)
	}
}

// Ranks over sockets fold as others do, with threads and without, bit for bit.
func TestSocketsFold(t *testing.T) {
	for _, s := range []sim.Sockets{{}, helpers(2, 2, 1<<12)} {
		for _, req := range []plan.Request{
			{Func: coll.AllReduce, Algo: coll.Ring, Proto: coll.Simple},
			{Func: coll.AllReduce, Algo: coll.Ring, Proto: coll.LL}, {Func: coll.AllReduce, Algo: coll.Tree,
				Proto: coll.Simple},
		} {
			c, systems := renewed(t, "dgx-h100.n2", 4, comm.Params{}, ethernet(100))
			req.Channels, req.Warps, req.Count, req.Type = len(c.Channels), 16, int64(c.NRanks)<<12,
				coll.Float32
			cfg := sim.Config{Systems: systems, NoJitter: true, Sockets: s}
			folded, _ := simulatePlan(t, c, cfg, req, trace.Discard)
			cfg.Fold = sim.Unfolded
			each, _ := simulatePlan(t, c, cfg, req, trace.Discard)
			if folded.Account.Method != exec.Folded {
				t.Errorf("%v %v: not folded", req.Algo, req.Proto)
			}
			if err := sameTimes(&folded, &each); err != nil {
				t.Errorf("%v %v, folded and rank by rank: %v", req.Algo, req.Proto, err)
			}
		}
	}
}

// Between nodes that are folded by turning, sockets are near and never called
// exact.
func TestExchangesOverSocketsAreNear(t *testing.T) {
	c, systems := renewed(t, "gh200.n2", 24, comm.Params{}, ethernet(10))
	req, _, err := c.Request(comm.Op{Func: coll.AllToAll, Count: 2048, Type: coll.Float32})
	if err != nil {
		t.Fatal(err)
	}
	cfg := sim.Config{Systems: systems, NoJitter: true, Fold: sim.FoldExact}
	each, _ := simulatePlan(t, c, cfg, req, trace.Discard)
	cfg.Fold = sim.FoldNear
	near, _ := simulatePlan(t, c, cfg, req, trace.Discard)
	off := float64(near.Elapsed)/float64(each.Elapsed) - 1
	if each.Account.Method != exec.Each || near.Account.Method != exec.Near ||
		max(off, -off) > near.Account.Margin {
		t.Errorf("%v as %v, exactly %v as %v: %+.1f %%, margin %.2f", near.Elapsed, near.Account.Method,
			each.Elapsed, each.Account.Method, 100*off, near.Account.Margin)
	}
}

// Messages over sockets and over fused ports cost the engine no memory each.
func TestNetworkAllocatesNothingPerMessage(t *testing.T) {
	if golden.UnderRace {
		t.Skip("the race detector allocates too")
	}
	for name, change := range map[string]func(*topo.NetInfo){
		"sockets": ethernet(100), "fused ports": fusedNIC(2)} {
		c, systems := renewed(t, "h200x4-h4x1.n2", 2, comm.Params{}, change)
		run := func(bytes int64) func() int64 {
			p, err := build.Plan(c.Layout, plan.Request{Func: coll.AllReduce, Algo: coll.Ring,
				Proto: coll.Simple, Channels: 2, Warps: 16, Count: bytes / 4, Type: coll.Float32})
			if err != nil {
				t.Fatal(err)
			}
			x, err := sim.New(sim.Config{Comm: c.Layout, Systems: systems, NoJitter: true, Fold: sim.Unfolded,
				Kernels: 1, Sockets: helpers(2, 2, 1<<14)})
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
		small, large := run(64<<20), run(1024<<20)
		events := large() - small()
		extra := testing.AllocsPerRun(3, func() { large() }) - testing.AllocsPerRun(3, func() { small() })
		if per := extra / float64(events); per > 1e-3 {
			t.Errorf("%s: %.0f allocations for %d more events", name, extra, events)
		}
	}
}

// What leaves hosts and what comes in is what the plan sends, over however many
// sockets or ports a message goes; no link carries more than it can.
func TestSocketsAndPortsKeepBytes(t *testing.T) {
	for name, x := range map[string]struct {
		change func(*topo.NetInfo)
		cfg    sim.Config
		out    string
	}{
		"one socket":     {ethernet(100), sim.Config{}, "→eth0"},
		"eight sockets":  {ethernet(100), sim.Config{Sockets: helpers(2, 4, 5000)}, "→eth0"},
		"two ports":      {fusedNIC(2), sim.Config{}, " out"},
		"three ports":    {fusedNIC(3), sim.Config{QPs: 2}, " out"},
		"split on ports": {fusedNIC(2), sim.Config{QPs: 4, SplitData: true}, " out"},
	} {
		c, systems := renewed(t, "dgx-h100.n2", 2, comm.Params{}, x.change)
		for _, req := range forced(t, c, 3<<20) {
			x.cfg.Systems, x.cfg.NoJitter, x.cfg.Kernels, x.cfg.Fold = systems, true, 1, sim.Unfolded
			r, p := simulatePlan(t, c, x.cfg, req, trace.Discard)
			if err := plausible(&r); err != nil {
				t.Errorf("%s, %v %v: %v", name, req.Func, req.Algo, err)
			}
			var out, in units.Bytes
			for _, l := range r.Links {
				switch {
				case strings.HasSuffix(l.Name, x.out):
					out += l.Bytes
				case strings.HasSuffix(l.Name, " in"), strings.Contains(l.Name, " eth0→"):
					in += l.Bytes
				}
			}
			want := netBytes(p)
			if off := float64(out)/float64(want) - 1; math.Abs(off) > 1e-3 ||
				math.Abs(float64(in)/float64(want)-1) > 1e-3 {
				t.Errorf("%s, %v %v: %d bytes leave, %d come in, the plan sends %d", name, req.Func, req.Algo,
					out, in, want)
			}
		}
	}
}
