// Package refsys rebuilds topo.System and search.Graph from a reference's
// sections, so that a test of one room judges that room alone.
package refsys

import (
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/simccl/simccl/dev/golden"
	"github.com/simccl/simccl/rules"
	"github.com/simccl/simccl/search"
	"github.com/simccl/simccl/topo"
	"github.com/simccl/simccl/units"
)

// Link is one link of a Node.
type Link struct {
	Type string
	BW   float32
	To   string
}

// Node is one node of a `system` section.
type Node struct {
	ID            string
	Dev, Rank, SM int
	GDR, Coll     int
	Arch, Vendor  int
	Model         int
	ASIC          string
	Port          int
	BW            float32
	Latency       float32
	MaxChannels   int
	LocalGPU      int
	Links         []Link
}

// Doc is a `system` section.
type Doc struct {
	MaxBw, TotalBw                   float32
	Inter                            int
	GPUs, PCI, NVS, CPUs, NICs, Nets []Node
}

// Path is one cell of a `paths` matrix.
type Path struct {
	Type string
	BW   float32
	Hops int
	Via  []string
}

// Paths is a `paths` section, as far as it is read.
type Paths struct {
	GPUGPU, GPUNet, NetGPU, GPUNvs [][]Path
}

// Channel is one channel of a Graph.
type Channel struct {
	Intra []int
	Inter []string
}

// Graph is one element of a `graphs` section.
type Graph struct {
	Name                     string
	ID, Pattern, NChannels   int
	BWIntra, BWInter         float32
	TypeIntra, TypeInter     string
	SameChannels, CrossNIC   int
	LatencyInter             float32
	NHops                    int
	MinChannels, MaxChannels int
	Channels                 []Channel
}

var (
	linkKinds = map[string]topo.LinkKind{"LOC": topo.LinkLOC, "NVL": topo.LinkNVL, "C2C": topo.LinkC2C,
		"PCI": topo.LinkPCI, "SYS": topo.LinkSYS, "NET": topo.LinkNET}
	pathNames = []string{"LOC", "NVL", "NVB", "C2C", "PIX", "PXB", "P2C", "PXN", "PHB", "SYS", "NET", "DIS"}
)

// PathKind reads "NVL" and the like.
func PathKind(t testing.TB, name string) topo.PathKind {
	for k, n := range pathNames {
		if n == name {
			return topo.PathKind(k)
		}
	}
	t.Fatalf("path kind %q", name)
	return 0
}

// Ident returns NCCL's 64-bit id of a node of the topology, system<<56 | id, by its printed name, as
// "NET/0-d": both numbers are hexadecimal.
func Ident(t testing.TB, name string) uint64 {
	host, id, ok := strings.Cut(name[strings.IndexByte(name, '/')+1:], "-")
	h, err1 := strconv.ParseUint(host, 16, 8)
	l, err2 := strconv.ParseUint(id, 16, 64)
	if !ok || err1 != nil || err2 != nil {
		t.Fatalf("node id %q", name)
	}
	return h<<56 | l
}

// loader rebuilds a System.
type loader struct {
	t     testing.TB
	nodes []topo.Node
	links []topo.Link
	byID  map[string]topo.NodeID
	start [topo.NumNodeKinds]topo.NodeID
}

// System rebuilds rank 0's System of a reference.
func System(t testing.TB, r *golden.Reference) *topo.System {
	t.Helper()
	var doc Doc
	var paths Paths
	if !r.Section(t, "system", &doc) || !r.Section(t, "paths", &paths) {
		t.Fatalf("%s has no system or paths", r.Name)
	}
	l := &loader{t: t, byID: map[string]topo.NodeID{}}
	all := [topo.NumNodeKinds][]Node{doc.GPUs, doc.PCI, doc.NVS, doc.CPUs, doc.NICs, doc.Nets}
	hosts := map[uint64]bool{}
	for k, list := range all {
		l.start[k] = topo.NodeID(len(l.nodes))
		for i := range list {
			l.addNode(topo.NodeKind(k), &list[i])
			hosts[Ident(t, list[i].ID)>>56] = true
		}
	}
	at := 0
	for _, list := range all {
		for i := range list {
			l.addLinks(topo.NodeID(at), list[i].Links)
			at++
		}
	}
	sys := topo.Assemble(rules.Default(), l.nodes, l.links, l.pathsOf(&paths))
	sys.Inter = doc.Inter != 0
	sys.MaxBW, sys.TotalBW = units.GBps(doc.MaxBw), units.GBps(doc.TotalBw)
	if sys.NHosts = 1; len(all[topo.GPU]) > 0 {
		gpuHosts := map[uint64]bool{}
		for _, g := range doc.GPUs {
			gpuHosts[Ident(t, g.ID)>>56] = true
		}
		sys.NHosts = len(gpuHosts)
	}
	return sys
}

