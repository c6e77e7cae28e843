package fold

import (
	"slices"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/connect"
	"github.com/simccl/simccl/plan"
	"github.com/simccl/simccl/sim/internal/engine"
	"github.com/simccl/simccl/topo"
)

// rotation takes equal nodes together for send and receive: the schedule
// knows how far apart groups of ranks are, not which they are (init.cc:768), so
// what one node does to the next but one every node does. What remains is one
// node, which sends to all others and receives what they would send it.
// Operations with a root have a node that is unlike the others.
//
// Within a group of ranks that take turns, too, the schedule knows only how far
// apart they are, and where a step of ranks further blocks are aligned as here, those are
// equivalent. Where a node is one group and its GPUs reach each other and
// their NICs equally well, as behind NVSwitches, one rank of the node remains,
// or a step of them (within): it sends to rank 0 of node 3 what its neighbour sends to rank 1.
func rotation(p *plan.Plan, systems []*topo.System, within bool) *symmetry {
	c := p.Comm
	if p.Req.Func != coll.AllToAll && p.Req.Func != coll.SendRecv || c.NNodes < 2 && !within {
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
	s := &symmetry{home: make([]int32, c.NNodes), rotated: true, equivalent: true, within: within, step: 1}
	if within && (p.Req.Func != coll.AllToAll || per < 2 || c.NNodes > 1 &&
		p.Req.Params.P2PGroupSize.Or(8)%int64(per) != 0) {
		return nil // the ranks of a node alone are one group
	}
	s.alignParts(p, per)
	// Messages of sockets wait for each other as one thread serves them, which
	// one node's quotient reproduces nearly, not exactly.
	if slices.ContainsFunc(systems[0].Of(topo.NET), func(id topo.NodeID) bool {
		return systems[0].Nodes[id].Net.Sockets
	}) {
		s.equivalent, s.margin, s.approximation = false, Within8,
			"proxy threads are assumed to poll all nodes' sockets at the same times"
	}
	s.list = func() { s.listParts(p, per) }
	return s
}

// transfers returns the least number of sends of the quotient (Proposal.Transfers).
func (s *symmetry) transfers(p *plan.Plan) int64 {
	n := int64(p.Comm.MaxLocalRanks)
	if s.within {
		n = int64(s.step)
	}
	if p.Req.Func == coll.AllToAll {
		n *= int64(p.Comm.NRanks)
	}
	return n
}

// listParts lists the parts of what remains: of the first rank, or of all ranks of
// the first node.
func (s *symmetry) listParts(p *plan.Plan, per int) {
	c, within := p.Comm, s.within
	places := make([][]int32, c.P2PChannels) // channel, local rank → place in reps
	for ch := range places {
		places[ch] = make([]int32, per)
	}
	for local := range per {
		if within && local >= int(s.step) {
			for ch := range places {
				places[ch][local] = places[ch][local%int(s.step)]
			}
			continue
		}
		s.addParts(p, places, local)
	}
	for _, place := range places {
		of := make([]int32, c.NRanks)
		for r := range of {
			of[r] = place[c.LocalRank[r]]
		}
		s.of = append(s.of, of)
	}
}

// alignParts checks whether all merged parts have the same alignment in the buffer:
// where a peer's part begins decides how fast it is read. From node to node that
// is equal where a node's parts are whole packs of 16 bytes, or with LL lines of 128,
// from rank to rank where every part is, or those of a step of ranks together are.
func (s *symmetry) alignParts(p *plan.Plan, per int) {
	if p.Req.Func != coll.AllToAll {
		return
	}
	bytes, line := p.Req.BlockStep(), int64(16)
	whose := "ranks"
	if !s.within {
		bytes *= int64(per)
		whose = "nodes"
	}
	if bytes%128 != 0 {
		for _, pr := range p.Programs(0) {
			line = max(line, grain(pr.Proto))
		}
	}
	if s.within && bytes%16 != 0 {
		for int(s.step) < per && bytes*int64(s.step)%line != 0 {
			s.step *= 2
		}
		if s.equivalent = int(s.step) < per && per%int(s.step) == 0; !s.equivalent {
			return
		}
		bytes *= int64(s.step)
	}
	s.equivalent = bytes%line == 0
	if !s.equivalent && bytes%16 == 0 { // aligned equally to packs of 16 bytes, as which they are copied
		s.margin, s.approximation = Within8, "the parts of all "+whose+
			" are assumed to have the same offset in a line of 128 bytes"
	}
}

// rotations lists the quotients by turning nodes: an exact one before one that is
// near. Where from rank to rank parts are whole packs, but not of one offset in a line, some
// ranks further they are.
func rotations(p *plan.Plan, systems []*topo.System) []*symmetry {
	rank, node := rotation(p, systems, true), rotation(p, systems, false)
	if rank == nil || rank.equivalent {
		return []*symmetry{rank, node}
	}
	out := []*symmetry{node}
	if per := int32(len(p.Comm.NodeRanks[0])); rank.margin > 0 {
		further, bytes := *rank, p.Req.BlockStep()
		for further.step < per && bytes*int64(further.step)%128 != 0 {
			further.step *= 2
		}
		if further.step < per && per%further.step == 0 {
			further.equivalent, further.margin = true, 0
			further.list = func() { further.listParts(p, int(per)) }
			out = append(out, &further)
		}
	}
	return append(out, rank)
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
// sender's node has been turned to the first place, and with within the sender to
// the first place of its node.
type offset struct{ src, dst, channel int32 }

func (s *symmetry) offsetOf(c *connect.Layout, pc *plan.Conn) offset {
	n, per := int32(c.NRanks), int32(len(c.NodeRanks[0]))
	by := pc.Src / per * per
	src, dst := pc.Src-by, (pc.Dst-by+n)%n
	if s.within {
		turn := src / s.step * s.step
		src, dst = src-turn, dst/per*per+(dst%per-turn+per)%per
	}
	return offset{src, dst, pc.Channel}
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
		q.byOffset[q.offsetOf(q.plan.Comm, &pc)] = c
		e.Conns = append(e.Conns, e.ConnOf(&pc, &g.Program, int32(gi), -1))
		q.model = append(q.model, pc)
		own := g.Folded()
		own.Outs = append(own.Outs, c)
	}
	met := 0
	for gi := range e.Groups {
		g := &e.Groups[gi]
		if g.Program.Role != plan.RoleRecv {
			continue
		}
		pc := q.peer(g)
		c, ok := q.byOffset[q.offsetOf(q.plan.Comm, &pc)]
		if !ok || e.Conns[c].Rcv >= 0 {
			q.meets = false
			continue
		}
		met++
		e.Conns[c].Rcv = int32(gi)
		own := g.Folded()
		own.Ins = append(own.Ins, c)
	}
	q.meets = q.meets && met == len(e.Conns)
	q.exact = q.exact && q.meets
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
