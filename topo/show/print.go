package show

import (
	"fmt"
	"strings"

	"github.com/simccl/simccl/topo"
)

// maxLine is the length at which NCCL truncates a line of paths (paths.cc:112).
const maxLine = 1023

// Log returns the lines with which NCCL's INFO log prints a System, without the log's prefix: the tree below
// every CPU, then the paths of GPUs and nets (topo.cc:293, paths.cc:111). first is the communicator's rank of
// the System's local rank 0.
func Log(s *topo.System, first int) []string {
	p := printer{s: s, first: first}
	p.add(fmt.Sprintf("=== System : maxBw %.1f totalBw %.1f ===", float32(s.MaxBW), float32(s.TotalBW)))
	for _, c := range s.Of(topo.CPU) {
		p.node(c, topo.None, "", 0)
	}
	p.add("==========================================")
	for _, k := range []topo.NodeKind{topo.GPU, topo.NET} {
		for _, n := range s.Of(k) {
			p.paths(n)
		}
	}
	return p.lines
}

type printer struct {
	s     *topo.System
	first int
	lines []string
}

func (p *printer) add(line string) { p.lines = append(p.lines, line) }

// node prints a node after the prefix lead, then its links, one per line, indented to the column of the
// node's name.
func (p *printer) node(n, from topo.NodeID, lead string, column int) {
	s := p.s
	node := &s.Nodes[n]
	name := p.s.Name(n)
	switch node.Kind {
	case topo.GPU:
		name += fmt.Sprintf(" (%d)", p.first+node.GPU.Rank)
	case topo.CPU:
		name += fmt.Sprintf(" (%d/%d/%d)", node.CPU.Arch, node.CPU.Vendor, node.CPU.Model)
	case topo.PCI:
		name += fmt.Sprintf(" (%x)", node.PCI.Device)
	case topo.DEV: // 2.30.7 topo.cc:298
		name += fmt.Sprintf(" (%x)", node.Dev.Device)
	}
	p.add(lead + name)
	if column > maxLine {
		return // PCI links in a circle; NCCL would run out of its line
	}
	blank := strings.Repeat(" ", column)
	for _, l := range node.Links {
		link := &s.Links[l]
		head := fmt.Sprintf("%s+ %s[%.1f] - ", blank, s.LinkName(link.Kind), float32(link.BW))
		to := &s.Nodes[link.To]
		switch {
		case link.Kind == topo.LinkLOC && s.Rules.Log.SkipLOC:
		case link.Kind == topo.LinkPCI && link.To == from:
		case link.Kind == topo.LinkPCI:
			p.node(link.To, n, head, len(head))
		case to.Kind == topo.NET && link.Kind != topo.LinkLOC:
			net := to.Net
			coll := fmt.Sprintf("%d/", flag(net.Coll))
			if s.Rules.Log.NoColl {
				coll = ""
			}
			p.add(fmt.Sprintf("%s%s (%s%x/%d/%f)", head, p.name(link.To), coll, net.ASIC, net.Port,
				float32(net.BW)))
		default:
			p.add(head + p.name(link.To))
		}
	}
}

// name returns a node's name in a link or at the beginning of a line of paths.
func (p *printer) name(n topo.NodeID) string {
	if p.s.Rules.Log.RawIDs {
		return fmt.Sprintf("%s/%X", p.s.Nodes[n].Kind, p.s.WholeID(n))
	}
	return p.s.Name(n)
}

// paths prints the paths of a node on one line, kind by kind. It omits kinds of which the node reaches none.
func (p *printer) paths(n topo.NodeID) {
	s := p.s
	line := p.name(n) + " :"
	for k := topo.GPU; k < topo.NumNodeKinds; k++ {
		if !reachesAny(s, n, k) {
			continue
		}
		for _, to := range s.Of(k) {
			path := s.Path(n, to)
			line += fmt.Sprintf("%s (%d/%.1f/%s) ", s.Name(to), len(path.Links), float32(path.BW),
				s.PathName(path.Kind))
		}
	}
	p.add(line[:min(len(line), maxLine)])
}

func reachesAny(s *topo.System, n topo.NodeID, k topo.NodeKind) bool {
	for _, to := range s.Of(k) {
		if s.Path(n, to).Kind != topo.PathDIS {
			return true
		}
	}
	return false
}
