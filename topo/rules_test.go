package topo_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/simccl/simccl/rules"
	"github.com/simccl/simccl/topo"
	topoxml "github.com/simccl/simccl/topo/xml"
	"github.com/simccl/simccl/units"
)

// TestLevels: rules number levels as paths are numbered.
func TestLevels(t *testing.T) {
	for l, k := range map[rules.Level]topo.PathKind{rules.LOC: topo.PathLOC, rules.NVL: topo.PathNVL,
		rules.NVB: topo.PathNVB, rules.C2C: topo.PathC2C,
		rules.PIX: topo.PathPIX, rules.PXB: topo.PathPXB, rules.P2C: topo.PathP2C, rules.PXN: topo.PathPXN,
		rules.PHB: topo.PathPHB, rules.SYS: topo.PathSYS} {
		if topo.PathKind(l) != k {
			t.Errorf("%v has the number %d", k, l)
		}
	}
}

// ruledHost: a GPU and two ports behind a switch, on two cards.
const ruledHost = `<system version="1"><cpu host_hash="0x1" numaid="0" arch="x86_64" vendor="GenuineIntel" familyid="6" modelid="143">
<pci busid="0000:01:00.0" class="0x060400" link_speed="32.0 GT/s PCIe" link_width="16">
<pci busid="0000:02:00.0" class="0x030200" link_speed="32.0 GT/s PCIe" link_width="16"><gpu dev="0" sm="80" gdr="1"/></pci>
<pci busid="0000:04:00.0" class="0x020700" link_speed="32.0 GT/s PCIe" link_width="8"><nic><net name="mlx5_0" dev="0" speed="200000" port="1" gdr="1"/></nic></pci>
<pci busid="0000:05:00.0" class="0x020700" link_speed="32.0 GT/s PCIe" link_width="8"><nic><net name="mlx5_1" dev="1" speed="200000" port="1" gdr="1"/></nic></pci>
</pci></cpu></system>`

// TestRulesOfNets: fusion of NICs, widths above them and ids without a guid are
// the ruleset's.
func TestRulesOfNets(t *testing.T) {
	one, cpu := ruledHost, ruledHost[len(`<system version="1">`):len(ruledHost)-len("</system>")]
	two := `<system version="1">` + cpu + strings.Replace(cpu, `host_hash="0x1"`, `host_hash="0x2"`, 1) +
		"</system>"
	merged := func(p *topo.Params) { p.MergeLevel = units.Some(topo.PathPIX) }
	for _, c := range []struct {
		name, text string
		change     func(*topo.Params)
		want       string
	}{
		{"as is", one, merged, "mlx5_0+mlx5_1 2 48"},
		{"WidenFused", one, func(p *topo.Params) { merged(p); p.Rules.Topo.WidenFused = false },
			"mlx5_0+mlx5_1 2 24"},
		{"FuseNICs", one, func(p *topo.Params) { merged(p); p.Rules.Topo.FuseNICs = false },
			"mlx5_0 0 24; mlx5_1 1 24"},
		{"two hosts", two, func(*topo.Params) {},
			"mlx5_0 0 24; mlx5_1 1 24; mlx5_0 100000000000000 0; mlx5_1 100000000000001 0"},
		{"GUIDFallback", two, func(p *topo.Params) { p.Rules.Topo.GUIDFallback = false },
			"mlx5_0 0 24; mlx5_1 1 24; mlx5_0 0 0; mlx5_1 1 0"},
	} {
		p := topo.DefaultParams()
		p.NRanks = 4
		c.change(&p)
		h := built(t, c.text, p)
		s := h.Systems[0]
		if h.Whole != nil {
			s = h.Whole
		}
		var got []string
		for _, n := range s.Of(topo.NET) {
			got = append(got, fmt.Sprintf("%s %x %g", s.Nodes[n].Net.Name, s.Nodes[n].Net.ASIC,
				s.Path(s.Of(topo.GPU)[0], n).BW))
		}
		if g := strings.Join(got, "; "); g != c.want {
			t.Errorf("%s: %s, want %s", c.name, g, c.want)
		}
	}
}

