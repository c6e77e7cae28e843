package fold

import (
	"slices"

	"github.com/simccl/simccl/plan"
)

// Of a kernel of several operations each has its symmetry. Ranks' parts of a channel are
// equivalent where they are so in every operation that has the channel: what a thread group
// waits for, of its own operation or of the one before it, is equivalent then, too. The scan
// proves that for links and threads, which the operations share.

// memberConns says which connections are those of one of a kernel's operations.
type memberConns struct {
	base   int32 // the first one's id
	lo, hi int32 // channels
	per    int32 // ids of a rank on a channel
	at     int32 // place of the first among all that a rank has on a channel
}

// membersOf lists them, of a plan of one operation that alone, and says how many ids a rank has
// on a channel in all.
func membersOf(p *plan.Plan) (all []memberConns, per int32) {
	one := func(p *plan.Plan, base int32) {
		m := memberConns{base, int32(p.Split.ChannelLo), int32(p.Split.ChannelHi), p.ConnsPerRank(), per}
		all, per = append(all, m), per+m.per
	}
	if p.Members() == nil {
		one(p, 0)
		return all, per
	}
	base := int32(0)
	for _, m := range p.Members() {
		one(m.Plan, base)
		base += m.Plan.NumConns()
	}
	return all, per
}

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
		var parts []*symmetry
		for _, of := range each {
			parts = append(parts, of[min(i, len(of)-1)])
		}
		if s := joint(p, parts); s != nil {
			out = append(out, s)
		}
	}
	return out
}

// joint is the symmetry that has those of all operations; nil where nodes represent others in
// one that do not in another.
func joint(p *plan.Plan, parts []*symmetry) *symmetry {
	out := &symmetry{home: parts[0].home, heads: parts[0].heads, equivalent: true, approximation: parts[0].approximation}
	near := true
	for _, s := range parts {
		if !slices.Equal(s.home, out.home) || s.heads != out.heads || s.skipped != nil {
			return nil
		}
		out.equivalent, near = out.equivalent && s.equivalent, near && s.margin > 0
		out.margin = max(out.margin, s.margin)
	}
	if !near {
		out.margin = 0
	}
	if !out.equivalent && !near {
		return nil
	}
	for _, s := range parts {
		s.lay()
	}
	members, _ := membersOf(p)
	lo, hi := channelsOf(members)
	known := map[fingerprint]int32{}
	for ch := lo; ch <= hi; ch++ {
		of := make([]int32, p.Comm.NRanks)
		for r := range of {
			var f fingerprint
			some := false
			for i := range members {
				if m := &members[i]; ch >= m.lo && ch <= m.hi {
					f.add(uint64(i)<<32|uint64(parts[i].of[ch-m.lo][r]), 1)
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
			if node := p.Comm.NodeOf[r]; out.home[node] == node && (rep.rank < 0 || out.heads > 0 && rep.channel == ch && p.Comm.NVLS[ch].HeadIndex[r] == 0) {
				*rep = part{ch, int32(r)}
			}
			of[r] = at
		}
		out.of = append(out.of, of)
	}
	return out.compact()
}

// channelsOf is the first and the last channel of several operations.
func channelsOf(members []memberConns) (lo, hi int32) {
	lo, hi = members[0].lo, members[0].hi
	for i := range members {
		lo, hi = min(lo, members[i].lo), max(hi, members[i].hi)
	}
	return lo, hi
}
