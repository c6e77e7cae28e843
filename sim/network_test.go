package sim_test

import (
	"testing"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/comm"
	"github.com/simccl/simccl/connect"
	"github.com/simccl/simccl/internal/golden"
	"github.com/simccl/simccl/plan"
	"github.com/simccl/simccl/sim"
	"github.com/simccl/simccl/topo"
	"github.com/simccl/simccl/trace"
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
	p, err := plan.Build(c.Comm, plan.Request{Func: coll.AllReduce, Algo: coll.NVLSTree, Proto: coll.Simple, Channels: 16,
		Warps: 20, Count: 64 << 20, Type: coll.Float32})
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
		for _, end := range []struct{ rank, net int32 }{{pc.Src, pc.Route.SrcNet}, {pc.Dst, pc.Route.DstNet}} {
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
	res, _ := simulate(t, c, sim.Config{Systems: systems, Kernels: 1}, comm.Op{Func: coll.AllToAll, Count: 1 << 20, Type: coll.Float32}, trace.Discard)
	if err := plausible(&res); err != nil {
		t.Fatal(err)
	}
}
