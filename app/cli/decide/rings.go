package decide

import (
	"fmt"
	"strings"

	"github.com/simccl/simccl/connect"
	"github.com/simccl/simccl/topo"
	"github.com/simccl/simccl/topo/fabric"
)

// document is the JSON output of graph --format json: how the ranks of the cluster are connected. For each
// channel it has the ring and the tree, and the NIC through which each step leaves and enters a host.
type document struct {
	NRanks   int       `json:"nRanks"`
	NNodes   int       `json:"nNodes"`
	Nodes    []node    `json:"nodes"`
	Channels []channel `json:"channels"`
}

// node is one of NCCL's nodes (a host or NVLink domain) with its ranks.
type node struct {
	Host  string `json:"host"`
	Ranks []int  `json:"ranks"`
}

// channel is one ring and one tree over all ranks.
type channel struct {
	Channel int    `json:"channel"`
	Ring    []int  `json:"ring"` // from rank 0 on
	Root    int    `json:"treeRoot"`
	Steps   []step `json:"ringSteps"`
	Edges   []step `json:"treeEdges"` // towards the root
}

// step is the connection from one rank to the next along a ring.
type step struct {
	From      int    `json:"from"`
	To        int    `json:"to"`
	Transport string `json:"transport"`
	// Out and In name the nets at both ends, Proxy the ranks whose proxies
	// drive them where those are others (PXN); empty inside a host.
	Out      string `json:"outNet,omitempty"`
	In       string `json:"inNet,omitempty"`
	OutProxy int    `json:"outProxy"`
	InProxy  int    `json:"inProxy"`
	OutGDR   bool   `json:"outGdr"`
	InGDR    bool   `json:"inGdr"`
}

var transports = map[connect.Transport]string{connect.P2P: "P2P", connect.SHM: "SHM", connect.NET: "NET"}

// reader looks up connections in the layout and the cluster.
type reader struct {
	c  *connect.Layout
	cl *fabric.Cluster
}

// documentOf returns the document. It includes the channels that NCCL made by duplication.
func documentOf(c *connect.Layout, cl *fabric.Cluster) document {
	r := reader{c, cl}
	d := document{NRanks: c.NRanks, NNodes: c.NNodes}
	for n, ranks := range c.NodeRanks {
		d.Nodes = append(d.Nodes, node{Host: r.host(int(ranks[0])), Ranks: ints(c.NodeRanks[n])})
	}
	for ch := range c.Channels {
		d.Channels = append(d.Channels, r.channel(ch))
	}
	return d
}

func ints(in []int32) []int {
	out := make([]int, len(in))
	for i, v := range in {
		out[i] = int(v)
	}
	return out
}

func (r reader) host(rank int) string { return r.cl.HostName(r.cl.Locate(rank).Host) }

func (r reader) channel(ch int) channel {
	c := &r.c.Channels[ch]
	out := channel{Channel: ch, Ring: ints(c.Order), Root: -1}
	for i, rank := range c.Order {
		next := c.Order[(i+1)%len(c.Order)]
		if next != rank {
			out.Steps = append(out.Steps, r.step(rank, next, ch, connect.RingRoute))
		}
	}
	for rank := range c.Tree {
		up := c.Tree[rank].Up
		if up < 0 {
			out.Root = rank
			continue
		}
		out.Edges = append(out.Edges, r.step(int32(rank), up, ch, connect.TreeRoute))
	}
	return out
}

func (r reader) step(from, to int32, ch int, kind connect.RouteKind) step {
	s := step{From: int(from), To: int(to), OutProxy: int(from), InProxy: int(to)}
	if r.c.RouteOf == nil {
		return s
	}
	route := r.c.RouteOf(from, to, ch, kind)
	s.Transport = transports[route.Transport]
	if route.Transport != connect.NET {
		return s
	}
	s.Out, s.In = r.net(int(from), route.SrcNet), r.net(int(to), route.DstNet)
	s.OutProxy, s.InProxy = int(route.SrcProxy), int(route.DstProxy)
	s.OutGDR, s.InGDR = route.SrcGDR, route.DstGDR
	return s
}

