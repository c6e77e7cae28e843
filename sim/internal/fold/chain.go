package fold

import (
	"math"
	"slices"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/connect"
	"github.com/simccl/simccl/plan"
	"github.com/simccl/simccl/units"
)

// Nodes of a long chain that are simulated: those behind the root, by when every
// node does what the one before it does, later by the same time; at the end there
// are edge. Both are even, for rings that run through every second node the
// opposite direction. Of reduce more: with fewer, 16 MiB on 28 to 48 nodes came out
// up to 4 % slower than they are, for 1 %.
const (
	broadcastHead = 12
	reduceHead    = 20
)

// The last 8 nodes of the head show on each channel whether those in the middle follow each other at equal
// times, but for a part of them: steady. Over 66 to 216 nodes of nine machines times were off by up to 5 %
// where they do. Else channels drift apart, and the time from node to node may fall for 50 to 100 nodes, so
// that the middle takes driftsLess of its time less: broadcasts of 40,000,000 to 256 Mi bytes over 90 HGX
// H800 without multicast, along whose head it differs by 5 to 6 %, came out 14 to 28 % too slow. Where the
// middle is a short part of the whole, that is little. Such a chain may be off by 15 % at most.
const (
	steady     = 0.03
	driftsLess = 0.3
)

// omittedChain is a chain of nodes of which the middle is not simulated. What happens in the tail is put off
// by the time that the middle takes:
//
//	root  1 … head-1 | head … tail-1 | tail … n-1
//	<-- simulated -->  <- left out ->  <- simulated, as if right behind head-1 ->
type omittedChain struct {
	order []int32 // nodes along the chain, from the root's
	place []int32 // node → its place there
	head  int32   // nodes before the stretch
	tail  int32   // first place behind it
	// waits has, by channel, those for whose end the next operation waits before it begins on it.
	waits [][]int32
	// drifts is set by later where times from node to node differ at the end of the head.
	drifts bool
}

// chainSymmetry leaves a stretch of equal nodes out of a broadcast's or
// reduce's chain; nil where there is none, or where channels visit nodes in
// different orders.
func chainSymmetry(p *plan.Plan) *symmetry {
	c := p.Comm
	n, head := int32(c.NNodes), int32(broadcastHead)
	switch p.Req.Func {
	case coll.Broadcast:
	case coll.Reduce:
		head = reduceHead
	default:
		return nil
	}
	if n < head+edge+3 {
		return nil
	}
	k := &omittedChain{head: head, order: nodeOrder(p, p.Split.ChannelLo), place: make([]int32, n),
		tail: n - edge - n%2, waits: waits(p)}
	for ch := p.Split.ChannelLo; ch <= p.Split.ChannelHi; ch++ {
		if o := nodeOrder(p, ch); len(o) != len(k.order) || !slices.Equal(o, k.order) {
			return nil
		}
	}
	if len(k.order) != int(n) {
		return nil
	}
	for at, node := range k.order {
		if k.place[node] = int32(at); len(c.NodeRanks[node]) != len(c.NodeRanks[0]) {
			return nil
		}
	}
	s := &symmetry{home: make([]int32, n), skipped: k, margin: Within8, few: true,
		approximation: "nodes in the middle of the chain are assumed to behave as those before them"}
	for node := range s.home {
		switch at := k.place[node]; {
		case at < k.head || at >= k.tail, at == k.head, at == k.tail-1:
			s.home[node] = k.represents(int32(node))
		default:
			s.home[node] = -1
		}
	}
	first, _ := copies(p)
	for ch, same := range first {
		if same < ch {
			s.of = append(s.of, s.of[same])
			continue
		}
		s.of = append(s.of, s.chainParts(c, int32(p.Split.ChannelLo+ch)))
	}
	return s
}

// chainParts adds a channel's parts of the simulated nodes to reps, and returns each rank's index in reps.
func (s *symmetry) chainParts(c *connect.Layout, ch int32) []int32 {
	k, of := s.skipped, make([]int32, c.NRanks)
	for r := range of {
		if at := k.place[c.NodeOf[r]]; at < k.head || at >= k.tail {
			of[r] = int32(len(s.reps))
			s.reps = append(s.reps, part{ch, int32(r)})
		}
	}
	for r := range of {
		if at := k.place[c.NodeOf[r]]; at >= k.head && at < k.tail {
			of[r] = of[c.NodeRanks[k.represents(c.NodeOf[r])][c.LocalRank[r]]]
		}
	}
	return of
}

