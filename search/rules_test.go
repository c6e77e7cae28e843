package search_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/simccl/simccl/rules"
	"github.com/simccl/simccl/search"
	"github.com/simccl/simccl/topo"
	topoxml "github.com/simccl/simccl/topo/xml"
)

// islands is a host with a pair of GPUs at each CPU, joined by NVLink, and a slow
// net at the first CPU.
func islands(t *testing.T, r *rules.Ruleset, cpus, nRanks int) *topo.System {
	t.Helper()
	text := `<system version="1">`
	for cpu := range cpus {
		text += fmt.Sprintf(`<cpu numaid="%d" arch="x86_64" vendor="GenuineIntel" familyid="6" modelid="85">`,
			cpu)
		for g := range 2 {
			text += fmt.Sprintf(
				`<pci busid="0000:%d%d:00.0" class="0x030200" link_speed="8.0 GT/s PCIe" link_width="16"><gpu dev="%d" sm="80" gdr="1">`+
					`<nvlink target="0000:%d%d:00.0" count="2" tclass="0x030200"/></gpu></pci>`, cpu, g,
				2*cpu+g,
				cpu, 1-g)
		}
		if cpu == 0 {
			text += `<pci busid="0000:0a:00.0" class="0x020700" link_speed="8.0 GT/s PCIe" link_width="16"><nic><net name="mlx5_0" dev="0" speed="100" port="1" guid="0x1" gdr="1"/></nic></pci>`
		}
		text += `</cpu>`
	}
	spec, err := topoxml.Parse([]byte(text+`</system>`), "t.xml")
	if err != nil {
		t.Fatal(err)
	}
	p := topo.ParamsOf(r)
	p.NRanks = nRanks
	h, err := topo.Build(spec, p)
	if err != nil {
		t.Fatal(err)
	}
	return h.System(0)
}

