package fold

import (
	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/connect"
	"github.com/simccl/simccl/plan"
	"github.com/simccl/simccl/sim/internal/host"
	"github.com/simccl/simccl/topo"
)

// A symmetry proposes which programs of a plan are equivalent. What it proposes is
// proven, or refused, when the quotient is laid out (quotient.go).
type symmetry struct {
	reps []part    // the programs that represent the others
	of   [][]int32 // channel of the split, rank → its place in reps
	// home names, by node, the node whose links represent its own; -1 where its
	// links are left out.
	home []int32
	// heads is the number of heads of an NVLS channel where they are taken for
	// one, else 0.
	heads int32
	// equivalent is set where programs of one place can differ in structure only:
	// chunks, parts and addresses agree.
	equivalent bool
	// unequal is set where they would, but for channels whose parts of the operation
	// differ in size (byParts).
	unequal bool
	// turning is set where equal nodes would, but for channels whose rings have other
	// orders: blocks are aligned from node to node, not from rank to rank (byRings).
	turning bool
	// margin is by how much, as a part of the time, the quotient was seen to be
	// off where the symmetry does not quite hold, and leaves what is left out
	// then; 0 where such a quotient says nothing.
	margin        float64
	approximation string
	few           bool          // what is near is so of few ranks, too
	skipped       *omittedChain // the stretch of a chain that is left out, nil without
	// rotated is set for send and receive, whose connections are known by how far
	// apart their nodes are, and with within their places in a node.
	// step is how many of a node's ranks remain then.
	rotated, within bool
	step            int32
	// list fills in reps and of where that is put off until they are needed, for
	// that takes a while; nil where they are there. There will be so many parts.
	list  func()
	parts int
}

// part is a rank's part of a channel.
type part struct{ channel, rank int32 }

// symmetries lists those worth trying for a plan, the smallest quotient first.
// Faults leave those under which no node represents another.
func (x *Config) symmetries(p *plan.Plan) []*symmetry {
	if p.Req.Count == 0 || p.Comm.NRanks < 2 {
		return nil
	}
	if p.Members() != nil {
		return x.joinedSymmetries(p)
	}
	well := len(x.Faults) == 0
	var out []*symmetry
	put := func(s *symmetry) {
		if s != nil && host.Staggers(p) {
			s.lay()
			s = s.apart(p)
		}
		if s != nil {
			out = append(out, s)
		}
	}
	add := func(s *symmetry) {
		if s != nil {
			put(s.nearByParts(p))
			put(s.byParts(p))
			put(s.byRings(p))
		}
	}
	if p.ConnsPerRank() == 0 {
		if well {
			for _, s := range rotations(p, x.Systems) {
				add(s)
			}
		}
		return out
	}
	switch p.Req.Algo {
	case coll.Ring:
		x.rings(p, add)
	case coll.CollNetDirect, coll.CollNetChain:
		add(x.nodeSymmetry(p))
	case coll.Tree, coll.NVLS, coll.NVLSTree:
		if len(p.NetGroups()) > 0 {
			add(x.nodeSymmetry(p))
			break
		}
		if t := treesOf(p); t != nil {
			t.propose(x, add)
		}
	case coll.PAT:
		if well {
			add(patSymmetry(p, x.Systems))
		}
	}
	return out
}

// rings adds the symmetries of rings.
func (x *Config) rings(p *plan.Plan, add func(*symmetry)) {
	var near *symmetry
	well := len(x.Faults) == 0
	if well {
		nodes := ringSymmetry(p, x.Systems)
		add(nodes)
		if x.Fabric != nil {
			add(longerRing(p, x.Systems, x.period(p)))
		}
		if nodes == nil || !nodes.equivalent {
			var exact *symmetry
			exact, near = placeSymmetries(p, x.Systems)
			add(exact)
		}
	}
	if s := copiesOf(p); s.parts < p.Split.NChannels*p.Comm.NRanks {
		add(s)
	}
	add(near)
	if well {
		add(chainSymmetry(p))
	}
	add(x.shortenRing(p))
}

// judge decides, for a symmetry that holds but for the channels' parts of the operation, whether these are
// equal too (equivalent) or differ in size (unequal: byParts keeps them apart).
func (s *symmetry) judge(p *plan.Plan) {
	s.equivalent = equalParts(p)
	s.unequal = !s.equivalent && p.Split.NChannels > 2 && !p.Split.Striped && alignedParts(p)
}

// ringSymmetry takes equal nodes together, and channels that differ only in
// where they enter a node: what remains is one node's stretch of one ring, or
// two nodes', whose last rank sends to its first. Chains have two ends.
func ringSymmetry(p *plan.Plan, systems []*topo.System) *symmetry {
	if p.Req.Func != coll.AllReduce && p.Req.Func != coll.AllGather && p.Req.Func != coll.ReduceScatter {
		return nil
	}
	c := p.Comm
	if !equalNodes(c, systems) {
		return nil
	}
	for period := 1; period <= min(2, c.NNodes); period++ {
		if c.NNodes%period == 0 {
			if s := ringBy(p, int32(period)); s != nil {
				return s
			}
		}
	}
	return nil
}

// longerRing is the quotient by a period that a network has.
func longerRing(p *plan.Plan, systems []*topo.System, period int32) *symmetry {
	if p.Req.Func != coll.AllReduce && p.Req.Func != coll.AllGather && p.Req.Func != coll.ReduceScatter ||
		period < 2 || !equalNodes(p.Comm, systems) {
		return nil
	}
	return ringBy(p, period)
}

