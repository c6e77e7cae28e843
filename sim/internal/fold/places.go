package fold

import (
	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/internal/connect"
	"github.com/simccl/simccl/plan"
	"github.com/simccl/simccl/sim/internal/chance"
	"github.com/simccl/simccl/topo"
)

// Where rings change NICs, every second node runs through its GPUs in the opposite
// direction (connect.cc, crossNic), and of an odd number of nodes two neighbours do not.
// No node is like the next then, but a GPU of each ring still is like that in the same
// place of any other: the k-th behind the one at which the ring enters its node. All GPUs
// have all places on one ring or another, so of a ring over equal nodes one passage
// through a node represents all. Where a channel has less to do than the others, GPUs
// differ by the place that they have on it, and passages by the GPUs on their way:
// they are told apart until those of one colour have the same GPUs, and passages of the
// same colours before and behind them.

// passage is the way of a ring through a node.
type passage struct {
	path         []int32 // ranks, from the one at which the ring enters
	before, next int32   // the passages that it comes from and leads to
}

// passagesOf lists the passages of all rings of a plan, channel by channel in the order
// of nodes; nil where a ring comes through a node several times, or stays in one.
func passagesOf(p *plan.Plan) []passage {
	c, all := p.Comm, []passage(nil)
	per := len(c.NodeRanks[0])
	for k := range p.Split.NChannels {
		base := int32(len(all))
		all = append(all, make([]passage, c.NNodes)...)
		if !walkPassages(c, c.Channels[p.Split.ChannelLo+k].Ring, base, per, all) {
			return nil
		}
	}
	return all
}

// walkPassages fills in those of a ring, which begin at base.
func walkPassages(c *connect.Layout, ring []connect.RingLinks, base int32, per int, all []passage) bool {
	for r := range ring {
		node := c.NodeOf[r]
		if before := c.NodeOf[ring[r].Prev]; before != node {
			s := &all[base+node]
			if s.path != nil {
				return false
			}
			s.before = base + before
			for at := int32(r); c.NodeOf[at] == node && len(s.path) < per; at = ring[at].Next {
				s.path = append(s.path, at)
			}
			s.next = base + c.NodeOf[ring[s.path[len(s.path)-1]].Next]
		}
	}
	for node := range int32(c.NNodes) {
		if s := &all[base+node]; len(s.path) != per || s.next == base+node {
			return false
		}
	}
	return true
}

// mostPassages is of how many passages places are looked at.
const mostPassages = 1 << 12

// placeSymmetries takes together the ranks in equal places of rings over equal nodes: exact
// is what the parts of the operation and the blocks of data leave equal, near takes all for
// equal. Nil where there is none.
func placeSymmetries(p *plan.Plan, systems []*topo.System) (exact, near *symmetry) {
	c := p.Comm
	if f := p.Req.Func; f != coll.AllReduce && f != coll.AllGather && f != coll.ReduceScatter || c.NNodes < 2 ||
		c.NNodes*p.Split.NChannels > mostPassages || !equalNodes(c, systems) {
		return nil, nil
	}
	all := passagesOf(p)
	if all == nil {
		return nil, nil
	}
	s := inPlaces(p, all, make([]int32, len(all)))
	unaligned := s.judgeRing(p)
	if s.equivalent {
		return s, nil
	}
	if s.unequal || unaligned && alignedParts(p) {
		exact = inPlaces(p, all, coloured(p, all))
		exact.equivalent = true
	}
	if unaligned {
		return exact, nil
	}
	s.unequal = false
	s.margin, s.approximation, s.few = 0.03, "all chunks and channels are treated as equivalent", true
	return exact, s
}

// inPlaces takes together the ranks in equal places of passages of equal colours.
func inPlaces(p *plan.Plan, all []passage, colour []int32) *symmetry {
	c := p.Comm
	s := &symmetry{home: allNodes(c)}
	first := map[int32]int32{} // by colour, in reps
	for i := range all {
		k := i / c.NNodes
		if i%c.NNodes == 0 {
			s.of = append(s.of, make([]int32, c.NRanks))
		}
		at, ok := first[colour[i]]
		if !ok {
			at = int32(len(s.reps))
			first[colour[i]] = at
			for _, r := range all[i].path {
				s.reps = append(s.reps, part{int32(p.Split.ChannelLo + k), r})
			}
		}
		for place, r := range all[i].path {
			s.of[k][r] = at + int32(place)
		}
	}
	return s
}

// coloured tells passages apart by the parts that their channels do, and by those of the
// GPUs on their way, where the blocks of these begin, and by the passages before and behind them,
// until no more differ.
func coloured(p *plan.Plan, all []passage) []int32 {
	c := p.Comm
	kind, n := partKinds(p)
	colour := make([]int32, len(all))
	for i := range all {
		colour[i] = kind[partOf(p, i/c.NNodes)]
	}
	gpus := make([]fingerprint, c.NRanks)
	for {
		for r := range gpus {
			gpus[r] = fingerprint{}
			if p.Req.Func != coll.AllReduce { // blocks belong to ranks
				gpus[r].add(1<<60|uint64(int64(r)*p.Req.BlockStep()%grain(p.Req.Proto)), 1)
			}
		}
		for i := range all {
			for place, r := range all[i].path {
				gpus[r].add(uint64(colour[i])<<32|uint64(place), 1)
			}
		}
		known := map[fingerprint]int32{}
		next := make([]int32, len(all))
		for i := range all {
			s := &all[i]
			var f fingerprint
			f.add(uint64(colour[i]), 1)
			f.add(1<<40|uint64(colour[s.before]), 1)
			f.add(2<<40|uint64(colour[s.next]), 1)
			for place, r := range s.path {
				f.add(chance.Mix(gpus[r].a^uint64(place+1)<<48), 1)
			}
			if _, ok := known[f]; !ok {
				known[f] = int32(len(known))
			}
			next[i] = known[f]
		}
		colour = next
		if int32(len(known)) == n {
			return colour
		}
		n = int32(len(known))
	}
}
