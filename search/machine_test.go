package search_test

import (
	"pgregory.net/rapid"

	"github.com/simccl/simccl/rules"
	"github.com/simccl/simccl/topo"
	"github.com/simccl/simccl/units"
)

// machine builds small synthetic hosts node by node.
type machine struct {
	t     *rapid.T
	nodes []topo.Node
	links []topo.Link
	of    [topo.NumNodeKinds][]topo.NodeID
}

func (m *machine) add(k topo.NodeKind, id uint64, n topo.Node) topo.NodeID {
	n.Kind, n.Ident = k, id
	m.nodes = append(m.nodes, n)
	at := topo.NodeID(len(m.nodes) - 1)
	m.of[k] = append(m.of[k], at)
	return at
}

// join links two nodes both ways.
func (m *machine) join(a, b topo.NodeID, k topo.LinkKind, bw float32) {
	for _, ends := range [2][2]topo.NodeID{{a, b}, {b, a}} {
		m.nodes[ends[0]].Links = append(m.nodes[ends[0]].Links, topo.LinkID(len(m.links)))
		m.links = append(m.links, topo.Link{From: ends[0], To: ends[1], Kind: k, BW: units.GBps(bw)})
	}
}

func pick[T any](m *machine, name string, values ...T) T {
	return rapid.SampledFrom(values).Draw(m.t, name)
}

func upTo(m *machine, name string, lo, hi int) int { return rapid.IntRange(lo, hi).Draw(m.t, name) }

// drawSystem makes a host of up to maxGPUs GPUs with any mix of PCI switches,
// NVLink, NVSwitch and nets. Speeds with many decimals appear too: NCCL's
// rounding changes them during the search.
func drawSystem(t *rapid.T, maxGPUs int) *topo.System {
	m := &machine{t: t}
	n := upTo(m, "gpus", 1, maxGPUs)
	m.core(n)
	m.gpuLinks(n)
	nets := upTo(m, "nets", 0, 4)
	m.addNets(nets)
	s := topo.Assemble(rules.Default(), m.nodes, m.links, m.paths())
	s.Inter = nets > 0 && rapid.Bool().Draw(t, "inter")
	for i, id := range s.Of(topo.NET) {
		s.Nodes[id].Net.LocalGPU = s.LocalGPU(i)
	}
	limits(s)
	return s
}

// core adds GPUs, PCI switches and CPUs.
func (m *machine) core(gpus int) {
	sm := pick(m, "sm", 70, 80, 90, 100)
	ranks := rapid.Permutation(counted(gpus)).Draw(m.t, "ranks")
	for g := range gpus {
		m.add(topo.GPU, uint64(0x1000*(g+1)), topo.Node{GPU: &topo.GPUInfo{Dev: g, Rank: ranks[g], SM: sm}})
	}
	for i := range upTo(m, "switches", 0, 3) {
		m.add(topo.PCI, uint64(0x100000*(i+1)), topo.Node{PCI: &topo.PCIInfo{}})
	}
	arch := pick(m, "arch", topo.ArchX86, topo.ArchX86, topo.ArchPower, topo.ArchARM)
	vendor := pick(m, "vendor", topo.VendorIntel, topo.VendorAMD)
	for i := range upTo(m, "cpus", 1, 2) {
		m.add(topo.CPU, uint64(i), topo.Node{CPU: &topo.CPUInfo{NUMA: i, Arch: arch, Vendor: vendor}})
	}
	cpus := m.of[topo.CPU]
	if len(cpus) == 2 {
		m.join(cpus[0], cpus[1], topo.LinkSYS, m.speed("sys", 6, 10, 16, 40))
	}
	pci := m.speed("pci", 6, 12, 24, 48)
	for _, p := range m.of[topo.PCI] {
		m.join(p, pick(m, "parent", cpus...), topo.LinkPCI, pci)
	}
	parents := append(append([]topo.NodeID{}, cpus...), m.of[topo.PCI]...)
	for _, g := range m.of[topo.GPU] {
		m.join(g, pick(m, "slot", parents...), topo.LinkPCI, pci)
	}
}

func counted(n int) []int {
	list := make([]int, n)
	for i := range list {
		list[i] = i
	}
	return list
}

func (m *machine) speed(name string, values ...float32) float32 {
	v := pick(m, name, values...)
	if upTo(m, name+" odd", 0, 7) == 7 {
		v *= rapid.Float32Range(0.1, 1.5).Draw(m.t, name+" part")
	}
	return v
}

