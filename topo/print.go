package topo

import (
	"fmt"
	"strings"
)

// maxLine is how long NCCL's path lines get before they are cut (paths.cc:112).
const maxLine = 1023

// Print gives the lines by which NCCL's INFO log shows a System, without the
// log's own prefix: the tree below every CPU, then the paths of GPUs and nets
// (topo.cc:293, paths.cc:111). first is the communicator's rank of the System's
// local rank 0.
func (s *System) Print(first int) []string {
	p := printer{s: s, first: first}
	p.add(fmt.Sprintf("=== System : maxBw %.1f totalBw %.1f ===", float32(s.MaxBW), float32(s.TotalBW)))
	for _, c := range s.of[CPU] {
		p.node(c, None, "", 0)
	}
	p.add("==========================================")
	for _, k := range []NodeKind{GPU, NET} {
		for _, n := range s.of[k] {
			p.paths(n)
		}
	}
	return p.lines
}

type printer struct {
	s     *System
	first int
	lines []string
}

func (p *printer) add(line string) { p.lines = append(p.lines, line) }

// node prints one node behind what leads to it, and below that its links, all
// of which start where the node's name does.
func (p *printer) node(n, from NodeID, lead string, column int) {
	s := p.s
	node := &s.Nodes[n]
	name := s.Name(n)
	switch node.Kind {
	case GPU:
		name += fmt.Sprintf(" (%d)", p.first+node.GPU.Rank)
	case CPU:
		name += fmt.Sprintf(" (%d/%d/%d)", node.CPU.Arch, node.CPU.Vendor, node.CPU.Model)
	case PCI:
		name += fmt.Sprintf(" (%x)", node.PCI.Device)
	}
	p.add(lead + name)
	if column > maxLine {
		return // PCI links in a circle; NCCL would run out of its line
	}
	blank := strings.Repeat(" ", column)
	for _, l := range node.Links {
		link := &s.Links[l]
		head := fmt.Sprintf("%s+ %s[%.1f] - ", blank, link.Kind, float32(link.BW))
		to := &s.Nodes[link.To]
		switch {
		case link.Kind == LinkPCI && link.To == from:
		case link.Kind == LinkPCI:
			p.node(link.To, n, head, len(head))
		case to.Kind == NET && link.Kind != LinkLOC:
			net := to.Net
			p.add(fmt.Sprintf("%s%s (%d/%x/%d/%f)", head, s.Name(link.To), flag(net.Coll), net.ASIC, net.Port, float32(net.BW)))
		default:
			p.add(head + s.Name(link.To))
		}
	}
}

// paths prints one line of a node's paths, kind by kind; kinds of which it
// reaches nothing are left out.
func (p *printer) paths(n NodeID) {
	s := p.s
	line := s.Name(n) + " :"
	for k := GPU; k < NumNodeKinds; k++ {
		if s.paths[k] == nil || !s.reachesAny(n, k) {
			continue
		}
		for _, to := range s.of[k] {
			path := s.Path(n, to)
			line += fmt.Sprintf("%s (%d/%.1f/%s) ", s.Name(to), len(path.Links), float32(path.BW), path.Kind)
		}
	}
	p.add(line[:min(len(line), maxLine)])
}

func (s *System) reachesAny(n NodeID, k NodeKind) bool {
	for _, to := range s.of[k] {
		if s.Path(n, to).Kind != PathDIS {
			return true
		}
	}
	return false
}

// BackLink gives the first link of the same kind that leads in the other direction, -1
// without one.
func (s *System) BackLink(l LinkID) LinkID {
	link := &s.Links[l]
	for _, r := range s.Nodes[link.To].Links {
		if s.Links[r].To == link.From && s.Links[r].Kind == link.Kind {
			return r
		}
	}
	return -1
}
