package sim_test

import (
	"context"
	"math"
	"testing"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/comm"
	"github.com/simccl/simccl/plan/build"
	"github.com/simccl/simccl/sim"
	"github.com/simccl/simccl/topo/fabric"
)

// hashed lays out an all_reduce by ring of two DGX H100 over a network.
func hashed(t *testing.T, l fabric.Layout, cfg sim.Config, change func(*fabric.Fabric) *fabric.Fabric) (
	*sim.Hash, func(seed uint64) map[string]float64) {
	t.Helper()
	c, systems := reference(t, "dgx-h100.n2")
	n, err := fabric.Generate(l)
	if err != nil {
		t.Fatal(err)
	}
	f, err := n.Bind([]int{8, 8}, 1)
	if err != nil {
		t.Fatal(err)
	}
	if change != nil {
		f = change(f)
	}
	req, _, err := c.Request(comm.Op{Func: coll.AllReduce, Count: 3 << 20, Type: coll.Float32})
	if err != nil {
		t.Fatal(err)
	}
	p, err := build.Plan(c.Layout, req)
	if err != nil {
		t.Fatal(err)
	}
	cfg.Comm, cfg.Systems, cfg.NoJitter = c.Layout, systems, true
	with := func(seed uint64) *sim.Executor {
		cfg.Fabric = f.Seeded(seed)
		x, err := sim.New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		return x
	}
	h, err := with(1).Hashed(context.Background(), p)
	if err != nil {
		t.Fatal(err)
	}
	return h, func(seed uint64) map[string]float64 {
		links, err := with(seed).Loads(context.Background(), p)
		if err != nil {
			t.Fatal(err)
		}
		out := map[string]float64{}
		for _, l := range links {
			out[l.Name] = float64(l.Ideal())
		}
		return out
	}
}

// A hash matters where one of the cables that it chooses among can be saturated, and not
// where there is nothing to choose, where switches choose otherwise, or where cables carry
// all that can come.
func TestAHashMattersWhereACableCanFill(t *testing.T) {
	rail := func(perLeaf, spines int, oversub float64) fabric.Layout {
		return fabric.Layout{Kind: "rail", Hosts: 2, Nets: 8, Gbit: 400, PerLeaf: perLeaf, Spines: spines,
			Oversub: oversub}
	}
	routed := func(r fabric.Routing) func(*fabric.Fabric) *fabric.Fabric {
		return func(f *fabric.Fabric) *fabric.Fabric { return f.Routed(r) }
	}
	wide := func(f *fabric.Fabric) *fabric.Fabric {
		for i := range f.Wires {
			f.Wires[i].BW *= 100
		}
		return f
	}
	spine := fabric.Layout{Kind: "leaf-spine", Hosts: 2, Nets: 8, Gbit: 400, PerLeaf: 1, Spines: 8}
	for name, tt := range map[string]struct {
		l      fabric.Layout
		change func(*fabric.Fabric) *fabric.Fabric
		want   bool
	}{
		"ports share uplinks":                  {spine, nil, true},
		"uplinks slower than a port":           {rail(1, 4, 2), nil, true},
		"each rail in one leaf":                {rail(2, 1, 1), nil, false},
		"one spine, one cable to it":           {rail(1, 1, 1), nil, false},
		"adaptive":                             {spine, routed(fabric.Adaptive), false},
		"by destination":                       {spine, routed(fabric.Static), false},
		"cables for all that all ports send":   {spine, wide, false},
		"a port of its own for each, 1:1 rail": {rail(1, 2, 1), nil, true},
	} {
		h, _ := hashed(t, tt.l, sim.Config{}, tt.change)
		if got := h != nil; got != tt.want {
			t.Errorf("%s: %v, want %v", name, got, tt.want)
		}
	}
}

// The fullest cable of a seed is the one that the plan's operations load the most, of those
// that a hash chooses; its load is theirs, over one queue pair and over several.
func TestTheFullestCableIsThatOfThePlan(t *testing.T) {
	l := fabric.Layout{Kind: "leaf-spine", Hosts: 2, Nets: 8, Gbit: 400, PerLeaf: 1, Spines: 8, Oversub: 2}
	for _, cfg := range []sim.Config{{}, {QPs: 4, SplitData: true}} {
		h, loads := hashed(t, l, cfg, nil)
		for seed := range uint64(4) {
			got, err := h.Fullest(seed+1, "")
			if err != nil {
				t.Fatal(err)
			}
			all := loads(seed + 1)
			most := 0.0
			for name, need := range all {
				if name != "" && name[0] != 'n' && got.Name != "" { // cables from switches
					most = max(most, need)
				}
			}
			if math.Abs(all[got.Name]/most-1) > 0.01 || math.Abs(float64(got.Need)/most-1) > 0.02 {
				t.Errorf("%d queue pairs, seed %d: %+v; the plan needs %.0f there and %.0f at most", cfg.QPs,
					seed+1, got, all[got.Name], most)
			}
			if got.Pairs < 1 || got.Pairs > got.Of || got.Beside < 2 || got.Even > got.Need {
				t.Errorf("seed %d: %+v", seed+1, got)
			}
		}
	}
}
