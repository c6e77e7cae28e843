package fold

import (
	"slices"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/internal/connect"
	"github.com/simccl/simccl/plan"
	"github.com/simccl/simccl/sim/internal/engine"
	"github.com/simccl/simccl/topo"
)

// rotation takes equal nodes together for send and receive: the schedule
// knows how far apart groups of ranks are, not which they are (init.cc:768), so
// what one node does to the next but one every node does. What remains is one
// node, which sends to all others and receives what they would send it.
// Operations with a root have a node that is unlike the others.
func rotation(p *plan.Plan, systems []*topo.System) *symmetry {
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
	s := &symmetry{home: make([]int32, c.NNodes), rotated: true, equivalent: true}
	// Where a peer's part begins in the buffer decides how fast it is read: from
	// node to node that is equal only where a node's parts are whole lines.
	if bytes := p.Req.Count * int64(p.Req.Type.Size()); p.Req.Func == coll.AllToAll && bytes*int64(per)%128 != 0 {
		s.equivalent = false
		if bytes*int64(per)%16 == 0 { // aligned equally to packs of 16 bytes, as which they are copied
			s.margin, s.approximation = 0.08, "the parts of all nodes are assumed to have the same offset in a line of 128 bytes"
		}
	}
	// Messages of sockets wait for each other as one thread serves them, which
	// one node's quotient reproduces nearly, not exactly.
	if slices.ContainsFunc(systems[0].Of(topo.NET), func(id topo.NodeID) bool { return systems[0].Nodes[id].Net.Sockets }) {
		s.equivalent, s.margin, s.approximation = false, 0.08, "proxy threads are assumed to poll all nodes' sockets at the same times"
	}
	places := make([][]int32, c.P2PChannels) // channel, local rank → place in reps
	for ch := range places {
		places[ch] = make([]int32, per)
	}
	for local := range per {
		s.addParts(p, places, local)
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

// addParts adds the parts that one rank of the first node has of the channels.
// Where it has none, the place is that of a part that it has.
func (s *symmetry) addParts(p *plan.Plan, places [][]int32, local int) {
	first, last := int32(len(s.reps)), int32(-1)
	for _, pr := range p.Programs(p.Comm.NodeRanks[0][local]) { // in the order of channels
		if pr.Channel != last {
			s.reps = append(s.reps, part{pr.Channel, pr.Rank})
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

// offset names a connection of send and receive by its ends as they are where the
// sender's node has been turned to the first place.
type offset struct{ src, dst, channel int32 }

func offsetOf(c *connect.Comm, pc *plan.Conn) offset {
	n, per := int32(c.NRanks), int32(len(c.NodeRanks[0]))
	by := pc.Src / per * per
	return offset{pc.Src - by, (pc.Dst - by + n) % n, pc.Channel}
}

// layOffsets numbers the connections of the first node's ranks: what they send,
// each with the group that receives it on every node.
func (q *Quotient) layOffsets() {
	e := q.e
	q.byOffset = map[offset]int32{}
	for gi := range e.Groups {
		g := &e.Groups[gi]
		if g.Program.Role != plan.RoleSend {
			continue
		}
		pc := q.peer(g)
		c := int32(len(e.Conns))
		q.byOffset[offsetOf(q.plan.Comm, &pc)] = c
		e.Conns = append(e.Conns, engine.Conn{Snd: int32(gi), Rcv: -1, Net: -1, Depth: plan.FIFOSteps / int64(max(1, g.Program.SliceSteps)), Extra: e.ExtraHop(&pc)})
		q.model = append(q.model, pc)
		g.Outs = append(g.Outs, c)
	}
	met := 0
	for gi := range e.Groups {
		g := &e.Groups[gi]
		if g.Program.Role != plan.RoleRecv {
			continue
		}
		pc := q.peer(g)
		c, ok := q.byOffset[offsetOf(q.plan.Comm, &pc)]
		if !ok || e.Conns[c].Rcv >= 0 {
			q.exact = false
			continue
		}
		met++
		e.Conns[c].Rcv = int32(gi)
		g.Ins = append(g.Ins, c)
	}
	q.exact = q.exact && met == len(e.Conns)
}

// peer returns the connection of a group that only sends or only receives.
func (q *Quotient) peer(g *engine.Group) plan.Conn {
	var cur plan.Cursor
	var op plan.Op
	q.plan.OpenInto(&cur, &g.Program)
	if !cur.Next(&op) {
		return plan.Conn{Src: -1, Dst: -1}
	}
	for _, id := range op.From {
		return q.plan.Conn(id)
	}
	return q.plan.Conn(op.To[0])
}
