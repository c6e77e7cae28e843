package topo_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/simccl/simccl/rules"
	"github.com/simccl/simccl/topo"
	topoxml "github.com/simccl/simccl/topo/xml"
)

// TestGUIDsOfReleases: a guid without 0x is 0 before 2.28.7, where NCCL reads "0x%lx"
// (2.28.3 graph/topo.cc:365, 2.28.7 :367).
func TestGUIDsOfReleases(t *testing.T) {
	for release, want := range map[string]string{"2.21.5": "12 0", "2.26.6": "12 0", "2.27.7": "12 0",
		"2.28.3": "12 0", "2.28.7": "12 13", "2.30.7": "12 13"} {
		r, err := rules.For(release)
		if err != nil {
			t.Fatal(err)
		}
		p := topo.ParamsOf(r)
		p.NRanks, p.MergeNICsDisabled = 4, true
		s := built(t, addGUIDs(ruledHost), p).Systems[0]
		var got []string
		for _, n := range s.Of(topo.NET) {
			got = append(got, fmt.Sprintf("%x", s.Nodes[n].Net.ASIC))
		}
		if g := strings.Join(got, " "); g != want {
			t.Errorf("%s: guids %s, want %s", release, g, want)
		}
	}
}

// addGUIDs gives the nets of ruledHost the guids 0x12 and 13.
func addGUIDs(text string) string {
	text = strings.Replace(text, `name="mlx5_0"`, `name="mlx5_0" guid="0x12"`, 1)
	return strings.Replace(text, `name="mlx5_1"`, `name="mlx5_1" guid="13"`, 1)
}

// TestNetsThatStayUnreported: where NCCL keeps a net that the plugin does not report under a
// number that it does not have, the file is refused (2.26.6 graph/xml.cc:964).
func TestNetsThatStayUnreported(t *testing.T) {
	text := `<system version="1"><cpu numaid="0" host_hash="0x1" affinity="f" arch="x86_64" ` +
		`vendor="AuthenticAMD" familyid="1" modelid="1">` +
		`<pci busid="0000:11:00.0" class="0x030000" link_speed="" link_width=""><gpu dev="0" sm="90"/></pci>` +
		`<pci busid="0000:12:00.0" class="0x020000" link_speed="" link_width=""><nic>` +
		`<net name="mlx5_0" dev="0" speed="100000" port="1" gdr="1"/>` +
		`<net name="mlx5_1" dev="1" speed="100000" port="1" gdr="1"/></nic></pci></cpu></system>`
	for release, want := range map[string]string{"2.21.5": "",
		"2.22.3": "the plugin reports 1 nets without this one, which NCCL keeps as number 1 all the same " +
			"(graph/xml.cc:955 of 2.22.3)",
		"2.24.3": "", // number 1 is the virtual NIC of the first
		"2.27.3": "", "2.28.9": ""} {
		r, err := rules.For(release)
		if err != nil {
			t.Fatal(err)
		}
		p := topo.ParamsOf(r)
		p.NRanks, p.IBHCA = 2, "mlx5_0"
		spec, err := topoxml.Parse([]byte(text), "t.xml")
		if err != nil {
			t.Fatal(err)
		}
		_, err = topo.Build(spec, p)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", release, err, want)
		}
	}
}
