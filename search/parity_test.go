package search_test

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"testing"

	"github.com/simccl/simccl/internal/golden"
	"github.com/simccl/simccl/search"
	"github.com/simccl/simccl/topo"
	"github.com/simccl/simccl/units"
)

// refLink, refNode, refSystem and refPath are a reference's `system` and
// `paths` sections: enough to rebuild the System that NCCL searched, so that
// these tests judge the search alone.
type refLink struct {
	Type string
	BW   float32
	To   string
}

type refNode struct {
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
	Links         []refLink
}

type refSystem struct {
	MaxBw, TotalBw                   float32
	Inter                            int
	GPUs, PCI, NVS, CPUs, NICs, Nets []refNode
}

type refPath struct {
	Type string
	BW   float32
	Hops int
	Via  []string
}

type refPaths struct {
	GPUGPU, GPUNet, NetGPU, GPUNvs [][]refPath
}

type refChannel struct {
	Intra []int
	Inter []string
}

type refGraph struct {
	Name                     string
	ID, Pattern, NChannels   int
	BWIntra, BWInter         float32
	TypeIntra, TypeInter     string
	SameChannels, CrossNIC   int
	LatencyInter             float32
	NHops                    int
	MinChannels, MaxChannels int
	Channels                 []refChannel
}

var (
	linkKinds = map[string]topo.LinkKind{"LOC": topo.LinkLOC, "NVL": topo.LinkNVL, "C2C": topo.LinkC2C, "PCI": topo.LinkPCI, "SYS": topo.LinkSYS, "NET": topo.LinkNET}
	pathNames = []string{"LOC", "NVL", "NVB", "C2C", "PIX", "PXB", "P2C", "PXN", "PHB", "SYS", "NET", "DIS"}
)

func pathKind(t testing.TB, name string) topo.PathKind {
	for k, n := range pathNames {
		if n == name {
			return topo.PathKind(k)
		}
	}
	t.Fatalf("path kind %q", name)
	return 0
}