// TestRulesOfSearch: what a search tries is the ruleset's.
func TestRulesOfSearch(t *testing.T) {
	for _, c := range []struct {
		name         string
		cpus, nRanks int
		change       func(*rules.Ruleset)
		want         string
	}{
		{"one node", 2, 4, func(*rules.Ruleset) {}, "2 to 32 channels, NVL to SYS, PIX to PIX"},
		{"TwoIslands", 2, 4, func(r *rules.Ruleset) { r.Search.TwoIslands = false },
			"1 to 32 channels, NVL to SYS, PIX to PIX"},
		{"MaxChannels", 2, 4, func(r *rules.Ruleset) { r.MaxChannels = 8 },
			"2 to 4 channels, NVL to SYS, PIX to PIX"},
		{"two nodes", 1, 4, func(*rules.Ruleset) {}, "1 to 32 channels, NVL to PHB, PHB to PHB"},
		{"SYSBelowSM90", 1, 4, func(r *rules.Ruleset) { r.Search.SYSBelowSM90 = true },
			"1 to 32 channels, NVL to SYS, PHB to SYS"},
		{"KindsOfSystem", 1, 4, func(r *rules.Ruleset) { r.Search.KindsOfSystem = false },
			"1 to 32 channels, NVL to SYS, PIX to SYS"},
	} {
		r := rules.Default()
		c.change(r)
		sys := islands(t, r, c.cpus, c.nRanks)
		g, err := search.Compute(sys, search.Want{ID: search.RingID, Pattern: search.RingPattern,
			MinChannels: 1, MaxChannels: r.MaxChannels / 2}, search.Params{Rules: r})
		if err != nil {
			t.Fatal(err)
		}
		first := g.Attempts[0]
		intra, inter, least, most := first.TypeIntra, first.TypeInter, first.TypeIntra, first.TypeInter
		for _, a := range g.Attempts {
			intra, inter = max(intra, a.TypeIntra), max(inter, a.TypeInter)
		}
		if got := fmt.Sprintf("%d to %d channels, %v to %v, %v to %v", g.MinChannels, g.MaxChannels, least,
			intra, most, inter); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

// TestRulesOfNets: in an NVLink domain of two hosts, each a GPU with two ports, the
// search tries one port of each host first (ScatterNets), or both of the first: the
// channels come in another order.
func TestRulesOfNets(t *testing.T) {
	const pci = `link_speed="32.0 GT/s PCIe" link_width="16"`
	text := `<system version="1">`
	for host := range 2 {
		text += fmt.Sprintf(
			`<cpu host_hash="0x%d" numaid="0" arch="x86_64" vendor="GenuineIntel" familyid="6" modelid="143"><pci busid="0000:01:00.0" class="0x060400" %s>`+
				`<pci busid="0000:02:00.0" class="0x030200" %s><gpu dev="0" sm="90" gdr="1"><nvlink target="fffffff:ff:ff.0" count="18" tclass="0x068000"/></gpu></pci>`, host+1, pci, pci)
		for n := range 2 {
			text += fmt.Sprintf(
				`<pci busid="0000:0%d:00.0" class="0x020700" %s><nic><net name="mlx5_%d" dev="%d" speed="200000" port="1" guid="0x%d%d" gdr="1"/></nic></pci>`, n+4, pci, n, n, host+1, n)
		}
		text += `</pci></cpu>`
	}
	spec, err := topoxml.Parse([]byte(text+`</system>`), "t.xml")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		scatter bool
		want    string
	}{{true, "0.0 1.0 0.1 1.1"}, {false, "0.0 1.0 1.1 0.1"}} {
		r := rules.Default()
		r.Search.ScatterNets = c.scatter
		p := topo.ParamsOf(r)
		p.NRanks = 4
		h, err := topo.Build(spec, p)
		if err != nil {
			t.Fatal(err)
		}
		g, err := search.Compute(h.System(0), search.Want{ID: search.RingID, Pattern: search.RingPattern,
			MinChannels: 1, MaxChannels: 4}, search.Params{Rules: r})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, n := range g.Inter {
			got = append(got, fmt.Sprintf("%d.%d", n[0]>>56, n[0]&0xff))
		}
		if g := strings.Join(got, " "); g != c.want {
			t.Errorf("ScatterNets %t: channels begin at host.net %s, want %s", c.scatter, g, c.want)
		}
	}
}

// TestOneWayLinkIsRefused: NVLink to a POWER CPU is charged in both directions; a
// System whose route has such a link without its reverse is refused by name.
func TestOneWayLinkIsRefused(t *testing.T) {
	nodes := []topo.Node{{Kind: topo.GPU, Ident: 0x1000, GPU: &topo.GPUInfo{SM: 70}},
		{Kind: topo.CPU, CPU: &topo.CPUInfo{Arch: topo.ArchPower}},
		{Kind: topo.GPU, Ident: 0x2000, GPU: &topo.GPUInfo{Dev: 1, Rank: 1, SM: 70}}}
	links := []topo.Link{{From: 0, To: 1, Kind: topo.LinkNVL, BW: 12}, {From: 1, To: 2, Kind: topo.LinkNVL,
		BW: 12}}
	nodes[0].Links, nodes[1].Links = []topo.LinkID{0}, []topo.LinkID{1}
	s := topo.Assemble(rules.Default(), nodes, links, func(from, base topo.NodeID) topo.Path {
		switch {
		case from == base:
			return topo.Path{Kind: topo.PathLOC, BW: 5000}
		case from < base:
			return topo.Path{Kind: topo.PathPHB, BW: 12, Links: []topo.LinkID{0, 1}[from:base]}
		}
		return topo.Path{Kind: topo.PathDIS}
	})
	s.MaxBW, s.TotalBW = 12, 12
	_, err := search.Compute(s, search.Want{ID: search.RingID, Pattern: search.RingPattern, MinChannels: 1,
		MaxChannels: 2}, search.Params{Rules: rules.Default()})
	var wrong *topo.PathError
	if !errors.As(err, &wrong) || wrong.Node != "GPU/0-1000" || wrong.Hint == "" ||
		!strings.Contains(err.Error(), "its NVL link to CPU/0-0 has none back") {
		t.Errorf("%v, want the link from the first GPU to the CPU", err)
	}
}

// TestSearchWantsRules: and those of its System.
func TestSearchWantsRules(t *testing.T) {
	sys := islands(t, rules.Default(), 2, 4)
	var missing *rules.MissingError
	if _, err := search.All(sys, search.Params{}); !errors.As(err, &missing) {
		t.Errorf("no rules: %v", err)
	}
	other := rules.Default()
	other.Release.Minor++
	var mixed *rules.MixedError
	if _, err := search.All(sys, search.Params{Rules: other}); !errors.As(err, &mixed) {
		t.Errorf("rules of another release: %v", err)
	}
}

// TestFirstGPUsByHops: of the GPUs on the widest path from a net, a channel starts at
// the one with the best kind of path (search.cc:603 of v2.27.3), before at those in
// fewest hops (search.cc:612 of v2.26.6). Here GPU 0 is behind the net's own switch, two
// switches further down, and the others at the CPU, which is one hop less: by
// fewest hops all channels would cross the host bridge, which is worse than any
// path from a GPU to the net, and none is found.
func TestFirstGPUsByHops(t *testing.T) {
	const pci = `link_speed="32.0 GT/s PCIe" link_width="16"`
	gpu := func(dev int) string {
		return fmt.Sprintf(
			`<pci busid="0000:%d0:00.0" class="0x030200" %s><gpu dev="%d" sm="80" gdr="1"><nvlink target="fffffff:ff:ff.0" count="12" tclass="0x068000"/></gpu></pci>`, dev+1, pci, dev)
	}
	bridge := func(bus, in string) string {
		return fmt.Sprintf(`<pci busid="0000:%s:00.0" class="0x060400" %s>%s</pci>`, bus, pci, in)
	}
	text := `<system version="1"><cpu host_hash="0x1" numaid="0" arch="x86_64" vendor="GenuineIntel" familyid="6" modelid="143">` +
		bridge("01", `<pci busid="0000:04:00.0" class="0x020700" `+pci+
			`><nic><net name="mlx5_0" dev="0" speed="200000" port="1" guid="0x1" gdr="1"/></nic></pci>`+
			bridge("02", bridge("03", gpu(0)))) + gpu(1) + gpu(2) + gpu(3) + `</cpu></system>`
	spec, err := topoxml.Parse([]byte(text), "t.xml")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ release, want string }{{"2.26.6", "0.1 GB/s, none by SYS"},
		{"2.27.3", "24 GB/s, first GPU 0 by PXB"}} {
		r, err := rules.For(c.release)
		if err != nil {
			t.Fatal(err)
		}
		p := topo.ParamsOf(r)
		p.NRanks = 8
		h, err := topo.Build(spec, p)
		if err != nil {
			t.Fatal(err)
		}
		g, err := search.Compute(h.System(0), search.Want{ID: search.TreeID, Pattern: search.TreePattern,
			MinChannels: 1, MaxChannels: 1}, search.Params{Rules: r})
		if err != nil {
			t.Fatal(err)
		}
		first := "none"
		if g.BWInter > 1 { // else the fallback, which has no search behind it
			first = fmt.Sprintf("first GPU %d", g.Intra[0][0])
		}
		if got := fmt.Sprintf("%v GB/s, %s by %v", g.BWInter, first, g.TypeInter); got != c.want {
			t.Errorf("NCCL %s: %s, want %s", c.release, got, c.want)
		}
	}
}

