package search

import (
	"fmt"
	"slices"

	"github.com/simccl/simccl/topo"
)

// given takes the graph of this search from NCCL_GRAPH_FILE (search.cc:873). A
// graph without channels does not end the search but sets where it begins. Of several
// with the id the last holds.
func (s *schedule) given(p Params) (*Graph, error) {
	b := &s.e.best
	id := s.want.ID
	if id == CollNetDirectID {
		id = p.Rules.Search.CollNetDirectFile
	}
	for _, g := range slices.Backward(p.Given) {
		if g.ID != id || g.CrossNIC == 1 && p.CrossNIC.Set && p.CrossNIC.Value == 0 {
			continue
		}
		if g.NChannels > 0 {
			return s.take(g)
		}
		b.pattern, b.crossNIC, b.sameChannels = g.Pattern, g.CrossNIC, g.SameChannels != 0
		b.bwIntra, b.bwInter, b.latency = float32(g.BWIntra), float32(g.BWInter), g.LatencyInter
		b.typeIntra, b.typeInter = s.e.sys.Rank(g.TypeIntra), s.e.sys.Rank(g.TypeInter)
		break
	}
	return nil, nil
}

// take checks a given graph against the System and adopts it.
func (s *schedule) take(g *Graph) (*Graph, error) {
	if g.NChannels > s.e.rules.MaxChannels {
		return nil, fmt.Errorf("search: given graph %d has %d channels: at most %d are possible", g.ID,
			g.NChannels, s.e.rules.MaxChannels)
	}
	if len(g.Intra) < g.NChannels || len(g.Inter) < g.NChannels {
		return nil, fmt.Errorf("search: given graph %d says %d channels but lists %d: list as many", g.ID,
			g.NChannels, min(len(g.Intra), len(g.Inter)))
	}
	known := map[int]bool{}
	for _, n := range s.e.sys.Of(topo.GPU) {
		known[s.e.sys.Nodes[n].GPU.Rank] = true
	}
	for c, ranks := range g.Intra[:g.NChannels] {
		if n := s.e.gpus; len(ranks) != n && !(g.ID == NVLSID && len(ranks) > 0) {
			return nil, fmt.Errorf("search: given graph %d, channel %d: %d GPUs listed, the host has %d",
				g.ID, c, len(ranks), n)
		}
		for _, r := range ranks {
			if !known[r] {
				return nil, fmt.Errorf("search: given graph %d, channel %d: no GPU has rank %d", g.ID, c, r)
			}
		}
	}
	out := *g
	w := s.want
	out.ID, out.Name, out.CollNet, out.MinChannels, out.MaxChannels = w.ID, names[w.ID], w.CollNet, w.MinChannels,
		w.MaxChannels
	out.Attempts, out.Steps = nil, 0
	return &out, nil
}