// net returns the name of a net of a rank's host.
func (r reader) net(rank int, index int32) string {
	s := r.cl.Locate(rank).System
	if nets := s.Of(topo.NET); index >= 0 && int(index) < len(nets) {
		return s.Nodes[nets[index]].Net.Name
	}
	return ""
}

// colours are the colours of channels in drawings.
var colours = []string{"#1f77b4", "#ff7f0e", "#2ca02c", "#d62728", "#9467bd", "#8c564b", "#e377c2", "#7f7f7f",
	"#bcbd22", "#17becf"}

// dot draws rings (solid) and trees (dashed, towards the root) for Graphviz:
// one box a node of NCCL, one colour a channel. Channels that are copies of an
// earlier one are left out, with their number on the one that is drawn.
func dot(c *connect.Layout, cl *fabric.Cluster) string {
	r := reader{c, cl}
	var b strings.Builder
	b.WriteString("digraph channels {\n  rankdir=LR;\n" +
		"  node [shape=circle, fontname=\"sans-serif\", fontsize=10];\n" +
		"  edge [fontname=\"sans-serif\", fontsize=8];\n")
	for n, ranks := range c.NodeRanks {
		fmt.Fprintf(&b, "  subgraph cluster_%d {\n    label=%q;\n", n, r.host(int(ranks[0])))
		for _, rank := range ranks {
			at := cl.Locate(int(rank))
			fmt.Fprintf(&b, "    r%d [label=\"%d\", tooltip=%q];\n", rank, rank,
				at.System.Nodes[at.GPU].GPU.BusID)
		}
		b.WriteString("  }\n")
	}
	for _, g := range distinct(c) {
		ch := r.channel(g[0])
		colour := colours[g[0]%len(colours)]
		for _, s := range ch.Steps {
			r.arrow(&b, s, colour, "solid", "ring "+list(g))
		}
		for _, s := range ch.Edges {
			r.arrow(&b, s, colour, "dashed", "tree "+list(g))
		}
	}
	b.WriteString("}\n")
	return b.String()
}

func (r reader) arrow(b *strings.Builder, s step, colour, style, tip string) {
	label := ""
	if s.Out != "" || s.In != "" {
		label = s.Out + " > " + s.In
		if s.OutProxy != s.From {
			label += fmt.Sprintf("\\nby %d", s.OutProxy)
		}
	}
	fmt.Fprintf(b, "  r%d -> r%d [color=%q, style=%s, label=\"%s\", tooltip=%q];\n", s.From, s.To, colour,
		style, label, tip)
}

// distinct groups equal channels.
func distinct(c *connect.Layout) [][]int {
	var groups [][]int
	for ch := range c.Channels {
		found := false
		for g := range groups {
			if same(&c.Channels[groups[g][0]], &c.Channels[ch]) {
				groups[g] = append(groups[g], ch)
				found = true
				break
			}
		}
		if !found {
			groups = append(groups, []int{ch})
		}
	}
	return groups
}

func same(a, b *connect.Channel) bool {
	for i := range a.Ring {
		if a.Ring[i] != b.Ring[i] || a.Tree[i] != b.Tree[i] {
			return false
		}
	}
	return true
}

func list(channels []int) string {
	return strings.Trim(strings.ReplaceAll(fmt.Sprint(channels), " ", ","), "[]")
}

// ringsText lists every channel's ring and tree, with the nets between hosts, as
// people read them in a terminal.
func ringsText(c *connect.Layout, cl *fabric.Cluster) string {
	r := reader{c, cl}
	var b strings.Builder
	for _, g := range distinct(c) {
		ch := r.channel(g[0])
		fmt.Fprintf(&b, "channel %s\n  ring", list(g))
		for i, rank := range ch.Ring {
			fmt.Fprintf(&b, " %d", rank)
			if i < len(ch.Steps) && ch.Steps[i].Transport == "NET" {
				fmt.Fprintf(&b, " [%s > %s]", ch.Steps[i].Out, ch.Steps[i].In)
			}
		}
		fmt.Fprintf(&b, "\n  tree root %d;", ch.Root)
		for _, e := range ch.Edges {
			if e.Transport == "NET" {
				fmt.Fprintf(&b, " %d > %d [%s > %s]", e.From, e.To, e.Out, e.In)
			}
		}
		b.WriteByte('\n')
	}
	return b.String()
}
