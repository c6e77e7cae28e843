package explain

import (
	"fmt"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/comm"
	"github.com/simccl/simccl/search"
	"github.com/simccl/simccl/topo"
)

// GraphUse is how full the winner's graph makes the links.
type GraphUse struct {
	Name     string  `json:"name"`
	Channels int     `json:"channels"`
	BWIntra  float32 `json:"bwIntra"` // GB/s of a channel
	BWInter  float32 `json:"bwInter"`
	// Links are the fullest links, the limiting one first; links of equal
	// kinds, load and capacity are counted together.
	Links []LinkUse `json:"links,omitempty"`
	// Faster is what the search found at the next higher speed, "" where it
	// tried none.
	Faster string `json:"faster,omitempty"`
	// Rails are the channels that go from one NIC to another because both have a rail;
	// "" where rails decide nothing.
	Rails string `json:"rails,omitempty"`
}

// LinkUse is a directed link with the load that the graph's channels put on
// it, at the speed of the graph.
type LinkUse struct {
	Name         string  `json:"name"` // "GPU 0 -> NVSwitch"
	Kind         string  `json:"kind"`
	CapacityGBps float32 `json:"capacityGBps"`
	LoadGBps     float32 `json:"loadGBps"`
	Share        float32 `json:"share"` // load over capacity
	Equal        int     `json:"alike"` // links with the same kind, capacity and load, itself included
}

// maxLinks bounds GraphUse.Links.
const maxLinks = 4

// graphOf is the graph that an algorithm runs on.
var graphOf = map[coll.Algorithm]int{
	coll.Ring: search.RingID, coll.Tree: search.TreeID, coll.PAT: search.TreeID, coll.NVLS: search.NVLSID,
	coll.NVLSTree: search.NVLSID, coll.CollNetChain: search.CollNetChainID,
	coll.CollNetDirect: search.CollNetDirectID,
}

// text words a link with its load.
func (l *LinkUse) text() string {
	equal := ""
	if l.Equal > 1 {
		equal = fmt.Sprintf(" (and %d equal ones)", l.Equal-1)
	}
	return fmt.Sprintf("%s%s, %s, %.4g of %.4g GB/s", l.Name, equal, l.Kind, l.LoadGBps, l.CapacityGBps)
}

// graphUse loads the links of the node whose links are fullest.
func graphUse(c *comm.Comm, id int) *GraphUse {
	final := c.Final[id]
	if final == nil {
		return nil
	}
	u := &GraphUse{Name: graphNames[id], Channels: final.NChannels, BWIntra: float32(final.BWIntra),
		BWInter: float32(final.BWInter)}
	for _, d := range different(c) {
		g := d.Graphs[id]
		if g == nil {
			continue
		}
		l := &loads{s: d.System, load: make([]float32, len(d.System.Links))}
		l.graph(g, final)
		links := l.fullest()
		if len(links) > 0 && (len(u.Links) == 0 || links[0].Share > u.Links[0].Share) {
			u.Links, u.Faster, u.Rails = links, faster(g), byRail(d.System, g)
		}
	}
	return u
}

var graphNames = [search.NumGraphs]string{
	search.RingID: "ring", search.TreeID: "tree", search.CollNetChainID: "CollNet chain",
	search.NVLSID: "NVLS", search.CollNetDirectID: "CollNet direct",
}

// loads adds up what channels put on links.
type loads struct {
	s    *topo.System
	load []float32 // by link, GB/s
}

func (l *loads) path(from, to topo.NodeID, bw float32) {
	if from == topo.None || to == topo.None {
		return
	}
	p := l.s.Path(from, to)
	for _, id := range p.Links {
		l.load[id] += bw
	}
}

func (l *loads) both(a, b topo.NodeID, bw float32) {
	l.path(a, b, bw)
	l.path(b, a, bw)
}

// graph loads the links with every channel at the speed that all ranks agreed
// on.
func (l *loads) graph(g, final *search.Graph) {
	intra, inter := float32(final.BWIntra), float32(final.BWInter)
	for c := range g.Intra {
		if c >= final.NChannels {
			break
		}
		var gpus []topo.NodeID
		for _, r := range g.Intra[c] {
			gpus = append(gpus, gpuOf(l.s, r))
		}
		in, out := topo.None, topo.None
		if l.s.Inter && c < len(g.Inter) {
			in, out = netOf(l.s, g.Inter[c][0]), netOf(l.s, g.Inter[c][1])
		}
		switch g.Pattern {
		case search.RingPattern:
			l.ring(gpus, in, out, intra, inter)
		case search.NVLSPattern, search.CollNetDirect:
			l.heads(gpus, in, intra, inter)
		default:
			l.tree(gpus, in, out, g.Pattern, intra, inter)
		}
	}
}

