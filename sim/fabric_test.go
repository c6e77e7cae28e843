package sim_test

import (
	"math"
	"strings"
	"testing"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/comm"
	"github.com/simccl/simccl/exec"
	"github.com/simccl/simccl/sim"
	"github.com/simccl/simccl/topo/fabric"
	"github.com/simccl/simccl/trace"
	"github.com/simccl/simccl/units"
)

// over runs an all-reduce by ring on two DGX H100 over a network.
func over(t *testing.T, l *fabric.Layout, cfg sim.Config, broken ...string) exec.Result {
	t.Helper()
	c, systems := reference(t, "dgx-h100.n2")
	cfg.Systems, cfg.Kernels, cfg.NoJitter, cfg.Fold = systems, 1, true, sim.Unfolded
	if l != nil {
		n, err := fabric.Generate(*l)
		if err != nil {
			t.Fatal(err)
		}
		if cfg.Fabric, err = n.Bind([]int{8, 8}, 1); err != nil {
			t.Fatal(err)
		}
		for _, leaf := range broken {
			cfg.Fabric.Degrade(leaf, "spine0", 4, 0)
		}
	}
	r, _ := simulate(t, c, cfg, comm.Op{Func: coll.AllReduce, Count: 3 << 20, Type: coll.Float32},
		trace.Discard)
	if err := plausible(&r); err != nil {
		t.Fatal(err)
	}
	return r
}

func rails(oversub float64, spines int) *fabric.Layout {
	return &fabric.Layout{Kind: "rail", Hosts: 2, Nets: 8, Gbit: 400, PerLeaf: 1, Spines: spines,
		Oversub: oversub}
}

// A network that does not block is the ideal one; more uplinks are never
// slower; what a host sends arrives.
func TestMoreUplinksAreNeverSlower(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: many networks, packet by packet")
	}
	oneGoroutine(t)
	ideal := over(t, nil, sim.Config{})
	last := ideal.Elapsed
	for i, oversub := range []float64{1, 2, 4, 8} {
		r := over(t, rails(oversub, 1), sim.Config{})
		if i == 0 && math.Abs(float64(r.Elapsed)/float64(ideal.Elapsed)-1) > 1e-3 {
			t.Errorf("without blocking %v, ideal %v", r.Elapsed, ideal.Elapsed)
		}
		if r.Elapsed < last {
			t.Errorf("%g:1 takes %v, less than %v with more uplinks", oversub, r.Elapsed, last)
		}
		last = r.Elapsed
		load := map[string]int64{}
		for _, l := range r.Links {
			load[l.Name] = int64(l.Bytes)
		}
		if up, down := load["leaf0→spine0"], load["spine0→leaf8"]; up == 0 || up != down {
			t.Errorf("rail 0 sends %d up, %d come down on the other side", up, down)
		}
		if a, b := load["leaf0→spine0"], load["leaf8→spine0"]; a != b {
			t.Errorf("equal hosts send %d and %d", a, b)
		}
	}
	// Half the uplinks that a ring through every NIC fills halve its speed.
	bound := over(t, rails(16, 1), sim.Config{}).Elapsed
	if f := float64(bound) / float64(over(t, rails(8, 1), sim.Config{}).Elapsed); f < 1.8 || f > 2.1 {
		t.Errorf("half of too few uplinks takes %.2f times as long, want 2", f)
	}
}

// A network without limits is the ideal one, to the picosecond; also on a machine
// whose NICs read host memory, where each GPU's lies with its own CPU.
func TestNetworkWithoutLimits(t *testing.T) {
	c, systems := reference(t, "hgx-a100-4.n4")
	net, err := fabric.Generate(fabric.Layout{Kind: "rail", Hosts: 4, Nets: 4, Gbit: 1e5})
	if err != nil {
		t.Fatal(err)
	}
	wide, err := net.Bind([]int{4, 4, 4, 4}, 1)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range []coll.Func{coll.AllToAll, coll.SendRecv, coll.Broadcast} {
		op := comm.Op{Func: f, Count: 1 << 12, Type: coll.Float32}
		cfg := sim.Config{Systems: systems, NoJitter: true, Fold: sim.Unfolded}
		ideal, _ := simulate(t, c, cfg, op, trace.Discard)
		cfg.Fabric = wide
		if got, _ := simulate(t, c, cfg, op, trace.Discard); got.Elapsed != ideal.Elapsed {
			t.Errorf("%v: %v over a network without limits, %v without a network", f, got.Elapsed,
				ideal.Elapsed)
		}
		cfg.Fabric, cfg.Faults = nil, []sim.Fault{{Rank: -1, Slow: 1}}
		if got, _ := simulate(t, c, cfg, op, trace.Discard); got.Elapsed != ideal.Elapsed {
			t.Errorf("%v: %v with a fault that is none, %v without", f, got.Elapsed, ideal.Elapsed)
		}
	}
}