func (l *loader) addNode(k topo.NodeKind, r *Node) {
	n := topo.Node{Kind: k, Ident: Ident(l.t, r.ID)}
	switch k {
	case topo.GPU:
		n.GPU = &topo.GPUInfo{Dev: r.Dev, Rank: r.Rank, SM: r.SM, GDR: r.GDR != 0, Host: int(n.Ident >> 56)}
	case topo.PCI:
		n.PCI = &topo.PCIInfo{}
	case topo.CPU:
		n.CPU = &topo.CPUInfo{Arch: topo.CPUArch(r.Arch), Vendor: topo.CPUVendor(r.Vendor),
			Model: topo.CPUModel(r.Model)}
	case topo.NET:
		asic, err := strconv.ParseUint(r.ASIC, 16, 64)
		if err != nil {
			l.t.Fatalf("asic %q", r.ASIC)
		}
		n.Net = &topo.NetInfo{Dev: r.Dev, ASIC: asic, Port: r.Port, BW: units.GBps(r.BW),
			LatencyUs: r.Latency,
			GDR:       r.GDR != 0, Coll: r.Coll != 0, MaxChannels: r.MaxChannels, LocalGPU: r.LocalGPU,
			Host: int(n.Ident >> 56)}
	}
	if _, dup := l.byID[r.ID]; !dup {
		l.byID[r.ID] = topo.NodeID(len(l.nodes))
	}
	l.nodes = append(l.nodes, n)
}

func (l *loader) addLinks(from topo.NodeID, links []Link) {
	for _, r := range links {
		to, ok := l.byID[r.To]
		kind, known := linkKinds[r.Type]
		if !ok || !known {
			l.t.Fatalf("link %+v", r)
		}
		l.nodes[from].Links = append(l.nodes[from].Links, topo.LinkID(len(l.links)))
		l.links = append(l.links, topo.Link{From: from, To: to, Kind: kind, BW: units.GBps(r.BW)})
	}
}

// link finds the widest link between two nodes, which is the one that a path
// takes.
func (l *loader) link(from, to topo.NodeID) topo.LinkID {
	best := topo.LinkID(-1)
	for _, id := range l.nodes[from].Links {
		if l.links[id].To == to && (best < 0 || l.links[id].BW > l.links[best].BW) {
			best = id
		}
	}
	if best < 0 {
		l.t.Fatalf("no link from %d to %d", from, to)
	}
	return best
}

// hostPath is the shortest path to or from a CPU, which references do not have: through no
// other GPU.
func (l *loader) hostPath(from, to topo.NodeID) topo.Path {
	before := make([]topo.NodeID, len(l.nodes))
	for i := range before {
		before[i] = topo.None
	}
	queue := []topo.NodeID{from}
	for i := 0; i < len(queue) && before[to] == topo.None; i++ {
		for _, id := range l.nodes[queue[i]].Links {
			next := l.links[id].To
			if l.links[id].Kind != topo.LinkNVL && next != from && before[next] == topo.None &&
				(next == to || l.nodes[next].Kind != topo.GPU) {
				before[next] = queue[i]
				queue = append(queue, next)
			}
		}
	}
	if before[to] == topo.None {
		return topo.Path{Kind: topo.PathDIS}
	}
	out := topo.Path{Kind: topo.PathPHB}
	for at := to; at != from; at = before[at] {
		out.Links = append(out.Links, l.link(before[at], at))
	}
	slices.Reverse(out.Links)
	return out
}

func (l *loader) pathsOf(p *Paths) func(from, base topo.NodeID) topo.Path {
	return func(from, base topo.NodeID) topo.Path {
		fk, bk := l.nodes[from].Kind, l.nodes[base].Kind
		i, j := from-l.start[fk], base-l.start[bk]
		var m [][]Path
		switch {
		case fk == topo.CPU || bk == topo.CPU:
			return l.hostPath(from, base)
		case fk == topo.GPU && bk == topo.GPU:
			m = p.GPUGPU
		case fk == topo.GPU && bk == topo.NET:
			m = p.GPUNet
		case fk == topo.NET && bk == topo.GPU:
			m = p.NetGPU
		case fk == topo.GPU && bk == topo.NVS:
			m = p.GPUNvs
		case fk == topo.NVS && bk == topo.GPU:
			for _, id := range l.nodes[from].Links {
				if l.links[id].To == base {
					return topo.Path{Kind: topo.PathNVL, BW: l.links[id].BW, Links: []topo.LinkID{id}}
				}
			}
		}
		if m == nil {
			return topo.Path{Kind: topo.PathDIS}
		}
		r := m[i][j]
		out := topo.Path{Kind: PathKind(l.t, r.Type), BW: units.GBps(r.BW)}
		at := from
		for _, v := range r.Via {
			next := l.byID[v]
			out.Links = append(out.Links, l.link(at, next))
			at = next
		}
		return out
	}
}

// Set rebuilds the searched graphs of a `graphs` section.
func Set(t testing.TB, list []Graph) search.Set {
	var set search.Set
	for i := range list {
		g := list[i].Search(t)
		set[g.ID] = g
	}
	return set
}

// Search is the graph as the search gives it.
func (r *Graph) Search(t testing.TB) *search.Graph {
	g := &search.Graph{ID: r.ID, Name: r.Name, Pattern: search.Pattern(r.Pattern), NChannels: r.NChannels,
		MinChannels: r.MinChannels, MaxChannels: r.MaxChannels, BWIntra: units.GBps(r.BWIntra),
		BWInter:      units.GBps(r.BWInter),
		LatencyInter: r.LatencyInter, TypeIntra: PathKind(t, r.TypeIntra),
		TypeInter:    PathKind(t, r.TypeInter),
		SameChannels: r.SameChannels, CrossNIC: r.CrossNIC, NHops: r.NHops}
	for _, c := range r.Channels {
		var inter [2]uint64
		for i, name := range c.Inter {
			if name != "" {
				inter[i] = Ident(t, name)
			}
		}
		g.Intra, g.Inter = append(g.Intra, c.Intra), append(g.Inter, inter)
	}
	return g
}