// represents is the node that is simulated for a node: the first behind the stretch
// for its first, the last before it for the others.
func (k *omittedChain) represents(node int32) int32 {
	switch at := k.place[node]; {
	case at < k.head || at >= k.tail:
		return node
	case at == k.head:
		return k.order[k.tail]
	default:
		return k.order[k.head-1]
	}
}

// nodeOrder lists the nodes as a channel's ring visits them from the root's on;
// each is visited once, save the root's own, where the ring ends.
func nodeOrder(p *plan.Plan, ch int) []int32 {
	c := p.Comm
	ring := c.Channels[ch].Ring
	order := []int32{c.NodeOf[p.Req.Root]}
	for r := ring[p.Req.Root].Next; r != p.Req.Root && len(order) <= c.NNodes; r = ring[r].Next {
		if node := c.NodeOf[r]; node != order[len(order)-1] && node != order[0] {
			order = append(order, node)
		}
	}
	return order
}

// waits lists for each channel those for whose end the next operation waits before it begins on it. A kernel
// begins when that before it has ended on all channels; so a rank beside the root, where chains of some
// channels end, holds up those that it begins.
func waits(p *plan.Plan) [][]int32 {
	c := p.Comm
	mates := c.NodeRanks[c.NodeOf[p.Req.Root]]
	n, per := int32(c.NRanks), int32(len(mates))
	begins := func(k int, r int32) bool {
		pos := c.Channels[p.Split.ChannelLo+k].Pos
		return (pos[r]-pos[p.Req.Root]+n)%n < per
	}
	out := make([][]int32, p.Split.NChannels)
	for k := range out {
		for j := range out {
			if slices.ContainsFunc(mates, func(r int32) bool { return begins(k, r) && !begins(j, r) }) {
				out[k] = append(out[k], int32(j))
			}
		}
	}
	return out
}

// last returns by how much the last of several operations ends later, given by how much the chain of each
// channel ends later in one.
// Example: a rank ends channel 0 and begins channel 1, and none ends channel 1 and begins another: the second
// operation waits on channel 1 for the end of the first, and the third for nothing more. In a circle each
// waits for the one before it.
func (k *omittedChain) last(later []units.Time, operations int) units.Time {
	begin := make([]units.Time, len(later))
	for range operations - 1 {
		before := slices.Clone(begin)
		for ch, waits := range k.waits {
			for _, other := range waits {
				begin[ch] = max(begin[ch], before[other]+later[other])
			}
		}
	}
	end := units.Time(0)
	for ch := range later {
		end = max(end, begin[ch]+later[ch])
	}
	return end
}

// later returns how long the middle takes, given when the nodes before it end: for each two nodes as long as
// the last two of the head.
func (k *omittedChain) later(end []units.Time) units.Time {
	two := end[k.head-1] - end[k.head-3] // what two nodes more take
	for at := k.head - 8; at < k.head; at++ {
		k.drifts = k.drifts || math.Abs(float64(end[at]-end[at-2]-two)) > steady*float64(two)
	}
	return two * units.Time(k.tail-k.head) / 2
}

// finish completes the simulated ends of ranks with those of the middle, puts off the tail's, and returns by
// how much the chain's end is later than simulated.
func (k *omittedChain) finish(nodeOf []int32, finish []units.Time) units.Time {
	end := make([]units.Time, len(k.order))
	for r, t := range finish {
		end[k.place[nodeOf[r]]] = max(end[k.place[nodeOf[r]]], t)
	}
	two := end[k.head-1] - end[k.head-3]
	later := func(at int32) units.Time { return two * units.Time(at-k.head+1) / 2 }
	for r := range finish {
		switch at := k.place[nodeOf[r]]; {
		case at >= k.tail, at == 0 && finish[r] > end[1]: // the ring ends where it began
			finish[r] += later(k.tail - 1)
		case at >= k.head:
			finish[r] = end[k.head-1] + later(at)
		}
	}
	return later(k.tail - 1)
}
