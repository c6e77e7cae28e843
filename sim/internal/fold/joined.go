package fold

import (
	"slices"

	"github.com/simccl/simccl/internal/variates"
	"github.com/simccl/simccl/plan"
)

// Of a kernel of several operations each has its symmetry. Ranks' parts of a channel are
// equivalent where they are so in every operation that has the channel: what a thread group
// waits for, of its own operation or of the one before it, is equivalent then, too. The scan
// proves that for links and threads, which the operations share.
//
// No quotient of them is near: channels that two operations share have parts of another
// size, of two kinds, and taken for the others they make such a kernel up to 40 % faster.

// joinedSymmetries are those that all operations of a kernel have.
func (c *Config) joinedSymmetries(p *plan.Plan) []*symmetry {
	var each [][]*symmetry
	most := 0
	for _, m := range p.Members() {
		if m.Plan.ConnsPerRank() == 0 || m.Plan.Split.Striped {
			return nil // sends and receives, and what the network reduces
		}
		of := c.symmetries(m.Plan)
		if len(of) == 0 {
			return nil
		}
		each, most = append(each, of), max(most, len(of))
	}
	var out []*symmetry
	for i := range most {
		var own []*symmetry
		for _, of := range each {
			own = append(own, of[min(i, len(of)-1)])
		}
		if s := joint(p, own); s != nil {
			out = append(out, s)
		}
	}
	return out
}

// joint is the symmetry that has those of all operations; nil where one of them does not quite
// hold, or nodes represent others in one that do not in another.
func joint(p *plan.Plan, own []*symmetry) *symmetry {
	out := &symmetry{home: own[0].home, heads: own[0].heads, equivalent: true}
	for _, s := range own {
		if !s.equivalent || !slices.Equal(s.home, out.home) || s.heads != out.heads {
			return nil
		}
	}
	for _, s := range own {
		s.lay()
	}
	members, _ := members(p)
	lo, hi := channelRange(members)
	known := map[variates.Multiset]int32{}
	for ch := lo; ch <= hi; ch++ {
		of := make([]int32, p.Comm.NRanks)
		for r := range of {
			var f variates.Multiset
			some := false
			for i := range members {
				if m := &members[i]; ch >= m.Lo && ch <= m.Hi {
					f.Add(uint64(i)<<32|uint64(own[i].of[ch-m.Lo][r]), 1)
					some = true
				}
			}
			if !some {
				return nil
			}
			at, ok := known[f]
			if !ok {
				at = int32(len(out.reps))
				known[f] = at
				out.reps = append(out.reps, part{-1, -1})
			}
			rep := &out.reps[at]
			if node := p.Comm.NodeOf[r]; out.home[node] == node && (rep.rank < 0 || out.heads > 0 &&
				rep.channel == ch && p.Comm.NVLS[ch].HeadIndex[r] == 0) {
				*rep = part{ch, int32(r)}
			}
			of[r] = at
		}
		out.of = append(out.of, of)
	}
	return out.compact()
}
