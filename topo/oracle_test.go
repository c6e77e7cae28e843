package topo_test

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/simccl/simccl/topo"
	"github.com/simccl/simccl/units"
)

// randomSpec draws a machine: sockets, PCI trees, GPUs joined by NVLink or a
// switch, C2C, nets.
func randomSpec(t *rapid.T) *topo.Spec {
	g := &drawer{t: t}
	root := &topo.Element{Name: "system", Open: true, Attrs: attrs("version", "1")}
	arch := rapid.SampledFrom([]string{"x86_64", "arm64", "ppc64"}).Draw(t, "arch")
	vendor := rapid.SampledFrom([]string{"GenuineIntel", "AuthenticAMD", "CentaurHauls", "Other"}).Draw(t, "vendor")
	g.sm = rapid.SampledFrom([]int{60, 70, 80, 86, 90, 100}).Draw(t, "sm")
	for n := range rapid.IntRange(1, 4).Draw(t, "sockets") {
		cpu := &topo.Element{Name: "cpu", Open: true, Attrs: attrs("numaid", fmt.Sprint(n), "arch", arch, "vendor", vendor,
			"familyid", "6", "modelid", fmt.Sprint(rapid.SampledFrom([]int{79, 85, 143, 207}).Draw(t, "model")))}
		for range rapid.IntRange(1, 3).Draw(t, "roots") {
			cpu.Children = append(cpu.Children, g.pci(0))
		}
		root.Children = append(root.Children, cpu)
	}
	g.nvlinks()
	return &topo.Spec{Name: "random", Root: root}
}

func attrs(kv ...string) []topo.Attr {
	var out []topo.Attr
	for i := 0; i < len(kv); i += 2 {
		out = append(out, topo.Attr{Name: kv[i], Value: kv[i+1]})
	}
	return out
}

type drawer struct {
	t    *rapid.T
	sm   int
	bus  int
	gpus []*topo.Element
	ids  []string
	nets int
}

func (g *drawer) pci(depth int) *topo.Element {
	g.bus++
	id := fmt.Sprintf("0000:%02x:00.0", g.bus)
	e := &topo.Element{Name: "pci", Open: true}
	what := rapid.IntRange(0, 3).Draw(g.t, "what")
	class := "0x060400"
	switch {
	case what == 0 && depth < 3:
		for range rapid.IntRange(1, 3).Draw(g.t, "below") {
			e.Children = append(e.Children, g.pci(depth+1))
		}
	case what == 1:
		class = "0x0207"
		net := &topo.Element{Name: "net", Attrs: attrs("name", fmt.Sprintf("eth%d", g.nets), "dev", fmt.Sprint(g.nets),
			"speed", fmt.Sprint(rapid.SampledFrom([]int{1000, 25000, 100000, 400000}).Draw(g.t, "speed")), "gdr", "1")}
		g.nets++
		e.Children = []*topo.Element{{Name: "nic", Open: true, Children: []*topo.Element{net}}}
	default:
		class = "0x0302"
		gpu := &topo.Element{Name: "gpu", Attrs: attrs("dev", fmt.Sprint(len(g.gpus)), "sm", fmt.Sprint(g.sm), "gdr", "1")}
		if rapid.IntRange(0, 4).Draw(g.t, "c2c") == 0 {
			gpu.Children = append(gpu.Children, &topo.Element{Name: "c2c", Attrs: attrs("bw", "44712", "count", "10")})
		}
		g.gpus, g.ids = append(g.gpus, gpu), append(g.ids, id)
		e.Children = []*topo.Element{gpu}
	}
	e.Attrs = attrs("busid", id, "class", class,
		"link_speed", rapid.SampledFrom([]string{"", "2.5 GT/s PCIe", "8.0 GT/s PCIe", "16.0 GT/s PCIe", "32.0 GT/s PCIe"}).Draw(g.t, "gen"),
		"link_width", fmt.Sprint(rapid.SampledFrom([]int{0, 1, 4, 8, 16}).Draw(g.t, "width")))
	return e
}

func (g *drawer) nvlinks() {
	kind := rapid.IntRange(0, 2).Draw(g.t, "nvlink")
	for i, gpu := range g.gpus {
		if kind == 1 {
			gpu.Children = append(gpu.Children, &topo.Element{Name: "nvlink", Attrs: attrs("target", "fffffff:ff:ff.0",
				"count", fmt.Sprint(rapid.IntRange(0, 18).Draw(g.t, "links")), "tclass", "0x068000")})
		}
		for j := range i {
			if kind == 2 && rapid.Bool().Draw(g.t, "joined") {
				n := rapid.IntRange(1, 6).Draw(g.t, "links")
				for _, p := range [][2]int{{i, j}, {j, i}} {
					g.gpus[p[0]].Children = append(g.gpus[p[0]].Children, &topo.Element{Name: "nvlink",
						Attrs: attrs("target", g.ids[p[1]], "count", fmt.Sprint(n), "tclass", "0x0302")})
				}
			}
		}
	}
}

