package ncclog

import (
	"fmt"
	"strings"

	"github.com/simccl/simccl/topo"
)

// lineSize is NCCL's buffer for a line (topo.cc:317, paths.cc:116).
const lineSize = 1024

// system prints a System as a rank of it sees it; first is the rank of its
// local rank 0 (topo.cc:315).
func (l *log) system(s *topo.System, first int32) {
	l.add(Graph, "=== System : maxBw %2.1f totalBw %2.1f ===", s.MaxBW, s.TotalBW)
	for _, cpu := range s.Of(topo.CPU) {
		l.node(s, first, cpu, topo.None, "", 0)
	}
	l.add(Graph, "==========================================")
	for _, k := range [...]topo.NodeKind{topo.GPU, topo.NET} {
		for _, n := range s.Of(k) {
			l.paths(s, n)
		}
	}
}

// node prints a node after lead, and below it what it is linked to; PCI links
// away from up are followed (topo.cc:279).
func (l *log) node(s *topo.System, first int32, id, up topo.NodeID, lead string, depth int) {
	n := &s.Nodes[id]
	switch text := lead + s.Name(id); n.Kind {
	case topo.GPU:
		l.add(Graph, "%s (%d)", text, first+int32(n.GPU.Rank))
	case topo.CPU:
		l.add(Graph, "%s (%d/%d/%d)", text, n.CPU.Arch, n.CPU.Vendor, n.CPU.Model)
	case topo.PCI:
		l.add(Graph, "%s (%x)", text, n.PCI.Device)
	default:
		l.add(Graph, "%s", text)
	}
	if depth > len(s.Nodes) {
		return // PCI links in a circle: no tree
	}
	indent := blanks(len(lead))
	for _, id2 := range n.Links {
		link := &s.Links[id2]
		if link.Kind == topo.LinkPCI && link.To == up {
			continue
		}
		text := fmt.Sprintf("%s+ %v[%2.1f] - ", indent, link.Kind, link.BW)
		to := &s.Nodes[link.To]
		switch {
		case link.Kind == topo.LinkPCI:
			l.node(s, first, link.To, id, text, depth+1)
		case to.Kind == topo.NET && link.Kind != topo.LinkLOC:
			coll := 0
			if to.Net.Coll {
				coll = 1
			}
			l.add(Graph, "%s%s (%d/%x/%d/%f)", text, s.Name(link.To), coll, to.Net.ASIC, to.Net.Port, to.Net.BW)
		default:
			l.add(Graph, "%s%s", text, s.Name(link.To))
		}
	}
}

// paths prints a node's routes to all nodes of the kinds that it reaches
// (paths.cc:115).
func (l *log) paths(s *topo.System, from topo.NodeID) {
	var b strings.Builder
	b.WriteString(s.Name(from) + " :")
	for k := range topo.NumNodeKinds {
		reached := false
		for _, to := range s.Of(k) {
			reached = reached || s.Path(from, to).Kind != topo.PathDIS
		}
		if !reached {
			continue
		}
		for _, to := range s.Of(k) {
			p := s.Path(from, to)
			fmt.Fprintf(&b, "%s (%d/%.1f/%v) ", s.Name(to), len(p.Links), p.BW, p.Kind)
		}
	}
	l.add(Graph, "%s", cut(b.String(), lineSize))
}
