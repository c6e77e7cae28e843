package topo_test

import (
	"strings"
	"testing"

	"github.com/simccl/simccl/topo"
	topoxml "github.com/simccl/simccl/topo/xml"
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
		nic := `<pci busid="0000:13:00.0" class="0x020000" vendor="0x1d0f" device="0xec20"><nic><net ` + strings.TrimSpace(net) + `/></nic></pci></pci></cpu>`
		spec, err := topoxml.Parse([]byte(strings.Replace(text, "</pci>\n  </cpu>", nic, 1)), "two.xml")
		if err != nil {
			t.Fatal(err)
		}
		p := topo.DefaultParams()
		p.NRanks = 4
		h, err := topo.Build(spec, p)
		if err != nil {
			t.Fatal(err)
		}
		s := h.System(0)
		nets := s.Of(topo.NET)
		if len(nets) != 1 {
			t.Fatalf("%s: %d nets", net, len(nets))
		}
		if got := s.Nodes[nets[0]].Net; got.Sockets != want || got.Vendor != 0x1d0f {
			t.Errorf("%s: sockets %v, vendor %#x; want %v, 0x1d0f", net, got.Sockets, got.Vendor, want)
		}
	}
}
