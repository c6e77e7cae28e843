package search

import (
	"fmt"

	"github.com/simccl/simccl/rules"
	"github.com/simccl/simccl/topo"
)

// hop is one link of a route with what is charged against the link's reverse:
// old GPUs slow their own sending while they receive, and POWER's NVLink to
// the CPU counts in both directions (search.cc:96-105).
type hop struct {
	link, rev int32
	pci       bool  // charged with the Intel surcharge where the route has one
	share     uint8 // shareNone, shareEighth or shareAll of the charge goes to rev
}

const (
	shareNone uint8 = iota
	shareEighth
	shareAll
)

// route is the path between two nodes as the search charges it.
type route struct {
	hops []hop
	// of the path and of the reverse path, as all kinds of an engine by topo.System.Rank
	kind, back topo.PathKind
	// surcharge: PCI links carry 6/5 of the bandwidth, because an Intel root
	// complex cuts peer traffic of GPUs into 64-byte packets (topo.h:34).
	surcharge bool
	plain     bool // no surcharge and nothing against reverse links
	bw        float32
}

// routeMaker builds routes of one System and remembers the first impossible one.
type routeMaker struct {
	sys                *topo.System
	surcharges, shares bool // some route has one
	err                error
	cancelled          func() error
}

// make returns the route from one node to a base node.
func (m *routeMaker) make(from, to topo.NodeID) route {
	p := m.sys.Path(from, to)
	r := route{
		hops: make([]hop, len(p.Links)),
		kind: m.sys.Rank(p.Kind),
		back: m.sys.Rank(m.sys.Path(to, from).Kind),
		bw:   float32(p.BW),
	}
	start := &m.sys.Nodes[from]
	r.plain = true
	for i, l := range p.Links {
		link := &m.sys.Links[l]
		end := &m.sys.Nodes[link.To]
		h := hop{link: int32(l), rev: -1, pci: link.Kind == topo.LinkPCI}
		switch {
		case oldGPU(end, m.sys.Rules) && start.Kind != topo.GPU:
			h.share = shareEighth
		case end.Kind == topo.CPU && end.CPU.Arch == topo.ArchPower && link.Kind == topo.LinkNVL:
			h.share = shareAll
		}
		if h.share != shareNone {
			h.rev = m.reverse(link)
			r.plain, m.shares = false, true
		}
		if end.Kind == topo.CPU && p.Kind == topo.PathPHB && start.Kind == topo.GPU &&
			end.CPU.Arch == topo.ArchX86 && end.CPU.Vendor == topo.VendorIntel {
			r.surcharge, r.plain, m.surcharges = true, false, true
		}
		r.hops[i] = h
	}
	return r
}

// oldGPU reports whether a node is a GPU below sm_80, or its device where that has the
// links.
func oldGPU(n *topo.Node, r *rules.Ruleset) bool {
	if r.Topo.DevNodes {
		return n.Kind == topo.DEV && n.Dev.SM < 80
	}
	return n.Kind == topo.GPU && n.GPU.SM < 80
}

// reverse finds the link of the same kind the other way. Paths that Build lays
// have one for each of their links; only a System of other parts (topo.Assemble)
// can lack it.
func (m *routeMaker) reverse(l *topo.Link) int32 {
	for _, id := range m.sys.Nodes[l.To].Links {
		if r := &m.sys.Links[id]; r.To == l.From && r.Kind == l.Kind {
			return int32(id)
		}
	}
	if m.err == nil {
		m.err = &topo.PathError{Node: m.sys.Name(l.From), At: l.From,
			Problem: fmt.Sprintf("its %v link to %s has none back: NCCL charges both directions of it%s",
				l.Kind, m.sys.Name(l.To), m.sys.Rules.Aside(rules.AtReverseBW)),
			Hint: "declare the link on both sides or on neither"}
	}
	return 0
}

// table holds the routes between two sets of nodes, row by row.
type table struct {
	cols   int
	routes []route
}

func (t *table) at(i, j int) *route { return &t.routes[i*t.cols+j] }

// table makes the routes from each of from to each of to.
func (m *routeMaker) table(from, to []topo.NodeID) table {
	t := table{cols: len(to), routes: make([]route, 0, len(from)*len(to))}
	for _, f := range from {
		if m.cancelled != nil && m.err == nil {
			if err := m.cancelled(); err != nil {
				m.err = fmt.Errorf("search: %w", err)
				return t
			}
		}
		for _, b := range to {
			t.routes = append(t.routes, m.make(f, b))
		}
	}
	return t
}

// uplink is the pair of PCI links between a GPU and what it is plugged into;
// -1, -1 without one (search.cc:167).
type uplink struct{ up, down int32 }

func uplinkOf(sys *topo.System, gpu topo.NodeID) uplink {
	gpu = sys.Device(gpu)
	for _, up := range sys.Nodes[gpu].Links {
		if sys.Links[up].Kind != topo.LinkPCI {
			continue
		}
		for _, down := range sys.Nodes[sys.Links[up].To].Links {
			if sys.Links[down].To == gpu {
				return uplink{int32(up), int32(down)}
			}
		}
	}
	return uplink{-1, -1}
}
