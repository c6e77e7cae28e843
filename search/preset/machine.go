package preset

import (
	"sort"

	"github.com/simccl/simccl/topo"
)

// machine is a System as models are written: GPUs in the order of their devices, NICs in that of theirs
// (graph/rome_models.cc:2195).
type machine struct {
	model
	sys    *topo.System
	nRanks int
	gpuAt  []int // GPU of the System by place
	netAt  []int // net of the System by place
	devs   []int // devices of GPUs by place
	cpu    *topo.CPUInfo
	toCPU  int // most hops from a GPU to its CPU
}

// rome reports whether the processors are of the kind that most models are of.
func (m *machine) rome() bool {
	return m.cpu.Arch == topo.ArchX86 && m.cpu.Vendor == topo.VendorAMD && m.cpu.Model == topo.ModelRome
}

func newMachine(sys *topo.System, nRanks int) *machine {
	cpus := sys.Of(topo.CPU)
	m := &machine{sys: sys, nRanks: nRanks, cpu: sys.Nodes[cpus[0]].CPU}
	m.cpus = len(cpus)
	m.gpuAt = ordered(sys, topo.GPU, func(n *topo.Node) int { return n.GPU.Dev })
	m.netAt = ordered(sys, topo.NET, func(n *topo.Node) int { return n.Net.Dev })
	for _, g := range m.gpuAt {
		id := sys.Of(topo.GPU)[g]
		numa, hops := m.nearestCPU(id)
		m.toCPU = max(m.toCPU, hops)
		m.gpus = append(m.gpus, device{int64(sys.Nodes[id].Ident), numa})
		m.devs = append(m.devs, sys.Nodes[id].GPU.Dev)
	}
	m.countLinks()
	for _, n := range m.netAt {
		id := sys.Of(topo.NET)[n]
		numa, _ := m.nearestCPU(id)
		m.nics = append(m.nics, device{int64(sys.Nodes[id].Net.Bus), numa})
		for _, g := range m.gpuAt {
			m.near = append(m.near, sys.Path(sys.Of(topo.GPU)[g], id).Kind)
		}
	}
	m.count()
	return m
}

// ordered lists the nodes of a kind by a number of theirs.
func ordered(sys *topo.System, k topo.NodeKind, key func(*topo.Node) int) []int {
	ids := sys.Of(k)
	out := make([]int, len(ids))
	for i := range out {
		out[i] = i
	}
	sort.SliceStable(out, func(i, j int) bool {
		return key(&sys.Nodes[ids[out[i]]]) < key(&sys.Nodes[ids[out[j]]])
	})
	return out
}

// nearestCPU is the id of the CPU that a node reaches in fewest hops, the first of those, and how many.
func (m *machine) nearestCPU(n topo.NodeID) (id int64, hops int) {
	best := topo.None
	for _, c := range m.sys.Of(topo.CPU) {
		if h := len(m.sys.Path(n, c).Links); best == topo.None || h < hops {
			best, hops = c, h
		}
	}
	return int64(m.sys.Nodes[best].Ident), hops
}

// countLinks finds the links between GPUs: only those that join two.
func (m *machine) countLinks() {
	ids := m.sys.Of(topo.GPU)
	for _, a := range m.gpuAt {
		rate, n := float32(m.sys.Rules.Topo.XGMIRate(m.sys.Nodes[ids[a]].GPU.Arch)), 0
		for _, b := range m.gpuAt {
			p := m.sys.Path(ids[a], ids[b])
			links := uint8(0)
			if m.sys.Adjoining(p) {
				links = uint8(float32(p.BW) / rate)
				n++
			}
			m.xgmi = append(m.xgmi, links)
		}
		m.links = max(m.links, n)
	}
}

// count writes how many GPUs and NICs each CPU has.
func (m *machine) count() {
	cpus := m.sys.Of(topo.CPU)
	ids := make([]uint64, len(cpus))
	for i, c := range cpus {
		ids[i] = m.sys.Nodes[c].Ident
	}
	sort.Slice(ids, func(i, j int) bool { return ids[i] < ids[j] })
	digits := make([]byte, 0, 2*len(ids))
	for _, id := range ids {
		g, n := byte('0'), byte('0')
		for _, d := range m.gpus {
			if d.numa == int64(id) {
				g++
			}
		}
		for _, d := range m.nics {
			if d.numa == int64(id) {
				n++
			}
		}
		digits = append(digits, g, n)
	}
	m.pattern = string(digits)
}
