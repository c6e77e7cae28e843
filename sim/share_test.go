package sim_test

import (
	"os"
	"strings"
	"testing"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/comm"
	"github.com/simccl/simccl/dev/golden"
	"github.com/simccl/simccl/dev/site"
	"github.com/simccl/simccl/plan"
	"github.com/simccl/simccl/rules"
	"github.com/simccl/simccl/sim"
	"github.com/simccl/simccl/sim/gpu"
	"github.com/simccl/simccl/topo"
	topoxml "github.com/simccl/simccl/topo/xml"
	"github.com/simccl/simccl/trace"
	"github.com/simccl/simccl/units"
)

// At a port of a switch that several pairs of GPUs share, some of the speed is
// lost: in an alltoall, not in a ring.
func TestPairsShareAPort(t *testing.T) {
	c, systems := reference(t, "h200x4-4.n1")
	class := gpu.NVSwitch90()
	full := units.GBps(18 * 20.6 * class.LinkEff)
	for _, x := range []struct {
		f     coll.Func
		pairs float64
	}{{coll.AllGather, 1}, {coll.AllToAll, 3}} {
		r, _ := simulate(t, c, sim.Config{Systems: systems, Kernels: 1}, comm.Op{Func: x.f, Count: 1 << 20,
			Type: coll.Float32}, trace.Discard)
		want := full * units.GBps(1-class.Crowd*(1-1/x.pairs))
		for _, l := range r.Links {
			if d := l.Capacity/want - 1; d > 1e-4 || d < -1e-4 {
				t.Errorf("%v: %s has %v GB/s, want %v", x.f, l.Name, l.Capacity, want)
			}
		}
	}
}

// Between GPUs that reach each other through host memory only, rings whose
// pieces fit the CPU's cache go at its rate, larger ones at the memory's.
func TestHostMemoryHasACache(t *testing.T) {
	const name = "h200x4-4.xml"
	data, err := os.ReadFile(golden.Root(t, "testdata", "topos", name))
	if err != nil {
		t.Fatal(err)
	}
	spec, err := topoxml.Parse(data, name)
	if err != nil {
		t.Fatal(err)
	}
	p := topo.DefaultParams()
	p.P2PLevel = units.Some(topo.PathLOC) // NCCL_P2P_DISABLE=1
	host, err := topo.Build(spec, p)
	if err != nil {
		t.Fatal(err)
	}
	c, err := comm.FromSystems([]comm.Part{{System: host.Systems[0]}}, comm.Params{Rules: rules.Default(),
		Access: p.Access, Multicast: comm.MulticastOff})
	if err != nil {
		t.Fatal(err)
	}
	class := gpu.NVSwitch90()
	for _, x := range []struct {
		count int64
		want  float64
	}{{1 << 20, class.HostRate}, {64 << 20, class.HostMemory}} {
		req := plan.Request{Func: coll.AllReduce, Algo: coll.Ring, Proto: coll.Simple, Channels: 4, Warps: 16,
			Count: x.count, Type: coll.Float32}
		r, _ := simulatePlan(t, c, sim.Config{Systems: host.Systems, Kernels: 1}, req, trace.Discard)
		ports := 0
		for _, l := range r.Links {
			if strings.Contains(l.Name, "host memory") {
				ports++
				if d := float64(l.Capacity)/x.want - 1; d > 1e-4 || d < -1e-4 {
					t.Errorf("%d elements: %s has %v GB/s, want %v", x.count, l.Name, l.Capacity, x.want)
				}
			}
		}
		if ports != 8 {
			t.Errorf("%d ports to host memory, want 8", ports)
		}
	}
}

// Between A100s the receiver of Simple reads the sender's memory, and waits for it; of LL, and
// between other GPUs, the sender stores.
func TestA100ReadsWhatPeersSend(t *testing.T) {
	for _, x := range []struct {
		topo  string
		proto coll.Protocol
		reads bool
	}{{"dgx-a100", coll.Simple, true}, {"dgx-a100", coll.LL, false}, {"dgx-h100", coll.Simple, false}} {
		c := site.Load(t, site.Nodes(x.topo, 1)).Comm
		took := func(read float64) units.Time {
			class := sim.ClassOf(c.Systems()[0])
			class.Simple.Read = read
			req := plan.Request{Func: coll.AllReduce, Algo: coll.Ring, Proto: x.proto, Channels: 1, Warps: 16,
				Count: 1 << 18, Type: coll.Float32}
			r, _ := simulatePlan(t, c, quiet(c, sim.Config{Class: &class}), req, trace.Discard)
			return r.Elapsed
		}
		if late := took(50) - took(0); x.reads != (late > 0) {
			t.Errorf("%s %v: a wait for peers' memory makes it %v later", x.topo, x.proto, late)
		}
	}
}
