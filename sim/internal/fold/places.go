package fold

import (
	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/plan"
	"github.com/simccl/simccl/topo"
)

// Where rings change NICs, every second node runs through its GPUs in the opposite
// direction (connect.cc, crossNic), and of an odd number of nodes two neighbours do not.
// No node is like the next then, but a GPU of each ring still is like that in the same
// place of any other: the k-th behind the one at which the ring enters its node. All GPUs
// have all places on one ring or another, so of a ring over equal nodes one passage
// through a node represents all. Where a channel has less to do than the others, GPUs
// differ by the place that they have on it, and passages by the GPUs on their way:
// they are distinguished until those of one colour have the same GPUs, and passages of the
// same colours before and behind them.

// mostPassages bounds the passages for which placeSymmetries is tried: colouring them takes rounds over all.
const mostPassages = 1 << 12

// placeSymmetries takes together the ranks in equal places of rings over equal nodes: exact
// is what the parts of the operation and the blocks of data leave equal, near takes all for
// equal. Nil where there is none.
func placeSymmetries(p *plan.Plan, systems []*topo.System) (exact, near *symmetry) {
	c := p.Comm
	if f := p.Req.Func; f != coll.AllReduce && f != coll.AllGather && f != coll.ReduceScatter ||
		c.NNodes < 2 ||
		c.NNodes*p.Split.NChannels > mostPassages || !equalNodes(c, systems) {
		return nil, nil
	}
	all := passagesOf(p)
	if all == nil {
		return nil, nil
	}
	s := mergePositions(p, all, make([]int32, len(all)))
	unaligned := s.judgeRing(p)
	if s.equivalent {
		return s, nil
	}
	if s.unequal || unaligned && alignedParts(p) {
		exact = mergePositions(p, all, colourPassages(p, all))
		exact.equivalent = true
	}
	if unaligned {
		return exact, nil
	}
	s.unequal = false
	s.margin, s.approximation, s.few = Within3, "all chunks and channels are treated as equivalent", true
	return exact, s
}

// mergePositions takes together the ranks in equal places of passages of equal colours.
func mergePositions(p *plan.Plan, all []passage, colour []int32) *symmetry {
	c := p.Comm
	s := &symmetry{home: nodes(c)}
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
			for _, r := range all[i].Path {
				s.reps = append(s.reps, part{int32(p.Split.ChannelLo + k), r})
			}
		}
		for place, r := range all[i].Path {
			s.of[k][r] = at + int32(place)
		}
	}
	return s
}
