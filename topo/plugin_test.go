package topo_test

import (
	"strings"
	"testing"

	"github.com/simccl/simccl/topo"
	topoxml "github.com/simccl/simccl/topo/xml"
)

// twoPorts is a host of two GPUs and a card of two ports, a switch between.
const twoPorts = `<system version="1"><cpu host_hash="0x1" numaid="0" affinity="ff" arch="x86_64" vendor="GenuineIntel" familyid="6" modelid="143">
<pci busid="0000:11:00.0" class="0x030200" vendor="0x10de" device="0x2330" link_speed="32.0 GT/s PCIe" link_width="16"><gpu dev="0" sm="90" rank="0" gdr="1"/></pci>
<pci busid="0000:12:00.0" class="0x030200" vendor="0x10de" device="0x2330" link_speed="32.0 GT/s PCIe" link_width="16"><gpu dev="1" sm="90" rank="1" gdr="1"/></pci>
<pci busid="0000:13:00.0" class="0x020000" vendor="%vendor" device="0x1021" link_speed="32.0 GT/s PCIe" link_width="16"><nic>
<net name="%a" dev="0" latency="%latency" speed="100000" port="%port" guid="0x1" maxconn="131072" gdr="1"/><net name="%b" dev="1" latency="%latency" speed="100000" port="%port" guid="0x2" maxconn="131072" gdr="1"/>
</nic></pci></cpu></system>`

// A net is one of NCCL's IB plugin unless another plugin reports it: its ports fuse and
// NCCL_IB_HCA chooses among them, whatever their names (net_ib.cc:710, net_ib.cc:740).
func TestNetsAreOfThePluginThatReportsThem(t *testing.T) {
	const mellanox = "0x15b3"
	for _, c := range []struct {
		a, b, vendor, latency, port string
		want                        topo.Plugin
	}{
		{"mlx5_0", "mlx5_1", mellanox, "0", "1", topo.PluginVerbs},
		{"rocep34s0f0", "rocep34s0f1", mellanox, "0", "1", topo.PluginVerbs},
		{"ibp1s0f0", "ibp1s0f1", "", "0", "1", topo.PluginVerbs},
		{"irdma0", "irdma1", "0x8086", "0", "1", topo.PluginVerbs},
		{"erdma_0", "erdma_1", "0x1ded", "0", "1", topo.PluginVerbs},
		{"hns_0", "hns_1", "0x19e5", "0", "1", topo.PluginVerbs},
		{"mana_0", "mana_1", "0x1414", "0", "1", topo.PluginVerbs},
		{"hfi1_0", "hfi1_1", "0x8086", "0", "1", topo.PluginVerbs},
		{"blue", "green", "0x1234", "0", "2", topo.PluginVerbs},
		{"mlx5_0", "mlx5_1", mellanox, "3", "1", topo.PluginVerbs}, // a latency that a user wrote
		{"rdmap16s27", "rdmap17s27", "0x1d0f", "75", "1", topo.PluginEFA},
		{"rdmap0", "rdmap1", "", "0", "1", topo.PluginEFA},
		{"cxi0", "cxi1", "0x17db", "0", "1", topo.PluginSlingshot},
		{"cxi0", "cxi1", "", "0", "1", topo.PluginSlingshot},
		{"enp6s0", "enp7s0", "0x1ae0", "0", "1", topo.PluginGoogle},
		{"enp6s0", "enp7s0", "", "0", "1", topo.PluginUnknown},
		{"a", "b", "", "40", "1", topo.PluginUnknown},
		{"a", "b", mellanox, "0", "0", topo.PluginUnknown},
	} {
		text := strings.NewReplacer("%a", c.a, "%b", c.b, "%vendor", c.vendor, "%latency", c.latency, "%port",
			c.port).Replace(twoPorts)
		text = strings.Replace(text, ` vendor=""`, "", 1)
		nets := func(hca string) []*topo.NetInfo {
			spec, err := topoxml.Parse([]byte(text), "two.xml")
			if err != nil {
				t.Fatal(err)
			}
			p := topo.DefaultParams()
			p.NRanks, p.IBHCA = 4, hca
			h, err := topo.Build(spec, p)
			if err != nil {
				t.Fatal(err)
			}
			var list []*topo.NetInfo
			for _, n := range h.System(0).Of(topo.NET) {
				list = append(list, h.System(0).Nodes[n].Net)
			}
			return list
		}
		all, one, none := nets(""), nets("="+c.b), nets("=nosuch")
		if c.want != topo.PluginVerbs {
			if len(all) != 2 || len(one) != 2 || len(none) != 2 || all[0].Plugin != c.want {
				t.Errorf("%s (%s): %d, %d and %d nets, plugin %d; want two of plugin %d with any list", c.a,
					c.vendor, len(all), len(one), len(none), all[0].Plugin, c.want)
			}
			continue
		}
		if len(all) != 1 || all[0].Name != c.a+"+"+c.b || all[0].Plugin != topo.PluginVerbs {
			t.Errorf("%s (%s): %d nets, first %q; want one of both ports", c.a, c.vendor, len(all),
				all[0].Name)
		}
		if len(one) != 1 || one[0].Name != c.b || len(none) != 1 || none[0].Name != "eth0" {
			t.Errorf("%s: %d nets by its name, %d by another's; want that port, and an interface", c.b,
				len(one), len(none))
		}
	}
}
