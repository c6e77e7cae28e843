package fabric_test

import (
	"os"
	"testing"

	"github.com/simccl/simccl/dev/golden"
	"github.com/simccl/simccl/topo"
	"github.com/simccl/simccl/topo/decl"
	"github.com/simccl/simccl/topo/fabric"
	topoxml "github.com/simccl/simccl/topo/xml"
	"github.com/simccl/simccl/units"
)

func specOf(t testing.TB, machine string) *topo.Spec {
	t.Helper()
	data, err := os.ReadFile(golden.Root(t, "testdata", "topos", machine+".xml"))
	if err != nil {
		t.Fatal(err)
	}
	spec, err := topoxml.Parse(data, machine+".xml")
	if err != nil {
		t.Fatal(err)
	}
	return spec
}

func TestRanksAndPortsCountThroughHosts(t *testing.T) {
	a, b := specOf(t, "dgx-h100"), specOf(t, "h200x4-4")
	c, err := fabric.New([]fabric.Member{{Spec: a, Count: 2}, {Spec: b, Count: 1}, {Spec: a, Count: 1}},
		topo.DefaultParams())
	if err != nil {
		t.Fatal(err)
	}
	if c.NHosts() != 4 || c.NRanks() != 28 || len(c.Classes) != 2 || c.NPorts() != 25 {
		t.Fatalf("hosts %d ranks %d classes %d ports %d, want 4 28 2 25", c.NHosts(), c.NRanks(),
			len(c.Classes), c.NPorts())
	}
	if c.Host(0) != c.Host(3) {
		t.Error("equal hosts were built twice")
	}
	for rank := range c.NRanks() {
		p := c.Locate(rank)
		if c.Rank(p.Host, p.Local) != rank {
			t.Errorf("rank %d is found at host %d local %d, which is rank %d", rank, p.Host, p.Local,
				c.Rank(p.Host, p.Local))
		}
		if g := p.System.Nodes[p.GPU].GPU; g.Rank != p.Local {
			t.Errorf("rank %d: GPU of local rank %d, want %d", rank, g.Rank, p.Local)
		}
	}
	for id := range fabric.PortID(c.NPorts()) {
		p := c.Port(id)
		if c.PortOf(p.Host, p.Net) != id {
			t.Errorf("port %d is found at host %d net %d", id, p.Host, p.Net)
		}
	}
	if got := c.Port(16).BW; got != 1.25 {
		t.Errorf("the third host's port has %g GB/s, want 1.25", got)
	}
	for i := range c.NHosts() {
		if !c.Host(i).Systems[0].Inter {
			t.Errorf("host %d does not know that there are others", i)
		}
	}
}

func TestFewerGPUsAreTheLowestRanks(t *testing.T) {
	p := topo.DefaultParams()
	p.GPUs = units.Some(2)
	c, err := fabric.NewUniform(specOf(t, "dgx-h100"), 3, p)
	if err != nil {
		t.Fatal(err)
	}
	if c.NRanks() != 6 {
		t.Fatalf("%d ranks, want 6", c.NRanks())
	}
	if dev := c.Locate(5).System.Nodes[c.Locate(5).GPU].GPU.Dev; dev != 1 {
		t.Errorf("the last rank is device %d, want 1", dev)
	}
	p.GPUs = units.Some(5) // through both hosts of the domain
	d, err := fabric.NewUniform(specOf(t, "gb200-nvl72-2tray"), 2, p)
	if err != nil {
		t.Fatal(err)
	}
	if last := d.Locate(4); d.NRanks() != 10 || last.System.Nodes[last.GPU].GPU.Host != 1 ||
		last.System.NHosts != 2 {
		t.Errorf("%d ranks; the fifth is on host %d", d.NRanks(), last.System.Nodes[last.GPU].GPU.Host)
	}
	p.GPUs = units.Some(9)
	if _, err := fabric.NewUniform(specOf(t, "dgx-h100"), 3, p); err == nil {
		t.Error("nine of eight GPUs were given")
	}
}

func TestDomainsAreTakenApartAndJoined(t *testing.T) {
	p := topo.DefaultParams()
	two := specOf(t, "gb200-nvl72-2tray")
	whole, err := fabric.NewUniform(two, 2, p)
	if err != nil {
		t.Fatal(err)
	}
	p.SplitHosts = true
	single, err := fabric.NewUniform(two, 2, p)
	if err != nil {
		t.Fatal(err)
	}
	if whole.NHosts() != 2 || whole.Host(0).Systems[0].NHosts != 2 || single.NHosts() != 4 ||
		single.NRanks() != whole.NRanks() || len(single.Classes) != 2 {
		t.Errorf("whole %d hosts of %d, single %d of %d classes", whole.NHosts(),
			whole.Host(0).Systems[0].NHosts, single.NHosts(), len(single.Classes))
	}
	joined, err := decl.Join(decl.Group{Spec: specOf(t, "gb200-nvl72-tray"), Count: 3})
	if err != nil {
		t.Fatal(err)
	}
	c, err := fabric.NewUniform(joined, 2, topo.DefaultParams())
	if err != nil {
		t.Fatal(err)
	}
	s := c.Host(0).Systems[0]
	if c.NRanks() != 24 || s.NHosts != 3 || s.Path(s.Of(topo.GPU)[0], s.Of(topo.GPU)[11]).Kind !=
		topo.PathNVL {
		t.Errorf("%d ranks on %d hosts", c.NRanks(), s.NHosts)
	}
}
