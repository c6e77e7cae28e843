package sim_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/comm"
	"github.com/simccl/simccl/exec"
	"github.com/simccl/simccl/plan"
	"github.com/simccl/simccl/sim"
	"github.com/simccl/simccl/topo/fabric"
	"github.com/simccl/simccl/trace"
)

// networked is a run over a network, and what folding makes of it.
type networked struct {
	name   string
	layout fabric.Layout
	ring   exec.Method
	tree   exec.Method
	all    exec.Method // alltoall
}

// Networks of 4 or 8 hosts of 8 nets: rails of one group and leaves that everybody
// shares are never saturated; between groups only rings keep to ways of their own,
// which repeat group by group; hashed or thin uplinks may be shared.
var networkeds = []networked{
	{"one group", fabric.Layout{Kind: "rail"}, exec.Folded, exec.Folded, exec.Folded},
	{"one leaf", fabric.Layout{Kind: "leaf-spine"}, exec.Folded, exec.Folded, exec.Folded},
	{"two groups", fabric.Layout{Kind: "rail", PerLeaf: 4, Latency: 1}, exec.Folded, exec.Each, exec.Each},
	{"static", fabric.Layout{Kind: "rail", PerLeaf: 4, Latency: 1, Routing: fabric.Static}, exec.Folded,
		exec.Each, exec.Each},
	{"adaptive", fabric.Layout{Kind: "rail", Routing: fabric.Adaptive}, exec.Each, exec.Each, exec.Each},
	{"thin cables", fabric.Layout{Kind: "rail", Gbit: 100}, exec.Each, exec.Each, exec.Each},
	{"hashed", fabric.Layout{Kind: "leaf-spine", PerLeaf: 1, Latency: 1}, exec.Each, exec.Each, exec.Each},
}

// What is folded over a network, or over several queue pairs, is what rank by
// rank gives, to the picosecond; what shares cables by chance is not folded.
func TestFoldedOverNetworks(t *testing.T) {
	oneGoroutine(t)
	for _, x := range networkeds {
		l := x.layout
		l.Hosts, l.Nets = 4, 8
		if l.PerLeaf == 4 {
			l.Hosts = 8
		}
		c, systems := nodes(t, "dgx-h100.n2", l.Hosts, comm.Params{})
		all, _, err := c.Request(comm.Op{Func: coll.AllToAll, Count: 1 << 10, Type: coll.Float32})
		if err != nil {
			t.Fatal(err)
		}
		per := int64(c.NRanks)
		ops := []plan.Request{
			{Func: coll.AllReduce, Algo: coll.Ring, Proto: coll.LL128, Channels: 16, Warps: 16,
				Count: per << 14, Type: coll.Float32},
			{Func: coll.AllReduce, Algo: coll.Tree, Proto: coll.LL, Channels: 16, Warps: 16, Count: per << 11,
				Type: coll.Float32},
			all,
		}
		if l.Gbit == 0 {
			l.Gbit = 400
		}
		n, err := fabric.Generate(l)
		if err != nil {
			t.Fatal(err)
		}
		bound, err := n.Bind(slices.Repeat([]int{8}, l.Hosts), 1)
		if err != nil {
			t.Fatal(err)
		}
		for i, want := range []exec.Method{x.ring, x.tree, x.all} {
			req := ops[i]
			name := fmt.Sprintf("%s, %v %v", x.name, req.Func, req.Algo)
			sameFolded(t, name, c, sim.Config{Systems: systems, Fabric: bound}, req, want)
			if x.name == "one group" {
				sameFolded(t, name+", 2 queue pairs", c, sim.Config{Systems: systems, Fabric: bound, QPs: 2,
					SplitData: true}, req, want)
				sameFolded(t, name+", ideal, 4 queue pairs", c, sim.Config{Systems: systems, QPs: 4}, req,
					want)
			}
		}
	}
}

// What memory would not hold is refused before it is laid out, a trace from 6 GB on.
func TestTooManyConnections(t *testing.T) {
	for _, w := range []struct {
		hosts int
		fold  sim.Folding
		sink  trace.Sink
	}{{256, sim.Unfolded, trace.Discard}, {100, sim.FoldAuto, new(trace.Memory)}} {
		c, systems := nodes(t, "dgx-h100.n2", w.hosts, comm.Params{})
		p, _, err := c.Plan(comm.Op{Func: coll.AllToAll, Count: 4, Type: coll.Float32})
		if err != nil {
			t.Fatal(err)
		}
		x, err := sim.New(sim.Config{Comm: c.Layout, Systems: systems, Fold: w.fold})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := x.Run(context.Background(), exec.One(p), w.sink); !errors.Is(err,
			exec.ErrNotImplemented) || !strings.Contains(err.Error(), "GB") {
			t.Errorf("alltoall of %d ranks, %d connections: %v", c.NRanks, p.NumConns(), err)
		}
	}
}

func sameFolded(t *testing.T, name string, c *comm.Comm, cfg sim.Config, req plan.Request, want exec.Method) {
	t.Helper()
	cfg.NoJitter = true
	folded, _ := simulatePlan(t, c, cfg, req, trace.Discard)
	cfg.Fold = sim.Unfolded
	each, _ := simulatePlan(t, c, cfg, req, trace.Discard)
	if folded.Account.Method != want {
		t.Errorf("%s: %v, want %v", name, folded.Account.Method, want)
	}
	if folded.Elapsed != each.Elapsed || !slices.Equal(folded.Finish, each.Finish) {
		t.Errorf("%s: folded %v, rank by rank %v", name, folded.Elapsed, each.Elapsed)
	}
}
