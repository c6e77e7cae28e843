package fold

import (
	"slices"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/plan"
	"github.com/simccl/simccl/sim/param"
)

// nodeSymmetry takes nodes that are equivalent together where the network reduces:
// what a node gives to it and takes from it is at no other node. One node of
// each kind remains: equal ones, and those with the same faults. That is exact
// where all do the same; of what is gathered or scattered every node has a block
// of its own, which it gives or takes at another time.
func (x *Config) nodeSymmetry(p *plan.Plan) *symmetry {
	c := p.Comm
	if len(p.NetGroups()) == 0 {
		return nil
	}
	s := &symmetry{home: make([]int32, c.NNodes), equivalent: p.Req.Func == coll.AllReduce}
	if !s.equivalent {
		s.margin, s.approximation = Within5,
			"nodes are assumed to gather or scatter their parts at the same time as the first"
	}
	slow := x.Slow
	var kinds []int32 // a node of each
	for node := range s.home {
		k := slices.IndexFunc(kinds, func(other int32) bool {
			return x.equivalentNodes(p, slow, int32(node), other)
		})
		if k < 0 {
			k = len(kinds)
			kinds = append(kinds, int32(node))
		}
		s.home[node] = kinds[k]
	}
	if len(kinds) == c.NNodes {
		return nil
	}
	place := make([]int32, c.NRanks) // on a channel
	seats := int32(0)
	for _, node := range kinds {
		for _, r := range c.NodeRanks[node] {
			place[r] = seats
			seats++
		}
	}
	for ch := p.Split.ChannelLo; ch <= p.Split.ChannelHi; ch++ {
		of := make([]int32, c.NRanks)
		for r := range of {
			of[r] = int32(len(s.of))*seats + place[c.NodeRanks[s.home[c.NodeOf[r]]][c.LocalRank[r]]]
		}
		s.of = append(s.of, of)
		for _, node := range kinds {
			for _, r := range c.NodeRanks[node] {
				s.reps = append(s.reps, part{int32(ch), r})
			}
		}
	}
	return s
}

// equivalentNodes reports whether the ranks of two nodes, in their order, do the same
// with the same means.
func (x *Config) equivalentNodes(p *plan.Plan, slow []float64, a, b int32) bool {
	c := p.Comm
	ra, rb := c.NodeRanks[a], c.NodeRanks[b]
	if x.Systems[a] != x.Systems[b] || len(ra) != len(rb) {
		return false
	}
	for i := range ra {
		if slow != nil && slow[ra[i]] != slow[rb[i]] {
			return false
		}
	}
	if !slices.Equal(x.portFaults(c.HostOf[ra[0]]), x.portFaults(c.HostOf[rb[0]])) {
		return false
	}
	same := func(r, o int32) bool { // of ranks of the two nodes, or neighbours beyond them
		if r < 0 || int(r) >= c.NRanks || o < 0 || int(o) >= c.NRanks {
			return r == o
		}
		return c.NodeOf[r] == a && c.NodeOf[o] == b && c.LocalRank[r] == c.LocalRank[o]
	}
	for _, g := range p.NetGroups() {
		if !same(g.Ranks[a], g.Ranks[b]) {
			return false
		}
	}
	switch p.Req.Algo {
	case coll.CollNetChain:
		for _, up := range c.CollNet.ChainUp {
			for i := range ra {
				if !same(up[ra[i]], up[rb[i]]) {
					return false
				}
			}
		}
	case coll.CollNetDirect:
		return slices.EqualFunc(c.CollNet.Order[a], c.CollNet.Order[b], func(o, q []int32) bool {
			return slices.EqualFunc(o, q, same)
		})
	}
	return true
}

// portFaults lists the faults of a host's ports, as if they were the first's.
func (x *Config) portFaults(host int32) (out []param.Fault) {
	for _, f := range x.Faults {
		if f.Rank < 0 && f.Host == int(host) {
			f.Host = 0
			out = append(out, f)
		}
	}
	return out
}
