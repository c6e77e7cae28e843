package show

import (
	"fmt"
	"strings"

	"github.com/simccl/simccl/internal/cnum"
	"github.com/simccl/simccl/topo"
)

// tree writes the PCI tree below every CPU, as lstopo does, with the bandwidth of each link, and the NVLink,
// C2C and CPU-to-CPU links.
func tree(b *strings.Builder, s *topo.System) {
	for _, c := range s.Of(topo.CPU) {
		fmt.Fprintf(b, "%s\n", cpuText(s, c))
		branches(b, s, c, topo.None, "")
	}
}

// branches writes the links of a node, each on its own line.
func branches(b *strings.Builder, s *topo.System, n, up topo.NodeID, indent string) {
	var links []topo.LinkID
	for _, l := range s.Nodes[n].Links {
		if link := &s.Links[l]; link.To != n &&
			(link.To != up || link.Kind != topo.LinkPCI && link.Kind != topo.LinkNET) {
			links = append(links, l)
		}
	}
	for i, l := range links {
		link := &s.Links[l]
		corner, below := "├─ ", "│  "
		if i == len(links)-1 {
			corner, below = "└─ ", "   "
		}
		fmt.Fprintf(b, "%s%s%s %s GB/s  %s\n", indent, corner, s.LinkName(link.Kind), short(float32(link.BW)),
			nodeText(s, link.To))
		if link.Kind == topo.LinkPCI || link.Kind == topo.LinkNET && s.Nodes[link.To].Kind == topo.NET {
			branches(b, s, link.To, n, indent+below)
		}
	}
}

var archNames = map[topo.CPUArch]string{topo.ArchX86: "x86_64", topo.ArchPower: "ppc64",
	topo.ArchARM: "arm64"}

func cpuText(s *topo.System, n topo.NodeID) string {
	c := s.Nodes[n].CPU
	text := fmt.Sprintf("CPU NUMA %d", c.NUMA)
	if s.NHosts > 1 {
		text += fmt.Sprintf(" of host %d", s.Nodes[n].Ident>>56)
	}
	text += " " + archNames[c.Arch]
	switch c.Vendor {
	case topo.VendorIntel:
		text += " Intel"
	case topo.VendorAMD:
		text += " AMD"
	case topo.VendorZhaoxin:
		text += " Zhaoxin"
	}
	return strings.TrimRight(text, " ")
}

func nodeText(s *topo.System, n topo.NodeID) string {
	node := &s.Nodes[n]
	id := int64(node.Ident & (1<<56 - 1))
	switch node.Kind {
	case topo.GPU:
		if g := node.GPU; g.Arch != "" {
			return fmt.Sprintf("GPU%d %s %s %d CUs dev %d", g.Rank, g.BusID, g.Arch, g.CU, g.Dev)
		}
		return fmt.Sprintf("GPU%d %s sm_%d dev %d", node.GPU.Rank, node.GPU.BusID, node.GPU.SM, node.GPU.Dev)
	case topo.PCI:
		return fmt.Sprintf("PCI %s (%x)", cnum.BusIDText(id), node.PCI.Device)
	case topo.NVS:
		return "NVSwitch"
	case topo.DEV:
		return "device of " + s.Short(n)
	case topo.GIN:
		return s.Short(n)
	case topo.CPU:
		return cpuText(s, n)
	case topo.NIC:
		if id == 0 {
			return "NIC outside PCI"
		}
		return "NIC " + cnum.BusIDText(id)
	}
	return fmt.Sprintf("%s %s", label(s, n), node.Net.Name)
}

// Dot draws a System for Graphviz: one box a host, one node a device, one edge
// a pair of links with its bandwidth.
func Dot(s *topo.System) string {
	var b strings.Builder
	b.WriteString("graph topology {\n  node [shape=box, fontname=\"sans-serif\", fontsize=10];\n" +
		"  edge [fontname=\"sans-serif\", fontsize=8];\n")
	shapes := map[topo.NodeKind]string{topo.GPU: "style=filled, fillcolor=\"#b7e1cd\"",
		topo.NVS: "shape=ellipse", topo.DEV: "style=filled, fillcolor=\"#d9ead3\"",
		topo.NET: "style=filled, fillcolor=\"#c9daf8\"", topo.CPU: "style=filled, fillcolor=\"#fce5cd\""}
	for k := topo.GPU; k < topo.NumNodeKinds; k++ {
		for _, n := range s.Of(k) {
			fmt.Fprintf(&b, "  n%d [label=%q", n, nodeText(s, n))
			if st := shapes[k]; st != "" {
				b.WriteString(", " + st)
			}
			b.WriteString("];\n")
		}
	}
	for i := range s.Links {
		l := &s.Links[i]
		back := backLink(s, topo.LinkID(i))
		if back >= 0 && l.From > l.To {
			continue // drawn with the other direction
		}
		text := short(float32(l.BW))
		if back < 0 {
			text += " one way"
		} else if s.Links[back].BW != l.BW {
			text += " / " + short(float32(s.Links[back].BW))
		}
		style := ""
		switch l.Kind {
		case topo.LinkNVL, topo.LinkC2C:
			style = ", color=\"#38761d\", penwidth=2"
		case topo.LinkSYS:
			style = ", style=dashed"
		}
		fmt.Fprintf(&b, "  n%d -- n%d [label=\"%s %s\"%s];\n", l.From, l.To, s.LinkName(l.Kind), text, style)
	}
	b.WriteString("}\n")
	return b.String()
}

// backLink returns the first link of the same kind in the opposite direction, -1 if there is none.
func backLink(s *topo.System, l topo.LinkID) topo.LinkID {
	link := &s.Links[l]
	for _, r := range s.Nodes[link.To].Links {
		if s.Links[r].To == link.From && s.Links[r].Kind == link.Kind {
			return r
		}
	}
	return -1
}