func (l *loads) ring(gpus []topo.NodeID, in, out topo.NodeID, intra, inter float32) {
	for i := 1; i < len(gpus); i++ {
		l.path(gpus[i-1], gpus[i], intra)
	}
	last := gpus[len(gpus)-1]
	if in == topo.None || out == topo.None {
		l.path(last, gpus[0], intra)
		return
	}
	l.path(in, gpus[0], inter)
	l.path(last, out, inter)
}

// tree loads one direction within the node, as the search does, although an
// all-reduce sends up and down; which GPUs carry the network's share is what
// the tree patterns differ in (graph.h:100-102).
func (l *loads) tree(gpus []topo.NodeID, in, out topo.NodeID, pattern search.Pattern, intra, inter float32) {
	for i := 1; i < len(gpus); i++ {
		l.path(gpus[i-1], gpus[i], intra)
	}
	second := gpus[min(1, len(gpus)-1)]
	switch pattern {
	case search.BalancedTree:
		l.both(in, gpus[0], inter/2)
		l.both(out, second, inter/2)
	case search.SplitTree:
		l.path(in, second, inter)
		l.path(gpus[0], out, inter)
	default:
		l.path(in, gpus[0], inter)
		l.path(gpus[0], out, inter)
	}
}

// heads: every GPU exchanges its share with the head through the switch.
func (l *loads) heads(gpus []topo.NodeID, in topo.NodeID, intra, inter float32) {
	if len(gpus) == 0 || len(l.s.Of(topo.NVS)) == 0 {
		return
	}
	nvs := l.s.Of(topo.NVS)[0]
	for _, g := range l.s.Of(topo.GPU) {
		bw := intra
		if g == gpus[0] {
			bw *= 2
		}
		l.path(g, nvs, bw)
		l.path(nvs, g, bw)
	}
	l.both(in, gpus[0], inter)
}

// fullest lists the links by share, equal ones merged.
func (l *loads) fullest() []LinkUse {
	var out []LinkUse
	for id, load := range l.load {
		link := &l.s.Links[id]
		if load == 0 || link.BW <= 0 || l.s.OnDevice(topo.LinkID(id)) {
			continue
		}
		u := LinkUse{
			Name: nodeName(l.s, link.From) + " -> " + nodeName(l.s, link.To), Kind: link.Kind.String(),
			CapacityGBps: float32(link.BW), LoadGBps: load, Share: load / float32(link.BW), Equal: 1,
		}
		equal := false
		for i := range out {
			if o := &out[i]; o.Kind == u.Kind && o.CapacityGBps == u.CapacityGBps &&
				o.LoadGBps == u.LoadGBps {
				o.Equal++
				equal = true
			}
		}
		if !equal {
			out = append(out, u)
		}
	}
	for i := 1; i < len(out); i++ { // few, and stable
		for j := i; j > 0 && out[j].Share > out[j-1].Share; j-- {
			out[j], out[j-1] = out[j-1], out[j]
		}
	}
	return out[:min(len(out), maxLinks)]
}

// faster words the best that the search found above the speed it settled on.
func faster(g *search.Graph) string {
	best := -1
	for i, a := range g.Attempts {
		if a.BWInter <= g.BWInter && a.BWIntra <= g.BWIntra {
			continue
		}
		if best < 0 || a.BWIntra < g.Attempts[best].BWIntra || a.BWIntra == g.Attempts[best].BWIntra &&
			a.Channels > g.Attempts[best].Channels {
			best = i
		}
	}
	if best < 0 {
		return ""
	}
	a := g.Attempts[best]
	return fmt.Sprintf("at %g GB/s within and %g GB/s between nodes the search found %d channels (%s)",
		a.BWIntra, a.BWInter, a.Channels, a.Stop)
}

// byRail words the channels of a graph that may not change NICs and do, since the nets
// are of one rail (graph/search.cc:605 of v2.30.7).
func byRail(s *topo.System, g *search.Graph) string {
	if g.CrossNIC != 0 || !s.Inter {
		return ""
	}
	first, n := "", 0
	for c := range min(g.NChannels, len(g.Inter)) {
		in, out := netOf(s, g.Inter[c][0]), netOf(s, g.Inter[c][1])
		if in == topo.None || out == topo.None {
			continue
		}
		a, b := s.Nodes[in].Net, s.Nodes[out].Net
		if a.Rail < 0 || a.Rail != b.Rail || a.ASIC == b.ASIC && a.Port == b.Port {
			continue
		}
		if n++; first == "" {
			first = fmt.Sprintf("channel %d enters by %s and leaves by %s: both nets have rail %d", c, a.Name,
				b.Name, a.Rail)
		}
	}
	if n > 1 {
		first += fmt.Sprintf(" (and %d more channels so)", n-1)
	}
	return first
}