// gpuLinks joins the GPUs by NVSwitch, by some NVLinks, or not.
func (m *machine) gpuLinks(gpus int) {
	bw := m.speed("nvlink", 20, 40, 80.2, 120, 370.8)
	list := m.of[topo.GPU]
	switch pick(m, "fabric", "none", "nvswitch", "mesh") {
	case "nvswitch":
		s := m.add(topo.NVS, 0, topo.Node{})
		for _, g := range list {
			m.join(g, s, topo.LinkNVL, bw)
		}
	case "mesh":
		for a := range gpus {
			for b := range a {
				if rapid.Bool().Draw(m.t, "joined") {
					m.join(list[a], list[b], topo.LinkNVL, bw)
				}
			}
		}
	}
}

func (m *machine) addNets(nets int) {
	parents := append(append([]topo.NodeID{}, m.of[topo.CPU]...), m.of[topo.PCI]...)
	bw := m.speed("net", 1.25, 12.5, 25, 50)
	for i := range nets {
		nic := m.add(topo.NIC, uint64(0x7000*(i+1)), topo.Node{})
		m.join(nic, pick(m, "nic slot", parents...), topo.LinkPCI, 24)
		net := m.add(topo.NET, uint64(i), topo.Node{Net: &topo.NetInfo{
			Dev: i, ASIC: uint64(100 + i/upTo(m, "ports", 1, 2)), Port: 1, BW: units.GBps(bw),
			LatencyUs: pick(m, "latency", float32(0), 0, 0, 1), Coll: true,
		}})
		m.join(net, nic, topo.LinkNET, bw)
	}
}

// paths finds for every pair a route of fewest links, the widest of these, with
// no GPU inside it: not NCCL's rule, but a valid set of routes.
func (m *machine) paths() func(from, base topo.NodeID) topo.Path {
	all := make([][]topo.Path, len(m.nodes))
	for base := range m.nodes {
		at := make([]topo.Path, len(m.nodes))
		for i := range at {
			at[i] = topo.Path{Kind: topo.PathDIS}
		}
		at[base] = topo.Path{Kind: topo.PathLOC, BW: 5000}
		for depth := range len(m.nodes) {
			m.extend(at, topo.NodeID(base), depth)
		}
		all[base] = at
	}
	return func(from, base topo.NodeID) topo.Path { return all[base][from] }
}

// extend continues routes of depth links by one.
func (m *machine) extend(at []topo.Path, base topo.NodeID, depth int) {
	for id, l := range m.links {
		p := at[l.To]
		if p.Kind == topo.PathDIS || len(p.Links) != depth || l.From == base ||
			m.nodes[l.To].Kind == topo.GPU && l.To != base {
			continue
		}
		old, bw := at[l.From], min(p.BW, l.BW)
		if old.Kind != topo.PathDIS && (len(old.Links) <= depth || old.BW >= bw) {
			continue
		}
		kind := max(p.Kind, topo.PathKind(l.Kind))
		switch {
		case l.Kind == topo.LinkNET:
			kind = p.Kind
		case l.Kind == topo.LinkPCI && (m.nodes[l.From].Kind == topo.CPU || m.nodes[l.To].Kind == topo.CPU):
			kind = max(kind, topo.PathPHB)
		}
		at[l.From] = topo.Path{Kind: kind, BW: bw, Links: append([]topo.LinkID{topo.LinkID(id)}, p.Links...)}
	}
}

// limits sets what NCCL derives before a search (search.cc:38).
func limits(s *topo.System) {
	gpus := s.Of(topo.GPU)
	if !s.Inter && len(gpus) == 1 {
		s.MaxBW, s.TotalBW = 5000, 5000
		return
	}
	ends := gpus
	if s.Inter {
		ends = s.Of(topo.NET)
	}
	for _, g := range gpus {
		for _, e := range ends {
			if p := s.Path(g, e); len(p.Links) > 0 {
				s.MaxBW = max(s.MaxBW, p.BW)
			}
		}
		var nvl, pci units.GBps
		for _, l := range s.Nodes[g].Links {
			switch s.Links[l].Kind {
			case topo.LinkNVL:
				nvl += s.Links[l].BW
			case topo.LinkPCI:
				pci = s.Links[l].BW
			}
		}
		s.TotalBW = max(s.TotalBW, nvl, pci)
	}
}