// dumb finds fewest hops and, among those, most bandwidth to a base by asking
// for every node, level after level, what its neighbours can do.
func dumb(s *topo.System, base topo.NodeID, relay bool) (hops []int, bw []units.GBps) {
	hops, bw = make([]int, len(s.Nodes)), make([]units.GBps, len(s.Nodes))
	for i := range hops {
		hops[i] = -1
	}
	hops[base], bw[base] = 0, 5000
	for level := 1; level <= len(s.Nodes); level++ {
		for n := range s.Nodes {
			if hops[n] >= 0 && hops[n] < level {
				continue
			}
			for _, l := range s.Links {
				via := l.From
				if int(l.To) != n || hops[via] != level-1 || l.BW <= 0 {
					continue
				}
				if via != base && s.Nodes[via].Kind == topo.GPU &&
					(!relay || l.Kind != topo.LinkNVL || s.Nodes[n].Kind != topo.GPU || level > 2) {
					continue
				}
				if got := min(bw[via], l.BW); hops[n] < 0 || got > bw[n] {
					hops[n], bw[n] = level, got
				}
			}
		}
	}
	return hops, bw
}

// TestRandomMachines compares the paths of made-up machines with a second,
// dumb way to find them, where no rule diverts any.
func TestRandomMachines(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		spec := randomSpec(t)
		p := topo.DefaultParams()
		p.P2PLevel, p.GDRLevel = units.Some(topo.PathSYS), units.Some(topo.PathSYS)
		p.PXNDisable, p.NetDisableIntra = true, true
		p.NVBDisable = rapid.Bool().Draw(t, "no relay")
		// No other hosts, so no socket net is supposed: it has no GPUDirect and
		// would be diverted.
		p.NRanks = 0
		h, err := topo.Build(spec, p)
		if err != nil {
			if gpus, e := topo.CountGPUs(spec, &p); e == nil {
				t.Fatalf("%d GPUs: %v", gpus, err)
			}
			return
		}
		s := h.Systems[0]
		for _, k := range []topo.NodeKind{topo.GPU, topo.NET, topo.CPU, topo.NVS} {
			for _, base := range s.Of(k) {
				hops, bw := dumb(s, base, !p.NVBDisable)
				for _, fk := range []topo.NodeKind{topo.GPU, topo.NET, topo.CPU, topo.NVS} {
					for _, n := range s.Of(fk) {
						got := s.Path(n, base)
						if got.Kind == topo.PathDIS && hops[n] < 0 {
							continue
						}
						if len(got.Links) != hops[n] || got.BW != bw[n] {
							t.Fatalf("%s to %s: %d hops %g GB/s, want %d hops %g GB/s", s.Name(n), s.Name(base), len(got.Links), float32(got.BW), hops[n], float32(bw[n]))
						}
					}
				}
			}
		}
	})
}

// TestRandomMachinesWithAllRules builds with every rule on: no error, and every
// GPU in exactly one System.
func TestRandomMachinesWithAllRules(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		spec := randomSpec(t)
		p := topo.DefaultParams()
		p.NRanks = rapid.IntRange(1, 100).Draw(t, "ranks")
		p.SHMDisable, p.P2PMemcpy = rapid.Bool().Draw(t, "no shm"), rapid.Bool().Draw(t, "memcpy")
		h, err := topo.Build(spec, p)
		if err != nil {
			if gpus, e := topo.CountGPUs(spec, &p); e == nil {
				t.Fatalf("%d GPUs: %v", gpus, err)
			}
			return
		}
		n := 0
		for i, s := range h.Systems {
			for _, g := range s.Of(topo.GPU) {
				n++
				if h.SystemOf[s.Nodes[g].GPU.Rank] != i {
					t.Fatalf("rank %d is in system %d and said to be in %d", s.Nodes[g].GPU.Rank, i, h.SystemOf[s.Nodes[g].GPU.Rank])
				}
			}
		}
		if n != h.NRanks() {
			t.Fatalf("%d GPUs in the systems, %d ranks", n, h.NRanks())
		}
	})
}
