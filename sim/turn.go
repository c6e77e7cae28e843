package sim

import (
	"slices"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/connect"
	"github.com/simccl/simccl/plan"
	"github.com/simccl/simccl/topo"
)

// turnSymmetry takes equal nodes together for send and receive: the schedule
// knows how far apart groups of ranks are, not which they are (init.cc:768), so
// what one node does to the next but one every node does. What remains is one
// node, which sends to all others and receives what they would send it.
// Operations with a root have a node that is unlike the others.
func turnSymmetry(p *plan.Plan, systems []*topo.System) *symmetry {
	c := p.Comm
	if p.Req.Func != coll.AllToAll && p.Req.Func != coll.SendRecv || c.NNodes < 2 {
		return nil
	}
	per := len(c.NodeRanks[0])
	for i, ranks := range c.NodeRanks {
		if systems[i] != systems[0] || len(ranks) != per {
			return nil
		}
		for j, r := range ranks {
			if int(r) != i*per+j {
				return nil // the next rank is not at the same place of every node
			}
		}
	}
	s := &symmetry{home: make([]int32, c.NNodes), turned: true, alike: true}
	// Where a peer's part begins in the buffer decides how fast it is read: from
	// node to node alike only where a node's parts are whole lines.
	if bytes := p.Req.Count * int64(p.Req.Type.Size()); p.Req.Func == coll.AllToAll && bytes*int64(per)%128 != 0 {
		s.alike = false
		if bytes*int64(per)%16 == 0 { // alike in a pack of 16 bytes, as which they are copied or not
			s.margin, s.leaves = 0.08, "the parts of all nodes are taken to begin alike in a line of 128 bytes"
		}
	}
	// Messages of sockets wait for each other as one thread comes to them, which
	// one node's quotient tells nearly, not exactly.
	if slices.ContainsFunc(systems[0].Of(topo.NET), func(id topo.NodeID) bool { return systems[0].Nodes[id].Net.Sockets }) {
		s.alike, s.margin, s.leaves = false, 0.08, "proxy threads are taken to come to all nodes' sockets alike"
	}
	places := make([][]int32, c.P2PChannels) // channel, local rank → place in reps
	for ch := range places {
		places[ch] = make([]int32, per)
	}
	for local := range per {
		s.seats(p, places, local)
	}
	for _, place := range places {
		of := make([]int32, c.NRanks)
		for r := range of {
			of[r] = place[c.LocalRank[r]]
		}
		s.of = append(s.of, of)
	}
	return s
}

// seats adds the parts that one rank of the first node has of the channels.
// Where it has none, the place is that of a part that it has.
func (s *symmetry) seats(p *plan.Plan, places [][]int32, local int) {
	first, last := int32(len(s.reps)), int32(-1)
	for _, pr := range p.Programs(p.Comm.NodeRanks[0][local]) { // in the order of channels
		if pr.Channel != last {
			s.reps = append(s.reps, seat{pr.Channel, pr.Rank})
			last = pr.Channel
		}
	}
	for ch := range places {
		places[ch][local] = first
	}
	for i := first; i < int32(len(s.reps)); i++ {
		places[s.reps[i].channel][local] = i
	}
}

// turn names a connection of send and receive by its ends as they are where the
// sender's node has been turned to the first place.
type turn struct{ src, dst, channel int32 }

func turnOf(c *connect.Comm, pc *plan.Conn) turn {
	n, per := int32(c.NRanks), int32(len(c.NodeRanks[0]))
	by := pc.Src / per * per
	return turn{pc.Src - by, (pc.Dst - by + n) % n, pc.Channel}
}

// layTurns numbers the connections of the first node's ranks: what they send,
// each with the group that receives it on every node.
func (q *quotient) layTurns() {
	e := q.e
	q.turns = map[turn]int32{}
	for gi := range e.groups {
		g := &e.groups[gi]
		if g.pr.Role != plan.RoleSend {
			continue
		}
		pc := q.peer(g)
		c := int32(len(e.conns))
		q.turns[turnOf(q.plan.Comm, &pc)] = c
		e.conns = append(e.conns, conn{snd: int32(gi), rcv: -1, net: -1, depth: plan.FIFOSteps / int64(max(1, g.pr.SliceSteps)), far: e.farOf(&pc)})
		q.model = append(q.model, pc)
		g.outs = append(g.outs, c)
	}
	met := 0
	for gi := range e.groups {
		g := &e.groups[gi]
		if g.pr.Role != plan.RoleRecv {
			continue
		}
		pc := q.peer(g)
		c, ok := q.turns[turnOf(q.plan.Comm, &pc)]
		if !ok || e.conns[c].rcv >= 0 {
			q.exact = false
			continue
		}
		met++
		e.conns[c].rcv = int32(gi)
		g.ins = append(g.ins, c)
	}
	q.exact = q.exact && met == len(e.conns)
}

// peer returns the connection of a group that only sends or only receives.
func (q *quotient) peer(g *group) plan.Conn {
	var cur plan.Cursor
	var op plan.Op
	q.plan.OpenInto(&cur, &g.pr)
	if !cur.Next(&op) {
		return plan.Conn{Src: -1, Dst: -1}
	}
	for _, id := range op.From {
		return q.plan.Conn(id)
	}
	return q.plan.Conn(op.To[0])
}
