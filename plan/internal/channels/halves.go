package channels

import (
	"math/bits"
	"slices"
)

// byHalves makes a group of every node, with as many places as the largest node has ranks, rounded up to a
// power of two or a multiple of eight. Places without a rank exchange nothing (init.cc:1305-1340 of v2.21.5).
func (s *Rounds) byHalves() {
	s.size = s.c.MaxLocalRanks
	if s.size < WorksPerBatch {
		s.size = 1 << bits.Len(uint(s.size-1))
	} else {
		s.size = (s.size + WorksPerBatch - 1) / WorksPerBatch * WorksPerBatch
	}
	for node, ranks := range s.c.NodeRanks {
		s.groupOf = append(s.groupOf, int32(node))
		s.rankAt = append(s.rankAt, ranks...)
		for range s.size - len(ranks) {
			s.rankAt = append(s.rankAt, -1)
		}
	}
	s.groups = s.c.NNodes
	s.order, s.delta = halves(s.groups)
}

// halves lists the distances among n nodes, starting from 0 and from n/2, in both directions: for 8 nodes 0,
// 4, 1, 7, 3, 5, 2, 6. order is the index of each distance in that list.
func halves(n int) (order, delta []int32) {
	for d := 0; d <= n/4; d++ {
		for _, next := range [...]int{d, (n - d) % n, n/2 - d, (n - (n/2 - d)) % n} {
			if !slices.Contains(delta, int32(next)) {
				delta = append(delta, int32(next))
			}
		}
	}
	order = make([]int32, n)
	for i, d := range delta {
		order[d] = int32(i)
	}
	return order, delta
}

// distance returns the number that selects the channels of a pair of ranks: between nodes, the distance of
// the nodes plus one for every eight ranks between the local ranks; on one node, the distance of the ranks
// (include/channel.h:15 of v2.21.5).
func (s *Rounds) distance(src, dst int32) int {
	c, most := s.c, s.c.MaxLocalRanks
	step := (most + int(c.LocalRank[dst]) - int(c.LocalRank[src])) % most
	if c.NNodes == 1 {
		return step
	}
	return (c.NNodes+int(c.NodeOf[dst])-int(c.NodeOf[src]))%c.NNodes + step/WorksPerBatch
}

// mirrored returns the channel of a distance: its bits in reverse order (graph/paths.cc:773 of v2.21.5).
func (s *Rounds) mirrored(distance int) int {
	n := bits.Len(uint(s.c.P2PChannels - 1))
	return int(bits.Reverse64(uint64(distance&(s.c.P2PChannels-1))) >> (64 - n))
}