// ident reads "NET/0-d" as NCCL's number.
func ident(t testing.TB, name string) uint64 {
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

func systemOf(t testing.TB, r *golden.Reference) *topo.System {
	t.Helper()
	var doc refSystem
	var paths refPaths
	if !r.Section(t, "system", &doc) || !r.Section(t, "paths", &paths) {
		t.Fatalf("%s has no system or paths", r.Name)
	}
	l := &loader{t: t, byID: map[string]topo.NodeID{}}
	all := [topo.NumNodeKinds][]refNode{doc.GPUs, doc.PCI, doc.NVS, doc.CPUs, doc.NICs, doc.Nets}
	hosts := map[uint64]bool{}
	for k, list := range all {
		l.start[k] = topo.NodeID(len(l.nodes))
		for i := range list {
			l.addNode(topo.NodeKind(k), &list[i])
			hosts[ident(t, list[i].ID)>>56] = true
		}
	}
	at := 0
	for _, list := range all {
		for i := range list {
			l.addLinks(topo.NodeID(at), list[i].Links)
			at++
		}
	}
	sys := topo.Assemble(l.nodes, l.links, l.pathsOf(&paths))
	sys.Inter = doc.Inter != 0
	sys.MaxBW, sys.TotalBW = units.GBps(doc.MaxBw), units.GBps(doc.TotalBw)
	if sys.NHosts = 1; len(all[topo.GPU]) > 0 {
		gpuHosts := map[uint64]bool{}
		for _, g := range doc.GPUs {
			gpuHosts[ident(t, g.ID)>>56] = true
		}
		sys.NHosts = len(gpuHosts)
	}
	return sys
}

func (l *loader) addNode(k topo.NodeKind, r *refNode) {
	n := topo.Node{Kind: k, Ident: ident(l.t, r.ID)}
	switch k {
	case topo.GPU:
		n.GPU = &topo.GPUInfo{Dev: r.Dev, Rank: r.Rank, SM: r.SM, GDR: r.GDR != 0, Host: int(n.Ident >> 56)}
	case topo.PCI:
		n.PCI = &topo.PCIInfo{}
	case topo.CPU:
		n.CPU = &topo.CPUInfo{Arch: topo.CPUArch(r.Arch), Vendor: topo.CPUVendor(r.Vendor), Model: topo.CPUModel(r.Model)}
	case topo.NET:
		asic, err := strconv.ParseUint(r.ASIC, 16, 64)
		if err != nil {
			l.t.Fatalf("asic %q", r.ASIC)
		}
		n.Net = &topo.NetInfo{Dev: r.Dev, ASIC: asic, Port: r.Port, BW: units.GBps(r.BW), LatencyUs: r.Latency,
			GDR: r.GDR != 0, Coll: r.Coll != 0, MaxChannels: r.MaxChannels, LocalGPU: r.LocalGPU, Host: int(n.Ident >> 56)}
	}
	if _, dup := l.byID[r.ID]; !dup {
		l.byID[r.ID] = topo.NodeID(len(l.nodes))
	}
	l.nodes = append(l.nodes, n)
}

func (l *loader) addLinks(from topo.NodeID, links []refLink) {
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

func (l *loader) pathsOf(p *refPaths) func(from, base topo.NodeID) topo.Path {
	return func(from, base topo.NodeID) topo.Path {
		fk, bk := l.nodes[from].Kind, l.nodes[base].Kind
		i, j := from-l.start[fk], base-l.start[bk]
		var m [][]refPath
		switch {
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
		out := topo.Path{Kind: pathKind(l.t, r.Type), BW: units.GBps(r.BW)}
		at := from
		for _, v := range r.Via {
			next := l.byID[v]
			out.Links = append(out.Links, l.link(at, next))
			at = next
		}
		return out
	}
}

// paramsOf reads the settings of a reference's run that the search knows.
func paramsOf(t testing.TB, r *golden.Reference) search.Params {
	p := search.Params{NVLS: r.Multicast}
	for _, name := range []string{"NCCL_CROSS_NIC", "NCCL_MNNVL_RAIL_PER_HOST", "NCCL_MNNVL_SCATTER_NETS_ENABLE", "NCCL_NVLS_ENABLE"} {
		text, ok := r.Env[name]
		if !ok {
			continue
		}
		v, err := strconv.Atoi(text)
		if err != nil {
			t.Fatal(err)
		}
		switch name {
		case "NCCL_CROSS_NIC":
			p.CrossNIC = units.Some(v)
		case "NCCL_MNNVL_RAIL_PER_HOST":
			p.RailPerHost = units.Some(v != 0)
		case "NCCL_MNNVL_SCATTER_NETS_ENABLE":
			p.ScatterNets = units.Some(v != 0)
		case "NCCL_NVLS_ENABLE":
			p.NVLS = p.NVLS && v != 0
		}
	}
	return p
}

func near(a, b float32) bool {
	return math.Abs(float64(a)-float64(b)) <= 1e-5*math.Max(math.Abs(float64(a)), math.Abs(float64(b)))
}

// diffGraph names the first difference between a graph and NCCL's.
func diffGraph(t testing.TB, got *search.Graph, want *refGraph) string {
	if got == nil {
		return "no graph"
	}
	for _, f := range []struct {
		name      string
		got, want int
	}{
		{"id", got.ID, want.ID}, {"pattern", int(got.Pattern), want.Pattern},
		{"nChannels", got.NChannels, want.NChannels},
		{"typeIntra", int(got.TypeIntra), int(pathKind(t, want.TypeIntra))},
		{"typeInter", int(got.TypeInter), int(pathKind(t, want.TypeInter))},
		{"sameChannels", got.SameChannels, want.SameChannels}, {"crossNic", got.CrossNIC, want.CrossNIC},
		{"nHops", got.NHops, want.NHops},
		{"minChannels", got.MinChannels, want.MinChannels}, {"maxChannels", got.MaxChannels, want.MaxChannels},
		{"channels", len(got.Intra), len(want.Channels)},
	} {
		if f.got != f.want {
			return fmt.Sprintf("%s %d, NCCL has %d", f.name, f.got, f.want)
		}
	}
	if got.Name != want.Name {
		return fmt.Sprintf("name %q, NCCL has %q", got.Name, want.Name)
	}
	if !near(float32(got.BWIntra), want.BWIntra) || !near(float32(got.BWInter), want.BWInter) || !near(got.LatencyInter, want.LatencyInter) {
		return fmt.Sprintf("bandwidths %g/%g latency %g, NCCL has %g/%g %g", got.BWIntra, got.BWInter, got.LatencyInter, want.BWIntra, want.BWInter, want.LatencyInter)
	}
	for c, w := range want.Channels {
		if fmt.Sprint(got.Intra[c]) != fmt.Sprint(w.Intra) {
			return fmt.Sprintf("channel %d visits %v, NCCL %v", c, got.Intra[c], w.Intra)
		}
		for i := range w.Inter {
			id := uint64(0)
			if w.Inter[i] != "" {
				id = ident(t, w.Inter[i])
			}
			if got.Inter[c][i] != id {
				return fmt.Sprintf("channel %d nets %#x, NCCL %v", c, got.Inter[c], w.Inter)
			}
		}
	}
	return ""
}

// diffSet names the first difference between all graphs and a reference.
func diffSet(t testing.TB, r *golden.Reference, sys *topo.System) string {
	set, err := search.All(sys, paramsOf(t, r))
	if err != nil {
		return err.Error()
	}
	var want []refGraph
	r.Section(t, "graphs", &want)
	for i, id := range search.Order {
		if d := diffGraph(t, set[id], &want[i]); d != "" {
			return want[i].Name + ": " + d
		}
	}
	return ""
}

// TestGraphsAreNCCLs compares every graph with NCCL 2.28.9 (graph/search.cc
// ncclTopoCompute) on the systems and paths of the references.
func TestGraphsAreNCCLs(t *testing.T) {
	refs := golden.All(t)
	equal := 0
	for i := range refs {
		r := &refs[i]
		r.Load(t)
		if d := diffSet(t, r, systemOf(t, r)); d != "" {
			t.Errorf("%s: %s", r.Name, d)
		} else {
			equal++
		}
	}
	t.Logf("graphs equal: %d of %d", equal, len(refs))
}
