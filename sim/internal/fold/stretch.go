package fold

import (
	"slices"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/connect"
	"github.com/simccl/simccl/plan"
	"github.com/simccl/simccl/sim/param"
	"github.com/simccl/simccl/topo"
)

// A ring over unequal nodes, or with a fault at some, has long stretches of equal
// nodes. Its ranks wait for each other, so its pace is that of its slowest part,
// and what a stretch adds is the time of its hops. shortenRing leaves the middle
// of long stretches out: the ranks that remain run all their ops, which are as many
// as the whole ring has, on a ring that is shorter.

// edge is how many nodes are simulated at either end of a stretch, and behind the middle of a chain. It is
// even, for rings that run through every second node the opposite direction.
const edge = 4

// omittedRun is a run of equal nodes along a ring; those at places from to up to
// before its tail are left out.
type omittedRun struct{ from, tail int }

// shortenRing shortens the ring of an operation in which all ranks do the same;
// nil where it has no long stretch of equal nodes, or where channels visit nodes in
// different orders.
func (x *Config) shortenRing(p *plan.Plan) *symmetry {
	switch p.Req.Func {
	case coll.AllReduce, coll.AllGather, coll.ReduceScatter:
	default:
		return nil
	}
	c := p.Comm
	order := nodeOrder(p, p.Split.ChannelLo)
	for ch := p.Split.ChannelLo + 1; ch <= p.Split.ChannelHi; ch++ {
		if ring := c.Channels[ch].Ring; &ring[0] != &c.Channels[ch-1].Ring[0] &&
			!slices.Equal(nodeOrder(p, ch), order) {
			return nil
		}
	}
	if len(order) != c.NNodes {
		return nil
	}
	order, cuts := x.stretches(p, order)
	if len(cuts) == 0 {
		return nil
	}
	s := &symmetry{home: nodes(c), margin: Within3, approximation: "all channels are treated as the " +
		"slowest, and long stretches of equal nodes of the ring are shortened to 8 nodes"}
	from := nodes(c) // node → the node that its ranks' ends are taken from
	for _, cut := range cuts {
		for at := cut.from; at < cut.tail; at++ {
			node, like := order[at], order[cut.from-2+(at-cut.from)%2]
			switch at {
			case cut.from: // what the head's last node sends to
				like = order[cut.tail]
				s.home[node] = like
			case cut.tail - 1: // what the tail's first node receives from
				s.home[node] = like
			default:
				s.home[node] = -1
			}
			from[node] = like
		}
	}
	if one := x.worstChannel(p); one >= 0 {
		s.mergeChannels(p, one, from)
		return s
	}
	first, _ := copies(p)
	for ch, same := range first {
		if same < ch {
			s.of = append(s.of, s.of[same])
			continue
		}
		s.of = append(s.of, s.stretchParts(c, int32(p.Split.ChannelLo+ch), from))
	}
	return s
}

// stretchParts adds a channel's parts of the nodes that remain, and returns the place
// of every rank's.
func (s *symmetry) stretchParts(c *connect.Layout, ch int32, from []int32) []int32 {
	of := make([]int32, c.NRanks)
	for r := range of {
		if node := c.NodeOf[r]; from[node] == node {
			of[r] = int32(len(s.reps))
			s.reps = append(s.reps, part{ch, int32(r)})
		}
	}
	for r := range of {
		if node := c.NodeOf[r]; from[node] != node {
			of[r] = of[c.NodeRanks[from[node]][c.LocalRank[r]]]
		}
	}
	return of
}

// worstChannel is the channel that no other one is slower than: one that uses the
// port at fault, or any where ports are well; -1 where several ports are at fault,
// and where a rank is slow, which slows down all its channels, each at another place.
func (x *Config) worstChannel(p *plan.Plan) int32 {
	if x.Slow != nil {
		return -1
	}
	at := slices.IndexFunc(x.Faults, func(f param.Fault) bool { return f.Rank < 0 })
	if at < 0 {
		return 0
	}
	f := &x.Faults[at]
	if slices.ContainsFunc(x.Faults[at+1:], func(o param.Fault) bool {
		return o.Rank < 0 && (o.Host != f.Host || o.Net != f.Net)
	}) {
		return -1
	}
	for k := range int32(p.Split.NChannels) {
		if portUser(p, k, f) >= 0 {
			return k
		}
	}
	return 0
}

