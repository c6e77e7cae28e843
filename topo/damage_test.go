package topo_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/simccl/simccl/topo"
	"github.com/simccl/simccl/topo/decl"
	topoxml "github.com/simccl/simccl/topo/xml"
)

// twoGPUs is a small host; its parts in % are for tests to change.
const twoGPUs = `<system version="1">
  <cpu host_hash="0x1" numaid="0" affinity="ff" arch="x86_64" vendor="GenuineIntel" familyid="6" modelid="85">
    <pci busid="0000:10:00.0" class="0x060400" vendor="0x10b5" device="0x8796" subsystem_vendor="0x0" subsystem_device="0x0" link_speed="16.0 GT/s PCIe" link_width="16"%switch>
      <pci busid="0000:11:00.0" class="0x030200" vendor="0x10de" device="0x20b0" subsystem_vendor="0x10de" subsystem_device="0x0" link_speed="16.0 GT/s PCIe" link_width="16"%first>
        <gpu dev="0" sm="80" gdr="1"/>
      </pci>
      <pci busid="0000:12:00.0" class="0x030200" vendor="0x10de" device="0x20b0" subsystem_vendor="0x10de" subsystem_device="0x0" link_speed="16.0 GT/s PCIe" link_width="16"%second>
        <gpu dev="1" sm="80" gdr="1"/>
      </pci>
    </pci>
  </cpu>
</system>
`

func buildText(t *testing.T, xml string) (*topo.Host, error) {
	t.Helper()
	spec, err := topoxml.Parse([]byte(xml), "two.xml")
	if err != nil {
		t.Fatal(err)
	}
	return topo.Build(spec, topo.DefaultParams())
}

// TestKeepOnAGPU: below an element that says keep="1" NCCL 2.28.9 trims nothing
// and does not look for other marks (xml.cc:922 ncclTopoTrimXmlRec). On the
// <pci> of the first rank's GPU that changes nothing; on a later one, earlier
// ranks' views hold the GPU without its rank, which hides it.
func TestKeepOnAGPU(t *testing.T) {
	h, err := buildText(t, strings.NewReplacer("%switch", "", "%first", ` keep="1"`, "%second",
		"").Replace(twoGPUs))
	if err != nil || h.NRanks() != 2 {
		t.Errorf("first GPU kept: %v", err)
	}
	_, err = buildText(t, strings.NewReplacer("%switch", "", "%first", "", "%second",
		` keep="1"`).Replace(twoGPUs))
	if err == nil || !strings.Contains(err.Error(), "two.xml:8:9") {
		t.Errorf("second GPU kept: %v, want the place of the second GPU", err)
	}
}

// TestJoinedHostsHaveOtherCards: a guid is 64 bits in base 16, with or without
// 0x; the first host keeps its own.
func TestJoinedHostsHaveOtherCards(t *testing.T) {
	text := strings.NewReplacer("%switch", "", "%first", "", "%second", "").Replace(twoGPUs)
	for guid, want := range map[string][2]string{"0xa45e86000317e390": {"0xa45e86000317e390",
		"0xa45e86000318e390"}, "16": {"16", "0x10016"}, "0x0": {"0x0", "0x0"}} {
		nic := `<pci busid="0000:13:00.0" class="0x020000" link_speed="" link_width=""><nic><net name="mlx5_0" dev="0" speed="100000" port="1" guid="` + guid + `" gdr="1"/></nic></pci></pci></cpu>`
		spec, err := topoxml.Parse([]byte(strings.Replace(text, "</pci>\n  </cpu>", nic, 1)), "two.xml")
		if err != nil {
			t.Fatal(err)
		}
		both, err := decl.Join(decl.Group{Spec: spec, Count: 2})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		both.Root.Walk(func(e *topo.Element, _ []*topo.Element) {
			if v, ok := e.Get("guid"); ok {
				got = append(got, v)
			}
		})
		if len(got) != 2 || got[0] != want[0] || got[1] != want[1] {
			t.Errorf("guid %s: %v, want %v", guid, got, want)
		}
	}
}

