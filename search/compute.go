package search

import (
	"errors"
	"fmt"

	"github.com/simccl/simccl/rules"
	"github.com/simccl/simccl/topo"
	"github.com/simccl/simccl/units"
)

// Params are the settings that change a search; unset means NCCL's default.
type Params struct {
	Rules *rules.Ruleset // the release's; a search refuses nil

	CrossNIC units.Opt[int] // NCCL_CROSS_NIC: 0 same rail, 1 free, 2 try 0 then alternate (default 2)
	// NCCL_MNNVL_RAIL_PER_HOST: rails go by PCI address between hosts (default off)
	RailPerHost units.Opt[bool]
	// NCCL_MNNVL_SCATTER_NETS_ENABLE: nets by GPU first in a multi-host domain (default by the rules)
	ScatterNets units.Opt[bool]
	CollNet     bool // search the two CollNet graphs (NCCL_COLLNET_ENABLE and a plugin that can)
	// RingChannels bounds the channels of the ring; 0: half of those that there may be.
	RingChannels int
	NVLS         bool // search the NVLS graph (NVLink multicast is there and not switched off)
	// Given holds the graphs of NCCL_GRAPH_FILE: each replaces the search of
	// its ID if it has channels.
	Given []*Graph
	// Cancelled is polled by long loops: nil to continue, else the reason to stop,
	// as a context's Err. It decides nothing. Nil: never.
	Cancelled func() error
}

// Want names one search: what NCCL's init requests for one pattern
// (init.cc:1015-1058).
type Want struct {
	ID                       int
	Pattern                  Pattern
	CollNet                  bool
	MinChannels, MaxChannels int
}

// Set holds the five graphs of one System by graph id (RingID …); those that
// were not asked for have no channels.
type Set [NumGraphs]*Graph

// Order lists graph ids in the order in which NCCL keeps and dumps them
// (init.cc:1066): ring, tree, collnet direct, collnet chain, NVLS.
func Order() [NumGraphs]int {
	return [NumGraphs]int{RingID, TreeID, CollNetDirectID, CollNetChainID, NVLSID}
}

// OrderOf is Order without the graphs that a release never has.
func OrderOf(r *rules.Ruleset) []int {
	all := Order()
	if r.Search.RingAndTreeOnly {
		return all[:2]
	}
	return all[:]
}

// names are the graphs' names by id, as decision documents spell them.
var names = [NumGraphs]string{RingID: "ring", TreeID: "tree", CollNetChainID: "collnetChain", NVLSID: "nvls",
	CollNetDirectID: "collnetDirect"}

// ErrNoGPU is returned for a System without GPUs.
var ErrNoGPU = errors.New("search: the system has no GPU")

// All searches the five graphs with the channel limits by which NCCL's init
// ties them together (init.cc:1015-1058): the tree gets exactly the ring's
// channels, and so does the CollNet chain.
func All(sys *topo.System, p Params) (Set, error) {
	set, _, err := AllAndAfter(sys, p)
	return set, err
}

// AllAndAfter is All that also returns the System as NCCL's searches leave it:
// NCCL reserves bandwidth on the links themselves and rounds at every change
// (search.cc:74), so a link of 5000 GB/s ends up to some GB/s away from that,
// and a net that no GPU reaches loses what it lent. What NCCL prints later shows
// these speeds; nothing is decided by them.
func AllAndAfter(sys *topo.System, p Params) (Set, *topo.System, error) {
	e, err := prepareEngine(sys, p)
	if err != nil {
		return Set{}, nil, err
	}
	set, err := e.all(p)
	if err != nil {
		return set, nil, err
	}
	return set, e.after(), nil
}

// after is the System with the speeds that the searches left; the System itself
// where they changed nothing.
func (e *engine) after() *topo.System {
	links, nets := make([]units.GBps, len(e.linkBW)), make([]units.GBps, len(e.netBW))
	same := true
	for i, bw := range e.linkBW {
		links[i] = units.GBps(bw)
		same = same && links[i] == e.sys.Links[i].BW
	}
	for i, bw := range e.netBW {
		nets[i] = units.GBps(bw)
		same = same && nets[i] == e.nets.info[i].BW
	}
	if same {
		return e.sys
	}
	return e.sys.WithSpeeds(links, nets)
}

func prepareEngine(sys *topo.System, p Params) (*engine, error) {
	if err := p.Rules.Check("search", sys.Rules); err != nil {
		return nil, err
	}
	if len(sys.Of(topo.GPU)) == 0 {
		return nil, ErrNoGPU
	}
	if len(sys.Of(topo.CPU)) == 0 {
		return nil, errors.New("search: the system has no CPU")
	}
	return newEngine(sys, p)
}

