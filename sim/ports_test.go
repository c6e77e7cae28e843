package sim_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/comm"
	"github.com/simccl/simccl/exec"
	"github.com/simccl/simccl/sim"
	"github.com/simccl/simccl/topo"
	"github.com/simccl/simccl/topo/fabric"
	"github.com/simccl/simccl/trace"
	"github.com/simccl/simccl/units"
)

// fusedNIC makes every net one of so many ports of 50 Gb/s.
func fusedNIC(ports int) func(*topo.NetInfo) {
	return func(n *topo.NetInfo) {
		n.BW, n.Fused = units.GBps(6.25*float64(ports)), nil
		for k := range ports {
			if ports > 1 {
				n.Fused = append(n.Fused, fmt.Sprintf("mlx5_%d", n.Dev*ports+k))
			}
		}
	}
}

// byPorts lets two hosts send to each other through a NIC of so many ports.
func byPorts(t *testing.T, ports int, cfg sim.Config) (exec.Result, error) {
	t.Helper()
	c, systems := renewed(t, "gh200.n2", 2, comm.Params{}, fusedNIC(ports))
	class := bare(systems[0])
	cfg.Comm, cfg.Systems, cfg.Class, cfg.NoJitter, cfg.Kernels, cfg.Fold, cfg.Launch = c.Layout, systems,
		&class, true, 1, sim.Unfolded, sim.Graph
	pl, _, err := c.Plan(comm.Op{Func: coll.SendRecv, Count: messages / 4, Type: coll.Float32})
	if err != nil {
		t.Fatal(err)
	}
	x, err := sim.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return x.Run(context.Background(), exec.One(pl), trace.Discard)
}