// What enters a switch leaves it and no link carries more than it can, whatever
// the routing; a ring sends as much out of a port as comes in.
func TestSwitchesKeepBytes(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: many networks, packet by packet")
	}
	oneGoroutine(t)
	for _, routing := range []fabric.Routing{fabric.ECMP, fabric.Adaptive, fabric.Static} {
		for _, kind := range []string{"leaf-spine", "fat-tree"} {
			l := &fabric.Layout{Kind: kind, Hosts: 2, Nets: 8, Gbit: 400, PerLeaf: 1, Spines: 4, Oversub: 2,
				Routing: routing}
			r := over(t, l, sim.Config{})
			in, out := map[string]units.Bytes{}, map[string]units.Bytes{}
			for _, x := range r.Links {
				from, to, ok := strings.Cut(x.Name, "→")
				if !ok || strings.Contains(x.Name, " ") {
					continue // inside a host
				}
				in[to], out[from] = in[to]+x.Bytes, out[from]+x.Bytes
			}
			if len(in) < 8 {
				t.Fatalf("%s: only %d ends of cables carry anything", kind, len(in))
			}
			for end, got := range in {
				if _, port := out[end]; port && got != out[end] {
					t.Errorf("%s, %s: %d bytes enter %s, %d leave", kind, routing, got, end, out[end])
				}
			}
		}
	}
}

// Faults slow down what they touch, and only that.
func TestFaults(t *testing.T) {
	oneGoroutine(t)
	well := over(t, nil, sim.Config{}).Elapsed
	for name, f := range map[string][]sim.Fault{
		"slow NIC":  {{Rank: -1, Host: 1, Net: 3, Slow: 4}},
		"far NIC":   {{Rank: -1, Host: 1, Net: 3, Slow: 1, Later: 50e6}},
		"straggler": {{Rank: 5, Slow: 4}},
	} {
		if got := over(t, nil, sim.Config{Faults: f}).Elapsed; got <= well {
			t.Errorf("%s: %v, %v without", name, got, well)
		}
	}
	if got := over(t, nil, sim.Config{Faults: []sim.Fault{{Rank: 5, Slow: 1}}}).Elapsed; got != well {
		t.Errorf("a fault of factor 1 makes %v of %v", got, well)
	}
	net := over(t, rails(1, 1), sim.Config{}).Elapsed
	if got := over(t, rails(1, 1), sim.Config{}, "leaf2").Elapsed; got <= net {
		t.Errorf("slow uplink: %v, %v without", got, net)
	}
}

// Queue pairs take steps in turn or split them; bytes stay the same.
func TestQueuePairs(t *testing.T) {
	bytes := func(r exec.Result) (n int64) {
		for _, l := range r.Links {
			n += int64(l.Bytes)
		}
		return n
	}
	one := over(t, rails(1, 4), sim.Config{})
	for _, split := range []bool{false, true} {
		r := over(t, rails(1, 4), sim.Config{QPs: 4, SplitData: split})
		if a, b := bytes(one), bytes(r); math.Abs(float64(a-b)) > 1e-3*float64(a) {
			t.Errorf("split %v: %d bytes, %d over one queue pair", split, b, a)
		}
		// Steps on several queue pairs share the port and are late together: by
		// as long as one of them lasts.
		if step := units.FromMicros(float64(512<<10) / 49e3); r.Elapsed > one.Elapsed+step {
			t.Errorf("split %v: %v, slower than %v over one queue pair", split, r.Elapsed, one.Elapsed)
		}
	}
}
