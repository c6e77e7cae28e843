package fold

import (
	"slices"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/connect"
	"github.com/simccl/simccl/internal/variates"
	"github.com/simccl/simccl/plan"
)

// passage is the run of ranks by which a ring passes through one node.
type passage struct {
	Path         []int32 // ranks, from the one at which the ring enters
	Before, Next int32   // the passages that it comes from and leads to
}

// passagesOf lists the passages of all rings of a plan, channel by channel in the order
// of nodes; nil where a ring comes through a node several times, or stays in one.
func passagesOf(p *plan.Plan) []passage {
	c, all := p.Comm, []passage(nil)
	per := len(c.NodeRanks[0])
	for k := range p.Split.NChannels {
		base := int32(len(all))
		all = append(all, make([]passage, c.NNodes)...)
		if !walk(c, c.Channels[p.Split.ChannelLo+k].Ring, base, per, all) {
			return nil
		}
	}
	return all
}

// walk fills in a ring's passages, all[base:base+nodes], and reports whether each node has one of
// all its ranks.
func walk(c *connect.Layout, ring []connect.RingLinks, base int32, per int, all []passage) bool {
	for r := range ring {
		node := c.NodeOf[r]
		if before := c.NodeOf[ring[r].Prev]; before != node {
			s := &all[base+node]
			if s.Path != nil {
				return false
			}
			s.Before = base + before
			for at := int32(r); c.NodeOf[at] == node && len(s.Path) < per; at = ring[at].Next {
				s.Path = append(s.Path, at)
			}
			s.Next = base + c.NodeOf[ring[s.Path[len(s.Path)-1]].Next]
		}
	}
	for node := range int32(c.NNodes) {
		if s := &all[base+node]; len(s.Path) != per || s.Next == base+node {
			return false
		}
	}
	return true
}

// colourPassages distinguishes passages by the parts that their channels do, and by those of the
// GPUs on their way, where the blocks of these begin, and by the passages before and behind them,
// until no more differ.
func colourPassages(p *plan.Plan, all []passage) []int32 {
	c := p.Comm
	kind, n := partKinds(p)
	colour := make([]int32, len(all))
	for i := range all {
		colour[i] = kind[partOf(p, i/c.NNodes)]
	}
	gpus := make([]variates.Multiset, c.NRanks)
	for {
		for r := range gpus {
			gpus[r] = variates.Multiset{}
			if p.Req.Func != coll.AllReduce { // blocks belong to ranks
				gpus[r].Add(1<<60|uint64(int64(r)*p.Req.BlockStep()%grain(p.Req.Proto)), 1)
			}
		}
		for i := range all {
			for place, r := range all[i].Path {
				gpus[r].Add(uint64(colour[i])<<32|uint64(place), 1)
			}
		}
		known := map[variates.Multiset]int32{}
		next := make([]int32, len(all))
		for i := range all {
			s := &all[i]
			var f variates.Multiset
			f.Add(uint64(colour[i]), 1)
			f.Add(1<<40|uint64(colour[s.Before]), 1)
			f.Add(2<<40|uint64(colour[s.Next]), 1)
			for place, r := range s.Path {
				f.Add(variates.Mix(gpus[r].Key()^uint64(place+1)<<48), 1)
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

// copies names for each channel of the split the first that has its ring, and
// says how many rings there are.
func copies(p *plan.Plan) (first []int, distinct int) {
	channels := p.Comm.Channels[p.Split.ChannelLo : p.Split.ChannelHi+1]
	for k := range channels {
		same := slices.IndexFunc(channels[:k], func(o connect.Channel) bool {
			return slices.Equal(o.Ring, channels[k].Ring)
		})
		if same < 0 {
			same = k
			distinct++
		}
		first = append(first, same)
	}
	return first, distinct
}

// nodes lists all nodes: the homes of links where every node's represent themselves.
func nodes(c *connect.Layout) []int32 {
	home := make([]int32, c.NNodes)
	for n := range home {
		home[n] = int32(n)
	}
	return home
}