// TestForcedGroupsEndAtFour: of a group in NCCL_NET_FORCE_MERGE NCCL 2.28.9
// reads as many names as a virtual NIC holds (topo.cc:1045).
func TestForcedGroupsEndAtFour(t *testing.T) {
	nics := ""
	for i := range 5 {
		nics += fmt.Sprintf(
			`<pci busid="0000:2%d:00.0" class="0x020000" link_speed="" link_width=""><nic><net name="mlx5_%d" dev="%d" speed="100000" port="1" guid="0x%d" gdr="1"/></nic></pci>`, i, i, i, i+1)
	}
	text := strings.NewReplacer("%switch", "", "%first", "", "%second", "").Replace(twoGPUs)
	spec, err := topoxml.Parse([]byte(strings.Replace(text, "</pci>\n  </cpu>", nics+"</pci></cpu>", 1)),
		"two.xml")
	if err != nil {
		t.Fatal(err)
	}
	p := topo.DefaultParams()
	p.ForceMerge = "mlx5_3,mlx5_2,mlx5_1,mlx5_0,mlx5_4"
	h, err := topo.Build(spec, p)
	if err != nil || len(h.MadeNets) != 1 || h.MadeNets[0] != "mlx5_0+mlx5_1+mlx5_2+mlx5_3" {
		t.Fatalf("made %v (%v), want the first four in one", h, err)
	}
}

// TestMisplacedLinksAreSkipped: an <nvlink> outside a <gpu> is nothing to NCCL
// 2.28.9 (xml.cc:326).
func TestMisplacedLinksAreSkipped(t *testing.T) {
	text := strings.NewReplacer("%switch", "", "%first", "", "%second", "").Replace(twoGPUs)
	h, err := buildText(t, strings.Replace(text, "</gpu>", "", 1))
	if err != nil {
		t.Fatal(err)
	}
	stray := strings.Replace(text, `<gpu dev="1" sm="80" gdr="1"/>`,
		`<gpu dev="1" sm="80" gdr="1"/><nvlink target="0000:11:00.0" count="4" tclass="0x068000"/>`, 1)
	g, err := buildText(t, stray)
	if err != nil || len(g.Systems[0].Of(topo.NVS)) != 0 || g.Systems[0].TotalBW != h.Systems[0].TotalBW {
		t.Errorf("a link beside the GPU counts: %v", err)
	}
}

// TestFusedNetsKnowTheirPorts: what is fused here has its ports' speeds, a file
// with a fused net has their names and sum.
func TestFusedNetsKnowTheirPorts(t *testing.T) {
	nic := func(name string, dev, mbps, function int) string {
		return fmt.Sprintf(
			`<pci busid="0000:20:00.%d" class="0x020000" link_speed="" link_width=""><nic><net name="%s" dev="%d" speed="%d" port="1" guid="0x%d" gdr="1"/></nic></pci>`, function, name, dev, mbps, dev+1)
	}
	text := strings.NewReplacer("%switch", "", "%first", "", "%second", "").Replace(twoGPUs)
	for nics, want := range map[string]int{nic("mlx5_0", 0, 100000, 0) + nic("mlx5_1", 1, 200000, 1): 2,
		nic("mlx5_0+mlx5_1", 0, 300000, 0): 0} {
		spec, err := topoxml.Parse([]byte(strings.Replace(text, "</pci>\n  </cpu>", nics+"</pci></cpu>", 1)),
			"two.xml")
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
		info := s.Nodes[s.Of(topo.NET)[0]].Net
		if len(info.Fused) != 2 || len(info.PortBW) != want || want > 0 &&
			(info.PortBW[0] != 12.5 || info.PortBW[1] != 25) || info.BW != 37.5 {
			t.Errorf("%s: ports %v of %v, %v together", nics, info.Fused, info.PortBW, info.BW)
		}
	}
}
