package tuning

import (
	"fmt"
	"strings"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/search"
)

// Step is one line of how a bandwidth is derived.
type Step struct {
	What string  `json:"what"`
	GBps float32 `json:"gbps"` // the value after it
	// Caps is set where a fixed limit took effect rather than a share.
	Caps bool `json:"caps,omitempty"`
}

// Derive reports how the raw bandwidth of a cell is derived: the graph's, then
// each share or limit that the protocol and the algorithm impose. The last
// step has Raw's value. It is empty where the cell does not exist.
func (m *Model) Derive(f coll.Func, a coll.Algorithm, p coll.Protocol) []Step {
	if m.In.NRanks == 1 || m.Raw[f][a][p] == 0 {
		return nil
	}
	s := newShape(&m.In, m.tab)
	g := m.In.graph(a)
	d := &deriver{}
	switch a {
	case coll.NVLS, coll.NVLSTree:
		d.nvls(s, g, f, a)
	default:
		bw := float32(g.BWInter)
		which := "between nodes"
		if s.nNodes <= 2 || a == coll.CollNetDirect || a == coll.CollNetChain {
			bw, which = float32(g.BWIntra), "within a node"
		}
		d.add(fmt.Sprintf("%s graph: %s of %g GB/s %s", graphName(g), plural(g.NChannels, "channel"), bw,
			which), float32(g.NChannels)*bw)
	}
	switch {
	case m.cost != nil:
		m.amdShares(d, f, a, p)
	case a == coll.Ring:
		d.ring(s, g, p)
	case a == coll.Tree:
		d.tree(s, g, f, p, m.In.TreePattern)
	case a == coll.PAT:
		d.add("PAT reaches "+short(m.tab.PATEff)+" of the graph", float32(float64(d.last)*m.tab.PATEff))
	case a == coll.CollNetDirect:
		d.add("as the ratio of GPUs to NICs allows", s.collNetDirectBW(d.last, g, f, m.In.MinSM))
	}
	if raw := m.Raw[f][a][p]; d.last != raw {
		d.add(fmt.Sprintf("bytes of the operation per byte on the bus: x %.3g", raw/d.last), raw)
	}
	return d.steps
}

// short is a share without its leading zero: ".92".
func short(share float64) string { return strings.TrimPrefix(fmt.Sprintf("%g", share), "0") }

type deriver struct {
	steps []Step
	last  float32
}

func (d *deriver) add(what string, v float32) {
	d.steps, d.last = append(d.steps, Step{What: what, GBps: v}), v
}

// limit adds the outcome of a share and a cap: whichever took effect.
func (d *deriver) limit(share string, factor float64, limit string, capGBps float64, v float32) {
	if v == float32(capGBps) && float64(d.last)*factor > capGBps {
		d.add(limit, v)
		d.steps[len(d.steps)-1].Caps = true
		return
	}
	d.add(share, v)
}

func (d *deriver) ring(s *shape, g *search.Graph, p coll.Protocol) {
	v := s.ringBW(d.last, g.NChannels, p)
	switch p {
	case coll.LL:
		d.limit("LL sends a flag with every 4 bytes: x .5", .5, fmt.Sprintf("LL reaches at most %g GB/s here",
			s.llMax), s.llMax, v)
	case coll.LL128:
		d.limit("LL128 sends 120 of 128 bytes: x "+short(s.ringLL128Share()), s.ringLL128Share(),
			fmt.Sprintf("LL128 reaches at most %g GB/s a channel here", s.ringLL128),
			float64(g.NChannels)*s.ringLL128, v)
	}
}

func (d *deriver) tree(s *shape, g *search.Graph, f coll.Func, p coll.Protocol, pattern search.Pattern) {
	n := float64(g.NChannels)
	if f == coll.AllReduce { // the protocols of treeBW leave Simple at this
		v := s.treeBW(d.last, g.NChannels, f, coll.Simple, 0)
		d.limit("a tree reaches .92 of the graph", .92,
			fmt.Sprintf("a tree reaches at most %g GB/s a channel here", s.treeMax), n*s.treeMax, v)
	}
	v := s.treeBW(d.last, g.NChannels, coll.Broadcast, p, 0)
	switch p {
	case coll.LL:
		d.limit("LL in a tree: / 3.8", 1/3.8, fmt.Sprintf("LL reaches at most %g GB/s here", s.llMax),
			s.llMax, v)
	case coll.LL128:
		share, eff := "LL128 sends 120 of 128 bytes: x .94", 120.0/128.0
		if s.nNodes == 1 {
			share, eff = "LL128 in a tree on one node: x .78", 7.0/9.0
		}
		d.limit(share, eff, fmt.Sprintf("LL128 reaches at most %g GB/s a channel here", s.treeLL128),
			n*s.treeLL128, v)
	}
	if pattern == search.TreePattern {
		d.add("all network traffic at one GPU of a node: x .85", float32(float64(d.last)*.85))
	}
}

func (d *deriver) nvls(s *shape, g *search.Graph, f coll.Func, a coll.Algorithm) {
	v := s.nvlsBW(g, f, a)
	n := float32(g.NChannels)
	cap := float32(s.nvlsTreeMax)
	switch {
	case a == coll.NVLSTree && v == cap:
		d.add(fmt.Sprintf("%s graph: %d channels, which NVLSTree fills with at most %g GB/s each here",
			graphName(g), g.NChannels, cap), n*v)
		d.steps[0].Caps = true
	case v == float32(g.BWInter) || a == coll.NVLSTree && v == 2*float32(g.BWInter):
		d.add(fmt.Sprintf("%s graph: %d channels, bound by %g GB/s each between nodes", graphName(g),
			g.NChannels, v), n*v)
	default:
		d.add(fmt.Sprintf("%s graph: %d channels of %g GB/s, of which the switch reduces %g", graphName(g),
			g.NChannels, float32(g.BWIntra), v), n*v)
	}
}
