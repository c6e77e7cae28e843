package sim_test

import (
	"math"
	"testing"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/comm"
	"github.com/simccl/simccl/connect"
	"github.com/simccl/simccl/dev/golden"
	"github.com/simccl/simccl/plan"
	"github.com/simccl/simccl/plan/build"
	"github.com/simccl/simccl/sim"
	"github.com/simccl/simccl/topo"
	"github.com/simccl/simccl/trace"
	"github.com/simccl/simccl/units"
)

// reference joins the hosts of one of the project's own references.
func reference(t testing.TB, name string) (*comm.Comm, []*topo.System) {
	t.Helper()
	for _, r := range golden.Own(t) {
		if r.Name == name {
			return machine(t, &r, comm.Params{})
		}
	}
	t.Fatalf("no reference %s", name)
	return nil, nil
}

// The tree between the heads of nodes is connected by the NVLS graph
// (transport/nvls.cc:214): every head sends by the NIC beside it.
func TestHeadsSendByTheirOwnNIC(t *testing.T) {
	c, systems := reference(t, "dgx-h100+nvls.n2")
	p, err := build.Plan(c.Layout, plan.Request{Func: coll.AllReduce, Algo: coll.NVLSTree, Proto: coll.Simple,
		Channels: 16,
		Warps:    20, Count: 64 << 20, Type: coll.Float32})
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for id := range p.NumConns() {
		pc := p.Conn(id)
		if pc.Src < 0 || pc.Route.Transport != connect.NET {
			continue
		}
		seen++
		for _, end := range []struct{ rank, net int32 }{{pc.Src, pc.Route.SrcNet},
			{pc.Dst, pc.Route.DstNet}} {
			s := systems[c.NodeOf[end.rank]]
			for _, g := range s.Of(topo.GPU) {
				if s.Nodes[g].GPU.Rank != int(c.LocalRank[end.rank]) {
					continue
				}
				if k := s.Path(g, s.Of(topo.NET)[end.net]).Kind; k > topo.PathPXB {
					t.Fatalf("channel %d: rank %d uses net %d at %v", pc.Channel, end.rank, end.net, k)
				}
			}
		}
	}
	if seen == 0 {
		t.Fatal("no connection between the nodes")
	}
}

// Sends and receives of one multiprocessor may complete at one instant, as an
// alltoall between nodes shows.
func TestAllToAllBetweenNodes(t *testing.T) {
	c, systems := reference(t, "dgx-h100.n2")
	res, _ := simulate(t, c, sim.Config{Systems: systems, Kernels: 1}, comm.Op{Func: coll.AllToAll,
		Count: 1 << 20, Type: coll.Float32}, trace.Discard)
	if err := plausible(&res); err != nil {
		t.Fatal(err)
	}
}

// A channel of send and receive is as fast as its proxy threads come round:
// three looks a step at each of two ends, whatever the port could do. NCCL's own
// figure is 14 GB/s of a channel (NCCL_P2P_PER_CHANNEL_NET_BW, from 2.29 on).
func TestChannelIsBoundByTheProxysTurn(t *testing.T) {
	var p comm.Params
	p.Connect.NChannelsPerNetPeer = units.Some[int64](1)
	c, systems := nodes(t, "gh200.n2", 2, p)
	op := comm.Op{Func: coll.SendRecv, Count: 16 << 20, Type: coll.Float32}
	class := sim.ClassOf(systems[0])
	r, pl := simulate(t, c, sim.Config{Systems: systems, Class: &class, NoJitter: true, Kernels: 1}, op,
		trace.Discard)
	if pl.Comm.P2PChannelsPerPeer != 1 {
		t.Fatalf("%d channels of the peer, want 1", pl.Comm.P2PChannelsPerPeer)
	}
	steps := float64(4*op.Count) / float64(pl.Comm.P2PChunkSize)
	want := steps * 3 * (class.Net.Turn + 2*class.Net.Look)
	if got := r.Elapsed.Micros(); math.Abs(got/want-1) > 0.03 {
		t.Errorf("%.0f us, %.0f steps of three turns take %.0f", got, steps, want)
	}
	if rate := float64(4*op.Count) / r.Elapsed.Micros() * 1e-3; rate < 12 || rate > 17 {
		t.Errorf("a channel moves %.1f GB/s", rate)
	}
}

// A gap between the messages of a connection comes once between each two, and cards of
// which a message gets one hold it to that card's rate.
func TestGapsAndCards(t *testing.T) {
	var p comm.Params
	p.Connect.NChannelsPerNetPeer = units.Some[int64](1)
	c, systems := nodes(t, "gh200.n2", 2, p)
	op := comm.Op{Func: coll.SendRecv, Count: 1 << 20, Type: coll.Float32}
	class := sim.ClassOf(systems[0])
	run := func(gap, card, stripe float64) float64 {
		k := class
		k.Net.Gap, k.Net.Card, k.Net.Stripe = gap, card, stripe
		r, _ := simulate(t, c, sim.Config{Systems: systems, Class: &k, NoJitter: true, Kernels: 1}, op,
			trace.Discard)
		return r.Elapsed.Micros()
	}
	_, pl := simulate(t, c, sim.Config{Systems: systems, Class: &class, NoJitter: true, Kernels: 1}, op,
		trace.Discard)
	messages := float64(4*op.Count) / float64(pl.Comm.P2PChunkSize)
	if more := run(2000, 0, 1) - run(1000, 0, 1); math.Abs(more-1000*(messages-1)) > 1 {
		t.Errorf("1 ms more between %.0f messages takes %.0f us", messages, more)
	}
	whole := run(0, 0, 1)
	if four := run(0, 50/4., 1); four != whole {
		t.Errorf("over four cards %.1f us, over one port %.1f", four, whole)
	}
	bytes := float64(pl.Comm.P2PChunkSize)
	slow := run(0, 1, 1e9)
	if want := messages * bytes * 1e-3 / class.Net.Eff; slow < want || slow > 1.1*want+50 {
		t.Errorf("by one card of 1 GB/s %.0f us, its bytes take %.0f", slow, want)
	}
}