// mergeChannels takes all channels for one of the split, which differ in where they
// enter a node, and adds the parts of the nodes that remain.
func (s *symmetry) mergeChannels(p *plan.Plan, one int32, from []int32) {
	c := p.Comm
	own := s.stretchParts(c, int32(p.Split.ChannelLo)+one, from)
	// by node and place on the ring within it, as entered: the rank on the channel
	like := make([]int32, c.NNodes*c.MaxLocalRanks)
	per := int32(c.MaxLocalRanks)
	along(c, p.Split.ChannelLo+int(one), func(r, place int32) { like[c.NodeOf[r]*per+place] = r })
	for k := range p.Split.NChannels {
		if k > 0 && &c.Channels[p.Split.ChannelLo+k].Ring[0] == &c.Channels[p.Split.ChannelLo+k-1].Ring[0] {
			s.of = append(s.of, s.of[k-1])
			continue
		}
		of := make([]int32, c.NRanks)
		along(c, p.Split.ChannelLo+k, func(r, place int32) { of[r] = own[like[c.NodeOf[r]*per+place]] })
		s.of = append(s.of, of)
	}
}

// along calls do for each rank of a channel's ring, with its index since the ring entered its node.
func along(c *connect.Layout, ch int, do func(rank, place int32)) {
	ring := c.Channels[ch].Ring
	start := int32(0)
	for c.NodeOf[ring[start].Prev] == c.NodeOf[start] {
		start = ring[start].Prev
	}
	place, r := int32(0), start
	for range c.NRanks {
		do(r, place)
		next := ring[r].Next
		if place++; c.NodeOf[next] != c.NodeOf[r] {
			place = 0
		}
		r = next
	}
}

// stretches turns the order of a ring's nodes so that it begins where a stretch does,
// and lists the stretches that are longer than what is simulated of them.
func (x *Config) stretches(p *plan.Plan, order []int32) ([]int32, []omittedRun) {
	n := len(order)
	kind := make([]nodeKind, n)
	for i, node := range order {
		kind[i] = x.kindOf(p, node)
	}
	equal := func(i, j int) bool { return kind[i%n].equal(&kind[j%n]) }
	begin := 0
	for begin < n && equal(begin, begin+n-1) {
		begin++
	}
	if begin == n {
		return order, nil // all are equal: another symmetry's matter
	}
	order = slices.Concat(order[begin:], order[:begin])
	kind = slices.Concat(kind[begin:], kind[:begin])
	var out []omittedRun
	for i := 0; i < n; {
		j := i + 1
		// Rings may run through every second node another way, and with an odd number
		// of nodes two neighbours the same way.
		for j < n && equal(i, j) && (j < i+2 || sameWithin(p, order[j], order[j-2])) {
			j++
		}
		if left := j - i - 2*edge; left >= 2 {
			out = append(out, omittedRun{i + edge, i + edge + left - left%2})
		}
		i = j
	}
	return order, out
}

// nodeKind is what of a node decides how fast its ranks and ports are.
type nodeKind struct {
	system *topo.System
	ports  []param.Fault
	slow   []float64 // by rank of the node, nil without stragglers
}

func (x *Config) kindOf(p *plan.Plan, node int32) nodeKind {
	ranks := p.Comm.NodeRanks[node]
	k := nodeKind{system: x.Systems[node], ports: x.portFaults(p.Comm.HostOf[ranks[0]])}
	if x.Slow != nil {
		for _, r := range ranks {
			k.slow = append(k.slow, x.Slow[r])
		}
	}
	return k
}

func (k *nodeKind) equal(o *nodeKind) bool {
	return k.system == o.system && slices.Equal(k.ports, o.ports) && slices.Equal(k.slow, o.slow)
}

// sameWithin reports whether all channels' rings run through two nodes equally.
func sameWithin(p *plan.Plan, a, b int32) bool {
	c := p.Comm
	ra, rb := c.NodeRanks[a], c.NodeRanks[b]
	if len(ra) != len(rb) {
		return false
	}
	for ch := p.Split.ChannelLo; ch <= p.Split.ChannelHi; ch++ {
		ring := c.Channels[ch].Ring
		for i := range ra {
			na, nb := ring[ra[i]].Next, ring[rb[i]].Next
			within := c.NodeOf[na] == a
			if within != (c.NodeOf[nb] == b) || c.LocalRank[na] != c.LocalRank[nb] {
				return false
			}
		}
	}
	return true
}
