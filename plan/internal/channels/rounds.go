package channels

import (
	"cmp"
	"math/bits"
	"slices"

	"github.com/simccl/simccl/connect"
	"github.com/simccl/simccl/plan"
)

// WorksPerBatch is the largest number of transfers of a batch (NCCL_MAX_DEV_WORK_P2P_PER_BATCH,
// device.h:435).
const WorksPerBatch = 8

// Rounds is the order in which ranks exchange data: in each round a rank sends to one peer and receives from
// another (init.cc:768-838).
//
// The ranks of all nodes, one after the other, are divided into equal groups. Groups at one distance exchange
// data for size rounds, within which the ranks of a group alternate. With 2 nodes of 2 ranks and groups of 2,
// rank 0 sends to 0, 1, 2 and 3 in rounds 0 to 3, rank 3 to 3, 2, 1 and 0.
type Rounds struct {
	c       *connect.Layout
	size    int     // ranks of a group
	groups  int     // number of groups
	groupOf []int32 // first group of each node
	rankAt  []int32 // group·size + place → rank
	order   []int32 // distance of groups → its index in the order of distances
	delta   []int32 // index in that order → distance of groups
	// The same for places in a group, if these are not in order.
	placeOrder, placeDelta []int32
	flat                   bool // all ranks are one group, by rank
}

// NewRounds divides nodes into equal groups and lists the distances between groups by the triangular numbers
// modulo a power of two, which visit each once: for 6 groups 0, 1, 3, then (6 and 7 are skipped) 2, 5, 4.
func NewRounds(c *connect.Layout, params plan.Params) Rounds {
	s := Rounds{c: c}
	if c.Rules.Connect.P2PHalves {
		s.byHalves()
		return s
	}
	if c.Rules.Connect.P2PGroup == 0 {
		s.byNode()
		return s
	}
	for _, ranks := range c.NodeRanks {
		s.size = max(s.size, len(ranks))
	}
	if c.NNodes > 1 {
		s.size = int(max(params.P2PGroupSize.Or(int64(cmp.Or(c.Rules.Plan.P2PBatch, WorksPerBatch))), 1))
	}
	for _, ranks := range c.NodeRanks {
		if len(ranks)%s.size != 0 || len(ranks) < s.size {
			s.size = connect.GCD(s.size, len(ranks))
		}
	}
	for _, ranks := range c.NodeRanks {
		s.groupOf = append(s.groupOf, int32(len(s.rankAt)/s.size))
		s.rankAt = append(s.rankAt, ranks...)
	}
	s.groups = len(s.rankAt) / s.size
	s.order, s.delta = triangular(s.groups)
	return s
}

// byNode makes a group of every node, or one of all ranks if nodes differ in size, and orders the places
// within a group by triangular numbers as well (init.cc:1093 of v2.27.7).
func (s *Rounds) byNode() {
	s.size = len(s.c.NodeRanks[0])
	for _, ranks := range s.c.NodeRanks {
		s.flat = s.flat || len(ranks) != s.size
		s.groupOf = append(s.groupOf, int32(len(s.groupOf)))
		s.rankAt = append(s.rankAt, ranks...)
	}
	if s.flat {
		s.size = s.c.NRanks
		slices.Sort(s.rankAt)
	}
	s.groups = s.c.NRanks / s.size
	s.order, s.delta = triangular(s.groups)
	s.placeOrder, s.placeDelta = triangular(s.size)
}

// Len returns the number of rounds.
func (s *Rounds) Len() int { return s.groups * s.size }

// triangular lists the distances among n by the triangular numbers modulo a power of two, and the index of
// each distance in that list.
func triangular(n int) (order, delta []int32) {
	order = make([]int32, n)
	pow2 := 1 << bits.Len(uint(n-1))
	for i, d := 0, 0; i < pow2; {
		if d < n {
			order[d] = int32(len(delta))
			delta = append(delta, int32(d))
		}
		i++
		d = (d + i) & (pow2 - 1)
	}
	return order, delta
}

// slot returns the rank's group and its place in the group.
func (s *Rounds) slot(rank int32) (group, place int) {
	if s.flat {
		return 0, int(rank)
	}
	local := int(s.c.LocalRank[rank])
	return int(s.groupOf[s.c.NodeOf[rank]]) + local/s.size, local % s.size
}

// Of returns the round in which src sends to dst.
func (s *Rounds) Of(src, dst int32) int {
	sg, sp := s.slot(src)
	dg, dp := s.slot(dst)
	d := (dg - sg + s.groups) % s.groups
	place := (dp - sp + s.size) % s.size
	if s.placeOrder != nil {
		place = int(s.placeOrder[place])
	}
	return int(s.order[d])*s.size + place
}

// Peers returns the rank to which a rank sends and the one from which it receives in a round; -1: none.
func (s *Rounds) Peers(rank int32, round int) (to, from int32) {
	g, pl := s.slot(rank)
	d := int(s.delta[round/s.size])
	k := round % s.size
	if s.placeDelta != nil {
		k = int(s.placeDelta[k])
	}
	at := func(group, place int) int32 { return s.rankAt[group*s.size+place] }
	return at((g+d)%s.groups, (pl+k)%s.size), at((g-d+s.groups)%s.groups, (pl-k+s.size)%s.size)
}

// ChannelBase returns the channel of the first part of a round's transfers (channel.h:19): rounds are spread
// over the channels in bit-reversed order, so that consecutive rounds and the parts of their transfers use
// different channels. With 8 channels rounds 0 to 3 begin on 0, 4, 2 and 6.
func (s *Rounds) ChannelBase(round int) int {
	base, size, batch := round, s.size, WorksPerBatch
	if s.flat {
		size = s.c.MaxLocalRanks
	}
	if p := &s.c.Rules.Plan; p.PartsInTurn {
		size, batch = s.c.MaxLocalRanks, p.Batch(s.c.Arch(), s.c.NNodes)
	}
	if s.c.NNodes > 1 {
		base = round/size*((size+batch-1)/batch) + round%size/batch
	}
	if s.c.Rules.Connect.P2PReverseParts {
		return base & 0xff
	}
	n := bits.Len(uint(s.c.P2PChannels - 1))
	if n == 0 {
		return 0
	}
	return int(uint8(bits.Reverse64(uint64(base)) >> (64 - n)))
}

// Channel returns the channel of a part of the transfer from src to dst in a round (device.h:273).
func (s *Rounds) Channel(src, dst int32, round, part int) int32 {
	if s.c.Rules.Connect.P2PHalves {
		return int32((s.mirrored(s.distance(src, dst)) + part) & (s.c.P2PChannels - 1))
	}
	if s.c.Rules.Plan.PartsInTurn && s.c.NNodes <= 2 {
		return int32((s.ChannelBase(round)*s.c.P2PChannelsPerPeer + part) & (s.c.P2PChannels - 1))
	}
	if n := bits.Len(uint(s.c.P2PChannels - 1)); s.c.Rules.Connect.P2PReverseParts && n > 0 {
		part = int(bits.Reverse64(uint64(part)) >> (64 - n))
	}
	return int32((s.ChannelBase(round) + part) & (s.c.P2PChannels - 1))
}