func equalNodes(c *connect.Layout, systems []*topo.System) bool {
	for i := range systems {
		if systems[i] != systems[0] || len(c.NodeRanks[i]) != len(c.NodeRanks[0]) {
			return false
		}
	}
	return true
}

// ringBy tries the quotient by every period-th node: rings that change NICs
// run through odd nodes in the opposite direction (connect.cc, crossNic).
func ringBy(p *plan.Plan, period int32) *symmetry {
	c := p.Comm
	per := int32(len(c.NodeRanks[0]))
	s := &symmetry{home: make([]int32, c.NNodes), margin: Within3,
		approximation: "all chunks and channels are treated as equivalent"}
	for n := range s.home {
		s.home[n] = int32(n) % period
	}
	for ch := p.Split.ChannelLo; ch <= p.Split.ChannelHi; ch++ {
		if k := len(s.of); k > 0 && &c.Channels[ch].Ring[0] == &c.Channels[ch-1].Ring[0] {
			s.of = append(s.of, s.of[k-1])
			continue
		}
		order := quotientOrder(c, ch, period)
		if order == nil {
			return nil
		}
		place := make([]int32, len(order))
		for at, i := range order {
			place[i] = int32(at)
			if len(s.of) == 0 {
				s.reps = append(s.reps, part{int32(ch), c.NodeRanks[i/per][i%per]})
			}
		}
		of := make([]int32, c.NRanks)
		for r := range of {
			of[r] = place[c.NodeOf[r]%period*per+c.LocalRank[r]]
		}
		s.of = append(s.of, of)
	}
	if s.few = !s.judgeRing(p); !s.few {
		s.turning = int64(per*period)*p.Req.BlockStep()%int64(grain(p.Req.Proto)) == 0 && alignedParts(p)
	}
	return s
}

// judgeRing sets equivalent, or unequal, of rings that cut all blocks equally; unaligned is set
// where blocks are not aligned.
func (s *symmetry) judgeRing(p *plan.Plan) (unaligned bool) {
	cycle := p.Turns()
	if p.Req.Func == coll.AllReduce {
		cycle = 2*cycle - 1
	}
	any := func(*plan.Program) bool { return true }
	switch {
	case !eachPart(p, any, func(pr *plan.Program) bool { return equalSizes(p, pr, cycle) }):
	case eachPart(p, any, func(pr *plan.Program) bool { return alignedOps(p, pr) }):
		s.judge(p)
	default:
		return p.Req.Func != coll.AllReduce
	}
	return false
}

// quotientOrder returns the order in which a channel's ring visits the ranks
// of a period of nodes, numbered node by node, from where it enters the first;
// nil where periods differ.
func quotientOrder(c *connect.Layout, ch int, period int32) []int32 {
	per := int32(len(c.NodeRanks[0]))
	n := per * period
	next := make([]int32, n)
	for i := range next {
		next[i] = -1
	}
	at := func(r int32) int32 { return c.NodeOf[r]%period*per + c.LocalRank[r] }
	entry := int32(-1)
	for r := range c.Channels[ch].Ring {
		to := c.Channels[ch].Ring[r].Next
		from, target := at(int32(r)), at(to)
		if next[from] >= 0 && next[from] != target {
			return nil
		}
		next[from] = target
		if c.NodeOf[r] == c.NodeOf[to] {
			continue
		}
		if target < per && entry >= 0 && entry != target {
			return nil
		} else if target < per {
			entry = target
		}
	}
	o := make([]int32, 0, n)
	seen := make([]bool, n)
	for i := max(0, entry); int32(len(o)) < n; i = next[i] {
		if i < 0 || seen[i] {
			return nil
		}
		seen[i] = true
		o = append(o, i)
	}
	return o
}

// copiesOf takes together only channels that are copies of each other: what is
// left of a ring's symmetry where ranks differ, as in a chain.
func copiesOf(p *plan.Plan) *symmetry {
	c := p.Comm
	first, distinct := copies(p)
	s := &symmetry{home: nodes(c), parts: distinct * c.NRanks}
	s.judge(p)
	s.list = func() {
		s.reps = make([]part, 0, s.parts)
		for k, same := range first {
			if same < k {
				s.of = append(s.of, s.of[same])
				continue
			}
			of := make([]int32, c.NRanks)
			for r := range of {
				of[r] = int32(len(s.reps))
				s.reps = append(s.reps, part{int32(p.Split.ChannelLo + k), int32(r)})
			}
			s.of = append(s.of, of)
		}
	}
	return s
}

// lay fills in reps and of, which symmetries with many parts put off until they are tried.
func (s *symmetry) lay() {
	if s.list != nil {
		s.list()
		s.list = nil
	}
}

// patSymmetry takes all ranks for one: in PAT every rank does to those at
// distance 2^d what the others do to theirs.
func patSymmetry(p *plan.Plan, systems []*topo.System) *symmetry {
	c := p.Comm
	for i := range systems {
		if systems[i] != systems[0] || len(c.NodeRanks[i]) != 1 {
			return nil
		}
	}
	s := &symmetry{home: make([]int32, c.NNodes), reps: []part{{int32(p.Split.ChannelLo), 0}},
		equivalent: equalParts(p) && alignedOps(p, &p.Programs(0)[0])}
	of := make([]int32, c.NRanks)
	for range p.Split.NChannels {
		s.of = append(s.of, of)
	}
	return s
}