// TestNetsOfPolicy: from 2.28.7 on NCCL_NETDEVS_POLICY=MAX bounds the nets that a channel is
// tried with, too, and not only those that a GPU prefers (graph/search.cc:522 of v2.28.3, 523 of
// v2.28.7).
func TestNetsOfPolicy(t *testing.T) {
	text := `<system version="1"><cpu numaid="0" arch="x86_64" vendor="AuthenticAMD"><pci busid="0000:01:00.0" ` +
		`class="0x030200" link_speed="32.0 GT/s PCIe" link_width="16"><gpu dev="0" sm="80" gdr="1"/></pci>`
	for n := range 2 {
		text += fmt.Sprintf(`<pci busid="0000:1%d:00.0" class="0x020000" link_speed="16.0 GT/s PCIe" `+
			`link_width="16"><nic><net name="mlx5_%d" dev="%d" speed="100000" port="1" guid="0x%d" gdr="1"/></nic></pci>`,
			n, n, n, n+1)
	}
	spec, err := topoxml.Parse([]byte(text+`</cpu></system>`), "t.xml")
	if err != nil {
		t.Fatal(err)
	}
	for release, want := range map[string]int{"2.28.3": 2, "2.28.7": 1} {
		r, err := rules.For(release)
		if err != nil {
			t.Fatal(err)
		}
		p := topo.ParamsOf(r)
		p.NRanks, p.NetDevs = 2, topo.NetDevsPolicy{Mode: topo.NetDevsMax, Max: 1}
		h, err := topo.Build(spec, p)
		if err != nil {
			t.Fatal(err)
		}
		set, err := search.All(h.System(0), search.Params{Rules: r})
		if err != nil {
			t.Fatal(err)
		}
		nets := map[uint64]bool{}
		for _, c := range set[search.RingID].Inter {
			nets[c[0]], nets[c[1]] = true, true
		}
		if len(nets) != want {
			t.Errorf("NCCL %s: channels use %d nets, want %d", release, len(nets), want)
		}
	}
}

// TestSearchNeedsAGPUAndACPU: one graph alone is refused as all of them are (search.cc:991).
func TestSearchNeedsAGPUAndACPU(t *testing.T) {
	for _, c := range []struct {
		kind topo.NodeKind
		want string
	}{{topo.CPU, "search: the system has no GPU"}, {topo.GPU, "search: the system has no CPU"}} {
		node := topo.Node{Kind: c.kind}
		if c.kind == topo.GPU {
			node.GPU = &topo.GPUInfo{}
		}
		s := topo.Assemble(rules.Default(), []topo.Node{node}, nil, func(from, base topo.NodeID) topo.Path {
			return topo.Path{Kind: topo.PathLOC, BW: 5000}
		})
		p := search.Params{Rules: rules.Default()}
		g, err := search.Compute(s, search.Want{ID: search.RingID, Pattern: search.RingPattern,
			MinChannels: 1, MaxChannels: 2}, p)
		if err == nil || err.Error() != c.want || g != nil {
			t.Errorf("%v alone: %+v, %v, want %s", c.kind, g, err, c.want)
		}
		if _, err := search.All(s, p); err == nil || err.Error() != c.want {
			t.Errorf("%v alone, all graphs: %v, want %s", c.kind, err, c.want)
		}
	}
}