// TestRulesOfNetPaths: which nets a GPU behind C2C reaches by P2C, and through
// which GPUs it may send (PXN), is the ruleset's.
func TestRulesOfNetPaths(t *testing.T) {
	const pci = `class="0x030200" link_speed="32.0 GT/s PCIe" link_width="16"`
	net := func(bus string, n, mbps int) string {
		return fmt.Sprintf(
			`<pci busid="0000:%s:00.0" class="0x020700" link_speed="32.0 GT/s PCIe" link_width="16"><nic><net name="mlx5_%d" dev="%d" speed="%d" port="1" guid="0x%d" gdr="1"/></nic></pci>`, bus, n, n, mbps, n+1)
	}
	arm := `<system version="1"><cpu host_hash="0x1" numaid="0" arch="arm64"><pci busid="0000:01:00.0" ` +
		pci + `><gpu dev="0" sm="90" gdr="1"><c2c bw="44712" count="10"/></gpu></pci>` +
		net("02", 0, 400000) + net("03", 1, 100000) + `</cpu></system>`
	gpu := func(bus string, dev int, peer string, rest string) string {
		return fmt.Sprintf(
			`<cpu host_hash="0x1" numaid="%d" arch="x86_64" vendor="GenuineIntel" familyid="6" modelid="143"><pci busid="0000:%s:00.0" class="0x060400" link_speed="32.0 GT/s PCIe" link_width="16">`+
				`<pci busid="0000:%s:01.0" `+pci+
				`><gpu dev="%d" sm="90" gdr="1"><nvlink target="0000:%s:01.0" count="18" tclass="0x030200"/></gpu></pci>%s</pci></cpu>`, dev, bus, bus, dev, peer, rest)
	}
	pair := `<system version="1">` + gpu("10", 0, "20", "") + gpu("20", 1, "10", net("21", 0, 400000)) +
		`</system>`
	for _, c := range []struct {
		name, text string
		change     func(*topo.Params)
		want       string
	}{
		{"as is", arm, func(*topo.Params) {}, "P2C P2C"},
		{"P2CLocalOnly", arm, func(p *topo.Params) { p.Rules.Topo.P2CLocalOnly = true }, "P2C PHB"},
		{"a relay", pair, func(*topo.Params) {}, "PXN"},
		{"a relay with GPUDirect RDMA", pair, func(p *topo.Params) { p.Rules.Topo.PXNNeedsGDR = true },
			"PXN"},
		{"a relay whose memory the NIC does not read", pair, func(p *topo.Params) {
			p.GDRRead = units.Some(0)
		}, "PXN"},
		{"PXNNeedsGDR", pair, func(p *topo.Params) {
			p.GDRRead, p.Rules.Topo.PXNNeedsGDR = units.Some(0), true
		}, "SYS"},
	} {
		p := topo.DefaultParams()
		p.NRanks = 4
		c.change(&p)
		s := built(t, c.text, p).Systems[0]
		var got []string
		for _, n := range s.Of(topo.NET) {
			got = append(got, s.Path(s.Of(topo.GPU)[0], n).Kind.String())
		}
		if g := strings.Join(got, " "); g != c.want {
			t.Errorf("%s: GPU 0 reaches the nets by %s, want %s", c.name, g, c.want)
		}
	}
}