func (e *engine) all(p Params) (set Set, err error) {
	most := p.Rules.MaxChannels
	rings := most / 2
	if p.RingChannels > 0 {
		rings = p.RingChannels
	}
	ring, err := e.compute(Want{ID: RingID, Pattern: RingPattern, MinChannels: 1, MaxChannels: rings}, p)
	if err != nil {
		return set, err
	}
	n := ring.NChannels
	set[RingID] = ring
	for _, w := range []struct {
		Want
		on bool
	}{
		{Want{ID: TreeID, Pattern: BalancedTree, MinChannels: n, MaxChannels: n}, true},
		{Want{ID: CollNetChainID, Pattern: TreePattern, CollNet: true, MinChannels: n, MaxChannels: n},
			p.CollNet},
		{Want{ID: CollNetDirectID, Pattern: CollNetDirect, CollNet: true, MinChannels: 1, MaxChannels: most},
			p.CollNet && !p.Rules.Search.OneCollNetGraph},
		{Want{ID: NVLSID, Pattern: NVLSPattern, MinChannels: 1, MaxChannels: most}, p.NVLS},
	} {
		if !w.on {
			set[w.ID] = w.empty()
			continue
		}
		if set[w.ID], err = e.compute(w.Want, p); err != nil {
			return set, err
		}
	}
	if p.CollNet && p.Rules.Search.OneCollNetGraph {
		chain := *set[CollNetChainID]
		set[CollNetDirectID] = &chain
	}
	return set, nil
}

// empty is the graph of a search that has found nothing yet.
func (w Want) empty() *Graph {
	return &Graph{
		ID: w.ID, Name: names[w.ID], Pattern: w.Pattern, CollNet: w.CollNet,
		MinChannels: w.MinChannels, MaxChannels: w.MaxChannels,
	}
}

// compute runs one search on the engine.
func (e *engine) compute(w Want, p Params) (*Graph, error) {
	if w.ID < 0 || w.ID >= NumGraphs {
		return nil, fmt.Errorf("search: graph id %d: want 0 to %d", w.ID, NumGraphs-1)
	}
	if w.MaxChannels > p.Rules.MaxChannels || w.MinChannels < 0 {
		return nil, fmt.Errorf("search: %d to %d channels: want 0 to %d", w.MinChannels, w.MaxChannels,
			p.Rules.MaxChannels)
	}
	s := newSchedule(e, w, p)
	g, err := s.given(p)
	if g != nil || err != nil {
		return g, err
	}
	s.run()
	if e.stopped != nil {
		return nil, fmt.Errorf("search: %w", e.stopped)
	}
	return s.graph(), nil
}

// poll checks whether to continue; if not, nothing more is tried.
func (e *engine) poll() {
	if e.cancelled != nil && e.stopped == nil {
		e.stopped = e.cancelled()
	}
}

// graph writes the best trial down with ranks and net ids.
func (s *schedule) graph() *Graph {
	e, t := s.e, &s.e.best
	g := s.want.empty()
	g.Pattern, g.NChannels = t.pattern, t.nChannels
	g.MinChannels, g.MaxChannels = t.minChannels, t.maxChannels
	g.BWIntra, g.BWInter = units.GBps(t.bwIntra), units.GBps(t.bwInter)
	g.LatencyInter = t.latency
	g.TypeIntra, g.TypeInter = e.sys.Rank(t.typeIntra), e.sys.Rank(t.typeInter)
	if t.sameChannels {
		g.SameChannels = 1
	}
	g.CrossNIC, g.NHops = t.crossNIC, t.nHops
	g.Attempts, g.Steps = s.attempts, e.steps
	gpus := e.sys.Of(topo.GPU)
	nets := e.sys.Of(topo.NET)
	for c := 0; c < t.nChannels; c++ {
		n := e.gpus
		if g.ID == NVLSID {
			n = 1 // the head only
		}
		ranks := make([]int, n)
		for i := range ranks {
			ranks[i] = e.sys.Nodes[gpus[t.order[c*e.gpus+i]]].GPU.Rank
		}
		g.Intra = append(g.Intra, ranks)
		inter := s.ends
		if e.inter && !s.fallback {
			inter[0] = e.sys.Nodes[nets[t.in[c]]].Ident
			inter[1] = e.sys.Nodes[nets[t.out[c]]].Ident
		}
		g.Inter = append(g.Inter, inter)
	}
	return g
}