// Two equal ports are twice as fast as one, and carry the same; a slow one holds
// up every message, because each goes over all ports.
func TestFusedPorts(t *testing.T) {
	rate := func(r exec.Result) float64 { return messages / r.Elapsed.Micros() * 1e-3 }
	run := func(ports int, cfg sim.Config) exec.Result {
		r, err := byPorts(t, ports, cfg)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	slow := sim.Config{Faults: []sim.Fault{{Rank: -1, Host: 0, Net: 0, Port: 2, Slow: 4}}}
	for _, x := range []struct {
		name  string
		ports int
		cfg   sim.Config
		want  float64
	}{
		{"one port", 1, sim.Config{}, 6.25},
		{"two ports", 2, sim.Config{}, 12.5},
		{"four ports", 4, sim.Config{}, 25},
		{"two ports, two queue pairs each", 2, sim.Config{QPs: 2}, 12.5},
		{"two ports, messages split over four queue pairs", 2, sim.Config{QPs: 2, SplitData: true}, 12.5},
		{"two ports, one of them at a quarter", 2, slow, 3.125},
		{"four ports, one of them at a quarter", 4, slow, 6.25},
	} {
		r := run(x.ports, x.cfg)
		if got := rate(r); math.Abs(got/x.want-1) > 0.03 {
			t.Errorf("%s: %.2f GB/s, want %.2f", x.name, got, x.want)
		}
		carried := map[string]units.Bytes{}
		for _, l := range r.Links {
			if strings.HasPrefix(l.Name, "node0 mlx5_") && strings.HasSuffix(l.Name, " out") {
				carried[l.Name] = l.Bytes
			}
		}
		if x.ports > 1 && len(carried) != x.ports {
			t.Errorf("%s: bytes out of %v", x.name, carried)
		}
		for name, n := range carried {
			if math.Abs(float64(n)*float64(x.ports)/messages-1) > 1e-3 {
				t.Errorf("%s: %d bytes out of %s, want 1/%d of %d", x.name, n, name, x.ports, messages)
			}
		}
	}
}

// A dead port of several ends the run as a dead port does: NCCL 2.28.9 has no
// other way for what a queue pair of it was to send.
func TestDeadFusedPort(t *testing.T) {
	_, err := byPorts(t, 2,
		sim.Config{Faults: []sim.Fault{{Rank: -1, Host: 1, Net: 0, Port: 1, Slow: 1, Down: true}}})
	var remote *sim.RetryError
	if !errors.As(err, &remote) {
		t.Fatalf("%v", err)
	}
	c, systems := nodes(t, "gh200.n2", 2, comm.Params{})
	if _, err := sim.New(sim.Config{Comm: c.Layout, Systems: systems,
		Faults: []sim.Fault{{Rank: -1, Port: 2, Slow: 2}}}); err == nil || !strings.Contains(err.Error(),
		"port") {
		t.Errorf("a second port where there is one: %v", err)
	}
}

// Ports of one net are equivalent: they fold with their net.
func TestFusedPortsFold(t *testing.T) {
	c, systems := renewed(t, "dgx-h100.n2", 4, comm.Params{}, fusedNIC(2))
	req := forced(t, c, 1<<20)[0]
	req.Channels = len(c.Channels)
	cfg := sim.Config{Systems: systems, NoJitter: true}
	folded, _ := simulatePlan(t, c, cfg, req, trace.Discard)
	cfg.Fold = sim.Unfolded
	each, _ := simulatePlan(t, c, cfg, req, trace.Discard)
	if folded.Account.Method != exec.Folded || folded.Elapsed != each.Elapsed {
		t.Errorf("%v: %v folded, %v rank by rank", folded.Account.Method, folded.Elapsed, each.Elapsed)
	}
}

// Over two planes, each port of a card in one of them, a message goes over both:
// a plane whose spine is slow holds it up, and both carry the same.
func TestFusedPortsOverPlanes(t *testing.T) {
	n, err := fabric.Generate(fabric.Layout{Kind: "planes", Hosts: 2, Nets: 1, Ports: 2, Planes: 2,
		PerLeaf: 1, Gbit: 50, Spines: 1})
	if err != nil {
		t.Fatal(err)
	}
	for slow, want := range map[float64]float64{1: 12.5, 4: 3.125} {
		f, err := n.Bind([]int{1, 1}, 1)
		if err != nil {
			t.Fatal(err)
		}
		if f.Degrade("plane1-leaf0", "plane1-spine0", slow, 0) == 0 {
			t.Fatal("no such cable")
		}
		r, err := byPorts(t, 2, sim.Config{Fabric: f})
		if err != nil {
			t.Fatal(err)
		}
		if got := messages / r.Elapsed.Micros() * 1e-3; math.Abs(got/want-1) > 0.03 {
			t.Errorf("plane 1 %g times slower: %.2f GB/s, want %.2f", slow, got, want)
		}
		carried := map[string]units.Bytes{}
		for _, l := range r.Links {
			carried[l.Name] = l.Bytes
		}
		if a, b := carried["plane0-leaf0→plane0-spine0"], carried["plane1-leaf0→plane1-spine0"]; a == 0 ||
			a != b {
			t.Errorf("%d bytes over plane 0, %d over plane 1", a, b)
		}
	}
}

// Messages go in equal parts over ports that are not equal: the slower holds them
// up, and such nets are not folded.
func TestUnequalPorts(t *testing.T) {
	unequal := func(n *topo.NetInfo) {
		n.BW, n.Fused, n.PortBW = 18, []string{fmt.Sprintf("mlx5_%d", 2*n.Dev),
			fmt.Sprintf("mlx5_%d", 2*n.Dev+1)}, []units.GBps{12, 6}
	}
	c, systems := renewed(t, "gh200.n2", 2, comm.Params{}, unequal)
	class := bare(systems[0])
	cfg := sim.Config{Systems: systems, Class: &class, NoJitter: true, Kernels: 1, Launch: sim.Graph}
	r, _ := simulate(t, c, cfg, comm.Op{Func: coll.SendRecv, Count: messages / 4, Type: coll.Float32},
		trace.Discard)
	if got := messages / r.Elapsed.Micros() * 1e-3; math.Abs(got/12-1) > 0.03 {
		t.Errorf("%.2f GB/s over ports of 12 and 6, want 12", got)
	}
	if r.Account.Method != exec.Each {
		t.Errorf("folded: %v", r.Account.Method)
	}
}