func built(t *testing.T, text string, p topo.Params) *topo.Host {
	t.Helper()
	spec, err := topoxml.Parse([]byte(text), "t.xml")
	if err != nil {
		t.Fatal(err)
	}
	h, err := topo.Build(spec, p)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// TestBuildWantsRules: and holds the limits that they set.
func TestBuildWantsRules(t *testing.T) {
	spec, err := topoxml.Parse([]byte(ruledHost), "t.xml")
	if err != nil {
		t.Fatal(err)
	}
	var missing *rules.MissingError
	if _, err := topo.Build(spec, topo.Params{NRanks: 2}); !errors.As(err, &missing) {
		t.Errorf("no rules: %v", err)
	}
	p := topo.DefaultParams()
	p.Rules.Topo.MaxLinks = 2
	if _, err := topo.Build(spec, p); err == nil || !strings.Contains(err.Error(),
		"fails with more than 2 of a node") {
		t.Errorf("two links at most: %v", err)
	}
	p = topo.DefaultParams()
	p.Rules.Topo.MaxNodes = 0
	if _, err := topo.Build(spec, p); err == nil || !strings.Contains(err.Error(), "fails with more than 0") {
		t.Errorf("no node at all: %v", err)
	}
}

// TestNICsByCard: two functions of a card are two NIC nodes, before 2.24.3 one
// (topo.cc:433 of v2.23.4 clears the last digit of the bus id).
func TestNICsByCard(t *testing.T) {
	text := strings.NewReplacer("0000:05:00.0", "0000:04:00.1").Replace(ruledHost)
	for _, c := range []struct{ release, want string }{{"2.23.4", "[4000 2]"},
		{"2.24.3", "[4000 1] [4001 1]"}} {
		r, err := rules.For(c.release)
		if err != nil {
			t.Fatal(err)
		}
		p := topo.ParamsOf(r)
		p.NRanks = 2
		p.MergeLevel = units.Some(topo.PathLOC) // no virtual NIC of both
		s := built(t, text, p).Systems[0]
		var got []string
		for _, n := range s.Of(topo.NIC) {
			nets := 0
			for _, l := range s.Nodes[n].Links {
				if s.Links[l].Kind == topo.LinkNET {
					nets++
				}
			}
			got = append(got, fmt.Sprintf("[%x %d]", s.Nodes[n].Ident, nets))
		}
		if g := strings.Join(got, " "); g != c.want {
			t.Errorf("NCCL %s: NIC nodes with their nets %s, want %s", c.release, g, c.want)
		}
	}
}

// TestFlattenSecond: a Broadcom switch of two levels becomes one node, after which the
// list of PCI nodes is read from its second entry on, since 2.27.3 from its first
// (topo.cc:254 of v2.26.6, topo.cc:252 of v2.27.3). It shows where the level that
// goes was the first entry: the one that stays is read again, and marked, only by
// the later release.
func TestFlattenSecond(t *testing.T) {
	text := strings.Replace(ruledHost, `<pci busid="0000:01:00.0" class="0x060400"`,
		`<pci busid="0000:00:01.0" class="0x060400" device="0xc030" vendor="0x1000" subsystem_vendor="0x1000" subsystem_device="0x1000" link_speed="32.0 GT/s PCIe" link_width="16">`+
			`<pci busid="0000:01:00.0" class="0x060400" device="0xc030" vendor="0x1000" subsystem_vendor="0x1000" subsystem_device="0x0000"`, 1)
	text = strings.Replace(text, "</pci></cpu>", "</pci></pci></cpu>", 1)
	for _, c := range []struct{ release, want string }{{"2.26.6", "1000 1000c03010000000"},
		{"2.27.3", "1000 1000c0301000ffff"}} {
		r, err := rules.For(c.release)
		if err != nil {
			t.Fatal(err)
		}
		p := topo.ParamsOf(r)
		p.NRanks = 2
		s := built(t, text, p).Systems[0]
		var got []string
		for _, n := range s.Of(topo.PCI) {
			got = append(got, fmt.Sprintf("%x %x", s.Nodes[n].Ident, s.Nodes[n].PCI.Device))
		}
		if g := strings.Join(got, "; "); g != c.want {
			t.Errorf("NCCL %s: PCI nodes %s, want %s", c.release, g, c.want)
		}
	}
}

// TestVirtualNICsOfOnePort: from 2.24.3 to 2.26.6 a port that is merged with no other
// gets the number of a virtual NIC, and the nets of one PCI device stay two
// (topo.cc:972, 1141 of v2.26.6, whose code was run on this file).
func TestVirtualNICsOfOnePort(t *testing.T) {
	for _, c := range []struct{ release, want string }{{"2.23.4", "0 1"}, {"2.24.3", "2 3"},
		{"2.26.6", "2 3"}, {"2.27.3", "0 1"}} {
		p := paramsOf(t, c.release)
		p.MergeLevel = units.Some(topo.PathLOC)
		s := built(t, ruledHost, p).Systems[0]
		var got []string
		for _, n := range s.Of(topo.NET) {
			got = append(got, fmt.Sprintf("%x", s.Nodes[n].Ident))
		}
		if g := strings.Join(got, " "); g != c.want {
			t.Errorf("NCCL %s: numbers of nets %s, want %s", c.release, g, c.want)
		}
	}
	card := `<system version="1"><cpu host_hash="0x1" numaid="0" arch="x86_64" vendor="AuthenticAMD" familyid="175" modelid="1">` +
		`<pci busid="0000:02:00.0" class="0x030200" link_speed="32.0 GT/s PCIe" link_width="16"><gpu dev="0" sm="90" gdr="1"/></pci>` +
		`<pci busid="0000:03:00.0" class="0x020700" link_speed="32.0 GT/s PCIe" link_width="16"><nic>` +
		`<net name="mlx5_0" dev="0" speed="200000" port="1" guid="0x1" gdr="1"/><net name="mlx5_1" dev="1" speed="200000" port="2" guid="0x1" gdr="1"/></nic></pci></cpu></system>`
	for _, c := range []struct{ release, want string }{{"2.26.6", "0 1"}, {"2.27.3", "2"}} {
		p := paramsOf(t, c.release)
		s := built(t, card, p).Systems[0]
		var got []string
		for _, n := range s.Of(topo.NET) {
			got = append(got, fmt.Sprintf("%x", s.Nodes[n].Ident))
		}
		if g := strings.Join(got, " "); g != c.want {
			t.Errorf("NCCL %s: nets of a card %s, want %s", c.release, g, c.want)
		}
	}
}

func paramsOf(t *testing.T, release string) topo.Params {
	t.Helper()
	r, err := rules.For(release)
	if err != nil {
		t.Fatal(err)
	}
	p := topo.ParamsOf(r)
	p.NRanks = 4
	return p
}

// TestWholeHosts: up to 2.21.5 each rank keeps all GPUs of its host in its tree, so
// what is below a switch stays in the order of the file; later the branches of
// further ranks come behind those of the first (topo.cc:690 of v2.21.5, topo.cc:832
// of v2.22.3).
func TestWholeHosts(t *testing.T) {
	text := `<system version="1"><cpu host_hash="0x1" numaid="0" arch="x86_64" vendor="GenuineIntel" familyid="6" modelid="207">`
	for i, below := range []string{
		`class="0x030200" link_speed="32.0 GT/s PCIe" link_width="16"><gpu dev="1" sm="90" gdr="1"/>`,
		`class="0x020700" link_speed="32.0 GT/s PCIe" link_width="16"><nic><net name="eth0" dev="0" speed="100000" port="1" guid="0x1" gdr="1"/></nic>`,
		`class="0x030200" link_speed="32.0 GT/s PCIe" link_width="16"><gpu dev="0" sm="90" gdr="1"/>`,
	} {
		text += fmt.Sprintf(
			`<pci busid="0000:0%d:00.0" class="0x060400" link_speed="32.0 GT/s PCIe" link_width="16"><pci busid="0000:1%d:00.0" %s</pci></pci>`, i+1, i+1, below)
	}
	text += "</cpu></system>"
	for _, c := range []struct{ release, want string }{{"2.21.5", "1000 2000 3000, model 2"},
		{"2.22.3", "2000 3000 1000, model 2"}, {"2.26.2", "2000 3000 1000, model 4"}} {
		s := built(t, text, paramsOf(t, c.release)).Systems[0]
		cpu := s.Of(topo.CPU)[0]
		var got []string
		for _, l := range s.Nodes[cpu].Links {
			if to := &s.Nodes[s.Links[l].To]; to.Kind == topo.PCI {
				got = append(got, fmt.Sprintf("%x", to.Ident))
			}
		}
		if g := fmt.Sprintf("%s, model %d", strings.Join(got, " "), s.Nodes[cpu].CPU.Model); g != c.want {
			t.Errorf("NCCL %s: below the CPU %s, want %s", c.release, g, c.want)
		}
	}
}

// TestPCILinks: links between PCI switches beside the tree are read since 2.22.3
// (topo.cc:588 of v2.22.3; xml.cc:360 of v2.21.5 leaves such elements out).
func TestPCILinks(t *testing.T) {
	const text = `<system version="1"><cpu numaid="0" affinity="ff" arch="x86_64" vendor="GenuineIntel" familyid="6" modelid="85">
<pci busid="0000:01:00.0" class="0x060400" link_speed="16.0 GT/s PCIe" link_width="16"><pcilink target="0000:02:00.0"/>
<pci busid="0000:03:00.0" class="0x030200" link_speed="16.0 GT/s PCIe" link_width="16"><gpu dev="0" sm="80" rank="0" gdr="1"/></pci></pci>
<pci busid="0000:02:00.0" class="0x060400" link_speed="16.0 GT/s PCIe" link_width="16"><pcilink target="0000:01:00.0"/>
<pci busid="0000:04:00.0" class="0x030200" link_speed="16.0 GT/s PCIe" link_width="16"><gpu dev="1" sm="80" rank="1" gdr="1"/></pci></pci>
</cpu></system>`
	for release, want := range map[string]int{"2.21.5": 0, "2.22.3": 2, "2.28.9": 2} {
		r, err := rules.For(release)
		if err != nil {
			t.Fatal(err)
		}
		p := topo.ParamsOf(r)
		p.NRanks = 2
		s := built(t, text, p).Systems[0]
		got := 0
		for _, n := range s.Of(topo.PCI) {
			for _, l := range s.Nodes[n].Links {
				if s.Links[l].Kind == topo.LinkLOC {
					got++
				}
			}
		}
		if got != want {
			t.Errorf("NCCL %s: %d links between switches, want %d", release, got, want)
		}
	}
}

// TestPartsOfGPUs: parts of a GPU, and two GPUs in one <pci>, which 2.30.7 has nodes for
// (graph/topo.cc:590, 666), are refused at their place.
func TestPartsOfGPUs(t *testing.T) {
	for text, want := range map[[2]string]string{
		{"2.30.7", `<gpu dev="0" sm="107" mlopart="0"/>`}:                   `t.xml:1:159: system/cpu[0]/pci[0]/gpu[0]: mlopart="0": a part of a GPU ("0"): the parts that NCCL 2.30.7 makes of it (graph/topo.cc:590 of 2.30.7) are not modelled; leave it out, and with it the other parts of this GPU`,
		{"2.30.7", `<gpu dev="0" sm="90"/><gpu dev="1" sm="90" rank="1"/>`}: `a second GPU in one <pci>, which is not modelled; give it a <pci> of its own`,
		{"2.30.7", `<gpu dev="0" sm="90" mlopart="-1"/>`}:                   "",
		{"2.30.3", `<gpu dev="0" sm="90" mlopart="0"/>`}:                    "", // an attribute that it does not read
	} {
		r, err := rules.For(text[0])
		if err != nil {
			t.Fatal(err)
		}
		spec, err := topoxml.Parse(
			[]byte(`<system version="1"><cpu numaid="0" arch="arm64"><pci busid="0000:01:00.0" class="0x030200" link_speed="32.0 GT/s PCIe" link_width="16">`+text[1]+`</pci></cpu></system>`), "t.xml")
		if err != nil {
			t.Fatal(err)
		}
		_, err = topo.Build(spec, topo.ParamsOf(r))
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}

// TestRelayIsAGPU: PXN over a route that leads through a CPU ends NCCL's init
// (paths.cc:524 of v2.24.3); where GPUDirect is not asked for, and from 2.26.2 on, whose
// routes over C2C are no NVLink, nothing fails.
func TestRelayIsAGPU(t *testing.T) {
	text := `<system version="1"><cpu host_hash="0x1" numaid="0" arch="arm64">`
	for i := range 2 {
		text += fmt.Sprintf(`<pci busid="000%d:01:00.0" class="0x060400" link_speed="32.0 GT/s PCIe" link_width="16">`+
			`<pci busid="000%[1]d:02:00.0" class="0x030200" link_speed="32.0 GT/s PCIe" link_width="16">`+
			`<gpu dev="%[1]d" sm="100" gdr="1"><nvlink target="fffffff:ffff:ff" count="18" tclass="0x068000"/>`+
			`<c2c bw="44712" count="5"/></gpu></pci>`+
			`<pci busid="000%[1]d:03:00.0" class="0x020700" link_speed="32.0 GT/s PCIe" link_width="16"><nic>`+
			`<net name="mlx5_%[1]d" dev="%[1]d" speed="400000" port="1" guid="0x%[1]d" gdr="1"/></nic></pci></pci>`, i)
	}
	text += "</cpu></system>"
	for _, c := range []struct {
		release, text string
		pxn, fails    bool
	}{
		{"2.21.5", text, true, true},
		{"2.24.3", text, true, true},
		{"2.24.3", text, false, false},
		{"2.24.3", strings.ReplaceAll(text, `gdr="1"/></nic>`, `gdr="0"/></nic>`), true, false},
		{"2.26.2", text, true, false},
	} {
		p := paramsOf(t, c.release)
		p.Access.P2PLevel, p.Access.PXNDisable = units.Some(topo.PathLOC), !c.pxn
		spec, err := topoxml.Parse([]byte(c.text), "t.xml")
		if err != nil {
			t.Fatal(err)
		}
		_, err = topo.Build(spec, p)
		var path *topo.PathError
		if got := errors.As(err, &path); got != c.fails || err != nil && !got {
			t.Errorf("NCCL %s, PXN %v: %v, want an error of the path: %v", c.release, c.pxn, err, c.fails)
		}
	}
}

// TestRailsOfNets: from 2.30.7 on a net has the rail and the plane of the file, else those
// that NCCL_IB_HCA gives it, else the plugin's (SIMCCL_NET_RAIL), which are none for NCCL's own
// (transport/net_ib/init.cc:436 of v2.30.7). A virtual NIC has the rail that its ports share and
// a plane of theirs together (init.cc:217).
func TestRailsOfNets(t *testing.T) {
	inFile := strings.Replace(ruledHost, `name="mlx5_1"`, `name="mlx5_1" rail="7" plane="6"`, 1)
	for _, c := range []struct {
		name, release, text, hcas string
		rail                      units.Opt[int]
		merged                    bool
		want                      string
	}{
		{"nothing says it", "2.30.7", ruledHost, "", units.Opt[int]{}, false, "-1 -1, -1 -1"},
		{"a plugin does", "2.30.7", ruledHost, "", units.Some(0), false, "0 0, 0 0"},
		{"before", "2.29.7", inFile, "", units.Some(0), false, "-1 -1, -1 -1"},
		{"the file does", "2.30.7", inFile, "", units.Some(0), false, "0 0, 7 6"},
		{"a list does", "2.30.7", ruledHost, "mlx5_0:1:3:4,mlx5_1::5", units.Some(0), false, "3 4, 5 -1"},
		{"the file before the list", "2.30.7", inFile, "=mlx5_0:1:3,mlx5_1:1:5:2", units.Opt[int]{}, false,
			"3 -1, 7 6"},
		{"what is not on a list", "2.30.7", ruledHost, "^mlx5_2:1:3:4", units.Opt[int]{}, false,
			"-1 -1, -1 -1"},
		{"ports of one rail", "2.30.7", ruledHost, "mlx5_0:1:3:4,mlx5_1:1:3:5", units.Opt[int]{}, true,
			"3 16390"},
		{"ports of two rails", "2.30.7", ruledHost, "mlx5_0:1:3,mlx5_1:1:4", units.Opt[int]{}, true,
			"-1 16385"},
	} {
		r, err := rules.For(c.release)
		if err != nil {
			t.Fatal(err)
		}
		p := topo.ParamsOf(r)
		p.NRanks, p.NetRail, p.IBHCA = 4, c.rail, c.hcas
		if c.merged {
			p.MergeLevel = units.Some(topo.PathPIX)
		}
		s := built(t, c.text, p).Systems[0]
		var got []string
		for _, n := range s.Of(topo.NET) {
			got = append(got, fmt.Sprint(s.Nodes[n].Net.Rail, s.Nodes[n].Net.Plane))
		}
		if g := strings.Join(got, ", "); g != c.want {
			t.Errorf("%s: %s, want %s", c.name, g, c.want)
		}
	}
}

// TestRailsOfFabricFile: what a fabric file says of a net is more than a plugin's default, and
// less than the topology file and NCCL_IB_HCA.
func TestRailsOfFabricFile(t *testing.T) {
	inFile := strings.Replace(ruledHost, `name="mlx5_1"`, `name="mlx5_1" rail="7" plane="6"`, 1)
	for _, c := range []struct{ name, release, text, hcas, want string }{
		{"alone", "2.30.7", ruledHost, "", "0 0, 2 3"},
		{"the topology first", "2.30.7", inFile, "", "0 0, 7 6"},
		{"the list first", "2.30.7", ruledHost, "mlx5_0:1:4:4,mlx5_1:1:5:5", "4 4, 5 5"},
		{"before", "2.30.3", ruledHost, "", "-1 -1, -1 -1"},
	} {
		r, err := rules.For(c.release)
		if err != nil {
			t.Fatal(err)
		}
		p := topo.ParamsOf(r)
		p.NRanks, p.NetRail, p.IBHCA = 4, units.Some(0), c.hcas
		p.Rails = []topo.NetRail{{Net: 1, Rail: 2, Plane: 3}, {Net: 9, Rail: 9}}
		s := built(t, c.text, p).Systems[0]
		var got []string
		for _, n := range s.Of(topo.NET) {
			got = append(got, fmt.Sprint(s.Nodes[n].Net.Rail, s.Nodes[n].Net.Plane))
		}
		if g := strings.Join(got, ", "); g != c.want {
			t.Errorf("%s: %s, want %s", c.name, g, c.want)
		}
	}
}

// TestFirstNetOfGPUs: of nets that are equally near a GPU begins with that of its number on
// the host, from 2.30.7 on with that of its number among the GPUs that share them
// (graph/topo.cc:1799 of v2.30.4, 2070 of v2.30.7).
func TestFirstNetOfGPUs(t *testing.T) {
	board := func(bus, dev, net int) string {
		return fmt.Sprintf(`<cpu host_hash="0x1" numaid="%d" arch="x86_64" vendor="AuthenticAMD">`+
			`<pci busid="0000:%d0:00.0" class="0x060400" link_speed="" link_width="">`+
			`<pci busid="0000:%d1:00.0" class="0x030200" link_speed="" link_width=""><gpu dev="%d" sm="80" gdr="1"/></pci>`+
			`<pci busid="0000:%d2:00.0" class="0x020000" link_speed="" link_width=""><nic><net name="mlx5_%d" dev="%d" speed="100000" port="1" guid="0x%d"/></nic></pci>`+
			`<pci busid="0000:%d3:00.0" class="0x020000" link_speed="" link_width=""><nic><net name="mlx5_%d" dev="%d" speed="100000" port="1" guid="0x%d"/></nic></pci>`+
			`</pci></cpu>`, dev, bus, bus, dev, bus, net, net, net+1, bus, net+1, net+1, net+2)
	}
	text := `<system version="1">` + board(1, 0, 0) + board(2, 1, 2) + `</system>`
	for release, want := range map[string]string{"2.29.7": "[0 1] [3 2]", "2.30.3": "[0 1] [3 2]",
		"2.30.7": "[0 1] [2 3]"} {
		r, err := rules.For(release)
		if err != nil {
			t.Fatal(err)
		}
		p := topo.ParamsOf(r)
		p.NRanks = 4
		s := built(t, text, p).Systems[0]
		if got := fmt.Sprint(s.LocalNets(0), " ", s.LocalNets(1)); got != want {
			t.Errorf("NCCL %s: nets of the GPUs %s, want %s", release, got, want)
		}
	}
}

// TestLinksOfVirtualNICs: from 2.28.3 on the links of a virtual NIC have the width of its
// ports, up to 2.30.4 also those of switches between the ports and where they meet
// (graph/topo.cc:1340 of v2.30.4, 1587 of v2.30.7).
func TestLinksOfVirtualNICs(t *testing.T) {
	sw := func(bus string, in string) string {
		return `<pci busid="0000:` + bus + `:00.0" class="0x060400" link_speed="32.0 GT/s PCIe" link_width="8">` + in +
			`</pci>`
	}
	nic := func(bus, name string, dev int) string {
		return fmt.Sprintf(`<pci busid="0000:%s:00.0" class="0x020700" link_speed="32.0 GT/s PCIe" link_width="8">`+
			`<nic><net name="%s" dev="%d" speed="200000" port="1" guid="0x%d" gdr="1"/></nic></pci>`, bus, name, dev,
			dev+1)
	}
	gpu := `<pci busid="0000:12:00.0" class="0x030200" link_speed="32.0 GT/s PCIe" link_width="16">` +
		`<gpu dev="0" sm="80" gdr="1"/></pci>`
	text := `<system version="1"><cpu host_hash="0x1" numaid="0" arch="x86_64" vendor="AuthenticAMD">` +
		sw("01", sw("10", gpu+nic("11", "mlx5_0", 0))+sw("20", nic("21", "mlx5_1", 1))) + `</cpu></system>`
	for release, want := range map[string]string{"2.27.7": "24 24", "2.28.3": "48 48", "2.30.3": "48 48",
		"2.30.7": "24 48"} {
		r, err := rules.For(release)
		if err != nil {
			t.Fatal(err)
		}
		p := topo.ParamsOf(r)
		p.NRanks, p.MergeLevel = 4, units.Some(topo.PathPXB)
		s := built(t, text, p).Systems[0]
		uplink := func(bus uint64) any { // bandwidth of a switch's link to the one above
			for _, n := range s.Of(topo.PCI) {
				if s.Nodes[n].Ident == bus {
					links := s.Nodes[n].Links
					return s.Links[links[len(links)-1]].BW
				}
			}
			return nil
		}
		if got := fmt.Sprint(uplink(0x10000), " ", uplink(0x1000)); got != want {
			t.Errorf("NCCL %s: links above %s GB/s, want %s", release, got, want)
		}
	}
}

// TestNICsOfTwoCPUs: from 2.30.7 on NCCL fails where ports on different CPUs are to be one
// virtual NIC (graph/topo.cc:1565).
func TestNICsOfTwoCPUs(t *testing.T) {
	const two = `<system version="1">
  <cpu numaid="0" affinity="f" arch="x86_64" vendor="GenuineIntel" familyid="6" modelid="85" host_hash="0x1">
    <pci busid="0000:18:00.0" class="0x030200" link_speed="16.0 GT/s PCIe" link_width="16"><gpu dev="0" sm="80" rank="0" gdr="1"/></pci>
    <pci busid="0000:1a:00.0" class="0x020000" vendor="0x15b3" link_speed="16.0 GT/s PCIe" link_width="16"><nic>
      <net name="mlx5_0" dev="0" speed="100000" port="1" guid="0x1" maxconn="131072" gdr="1"/></nic></pci>
  </cpu>
  <cpu numaid="1" affinity="f0" arch="x86_64" vendor="GenuineIntel" familyid="6" modelid="85" host_hash="0x1">
    <pci busid="0000:9a:00.0" class="0x020000" vendor="0x15b3" link_speed="16.0 GT/s PCIe" link_width="16"><nic>
      <net name="mlx5_1" dev="1" speed="100000" port="1" guid="0x2" maxconn="131072" gdr="1"/></nic></pci>
  </cpu>
</system>`
	spec, err := topoxml.Parse([]byte(two), "two.xml")
	if err != nil {
		t.Fatal(err)
	}
	for release, want := range map[string]bool{"2.30.3": false, "2.30.7": true} {
		r, err := rules.For(release)
		if err != nil {
			t.Fatal(err)
		}
		for name, change := range map[string]func(*topo.Params){
			"by level": func(p *topo.Params) { p.MergeLevel = units.Some(topo.PathSYS) },
			"by name":  func(p *topo.Params) { p.ForceMerge = "mlx5_0,mlx5_1" },
		} {
			p := topo.ParamsOf(r)
			p.NRanks = 2
			change(&p)
			_, err := topo.Build(spec, p)
			if got := err != nil && strings.Contains(err.Error(), "different CPUs"); got != want {
				t.Errorf("%s, %s: %v", release, name, err)
			}
		}
	}
}
