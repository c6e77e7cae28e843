package topo_test

import (
	"strings"
	"testing"

	"github.com/simccl/simccl/topo"
	topoxml "github.com/simccl/simccl/topo/xml"
	"github.com/simccl/simccl/units"
)

// A net is the socket plugin's where it has what that plugin reports
// (net_socket.cc:117), whatever its name; its NIC's vendor
// is that of the PCI device around it.
func TestNetsOfTheSocketPlugin(t *testing.T) {
	text := strings.NewReplacer("%switch", "", "%first", "", "%second", "").Replace(twoGPUs)
	for net, want := range map[string]bool{
		`name="eth0" dev="0" latency="0" speed="100000" port="0" guid="0x0" maxconn="65536" gdr="0"`:    true,
		`name="lo" dev="0" speed="10000" port="0" guid="0x0" maxconn="65536" gdr="0"`:                   true,
		`name="ib0" dev="0" speed="100000" port="0" guid="0x0" maxconn="65536" gdr="0"`:                 true,
		`name="mlx5_0" dev="0" speed="100000" port="1" guid="0x1" maxconn="131072" gdr="1"`:             false,
		`name="mlx5_0" dev="0" speed="100000" port="1" guid="0x1" maxconn="65536" gdr="0"`:              false,
		`name="rdmap0" dev="0" speed="100000" port="1" guid="0x1" maxconn="262144" gdr="1"`:             false,
		`name="enp6s0" dev="0" speed="200000" port="1" guid="0x1" maxconn="131072" gdr="1"`:             false,
		`name="eth0" dev="0" speed="100000" port="0" guid="0x0" maxconn="65536" gdr="1"`:                false,
		`name="eth0" dev="0" speed="100000" port="0" guid="0x0" maxconn="64" gdr="0"`:                   false,
		`name="eth1+eth2" dev="0" speed="200000" port="0" guid="0x0" maxconn="65536" gdr="0" coll="0" `: true,
	} {
		nic := `<pci busid="0000:13:00.0" class="0x020000" vendor="0x1d0f" device="0xec20" link_speed="" link_width=""><nic><net ` +
			strings.TrimSpace(net) + `/></nic></pci></pci></cpu>`
		spec, err := topoxml.Parse([]byte(strings.Replace(text, "</pci>\n  </cpu>", nic, 1)), "two.xml")
		if err != nil {
			t.Fatal(err)
		}
		if got := onlyNet(t, spec, topo.DefaultParams()); got.Sockets != want || got.Vendor != 0x1d0f {
			t.Errorf("%s: sockets %v, vendor %#x; want %v, 0x1d0f", net, got.Sockets, got.Vendor, want)
		}
	}
}

// onlyNet builds a host of four ranks and returns its net.
func onlyNet(t *testing.T, spec *topo.Spec, p topo.Params) *topo.NetInfo {
	t.Helper()
	p.NRanks = 4
	h, err := topo.Build(spec, p)
	if err != nil {
		t.Fatal(err)
	}
	s := h.System(0)
	nets := s.Of(topo.NET)
	if len(nets) != 1 {
		t.Fatalf("%d nets", len(nets))
	}
	return s.Nodes[nets[0]].Net
}

// With NCCL_NET=Socket nets of any other plugin go, whatever their names; an
// interface of which a file says little is taken for what that plugin reports.
func TestOnlySocketsLeaveNoOtherNet(t *testing.T) {
	text := strings.NewReplacer("%switch", "", "%first", "", "%second", "").Replace(twoGPUs)
	for _, c := range []struct {
		net, name string
		gbps      units.GBps
	}{
		{`name="cxi0" dev="0" speed="200000" port="1" guid="0x200c" maxconn="128" gdr="1"`, "eth0", 1.25},
		{`name="mlx5_0" dev="0" speed="200000"`, "eth0", 1.25},
		{`name="rdmap0" dev="0" speed="100000" port="1" guid="0x1" maxconn="65536" gdr="0"`, "eth0", 1.25},
		{`name="ens8" dev="0" speed="100000" port="0" guid="0x0" maxconn="65536" gdr="0"`, "ens8", 12.5},
		{`name="ens8" dev="0" speed="100000"`, "ens8", 12.5},
	} {
		nic := `<pci busid="0000:13:00.0" class="0x020000" link_speed="" link_width=""><nic><net ` + c.net + `/></nic></pci></pci></cpu>`
		spec, err := topoxml.Parse([]byte(strings.Replace(text, "</pci>\n  </cpu>", nic, 1)), "two.xml")
		if err != nil {
			t.Fatal(err)
		}
		p := topo.DefaultParams()
		p.SocketsOnly = true
		if got := onlyNet(t, spec, p); !got.Sockets || got.Name != c.name || got.BW != c.gbps {
			t.Errorf("%s: %s of %v GB/s, sockets %v; want %s of %v", c.net, got.Name, got.BW, got.Sockets,
				c.name, c.gbps)
		}
		if plain := onlyNet(t, spec, topo.DefaultParams()); !strings.Contains(c.net, plain.Name) {
			t.Errorf("%s: without it %s", c.net, plain.Name)
		}
	}
}
