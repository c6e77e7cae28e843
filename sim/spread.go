package sim

import (
	"slices"

	"github.com/simccl/simccl/plan"
	"github.com/simccl/simccl/units"
)

// NCCL's scatter and gather primitives of NVLS handle the pieces of all heads
// in one step: they wait for the room or the data of every head, and post or
// release all of them at the end (prims_simple.h:494, ScatterGatherOp). In a
// plan that step is one op a head; a turn puts them together again.

// turnEnd is a piece of a turn that is not posted or released yet.
type turnEnd struct {
	conn  int32
	chunk int32
	bytes units.Bytes
}

// spreads reports whether the group's ops come in turns over the heads.
func (g *group) spreads() bool {
	return g.spread > 1 && (g.pr.Role == plan.RoleScatter || g.pr.Role == plan.RoleGather)
}

// awaits are the connections that the op waits for, of its own ones: those of
// all heads where a turn begins.
func (g *group) awaits(own []int32) []int32 {
	if g.spreads() && len(own) > 0 && g.op.Chunk%g.spread == 0 {
		return g.heads
	}
	return own
}

// layHeads lists the connections of every group whose ops come in turns.
func (e *engine) layHeads() {
	var cur plan.Cursor
	var op plan.Op
	for gi := range e.groups {
		g := &e.groups[gi]
		if !g.spreads() {
			continue
		}
		g.job.plan.OpenInto(&cur, &g.pr)
		for cur.Next(&op) && op.Step == 0 {
			if g.job.fold != nil {
				g.job.fold.Ends(g, &op)
			}
			for _, id := range slices.Concat(op.From, op.To) {
				if !slices.Contains(g.heads, id) {
					g.heads = append(g.heads, id)
				}
			}
		}
	}
}

// holdTurn keeps a scattered piece back until the last of its turn is through.
func (e *engine) holdTurn(gi int32, h *heldSlice, t units.Time) {
	g := &e.groups[gi]
	for _, id := range h.peers() {
		g.turn = append(g.turn, turnEnd{id, h.chunk, h.bytes})
		if e.obs != nil {
			e.obs.Piece(PieceEvent{Point: PieceTurned, Group: gi})
		}
	}
	if h.chunk%g.spread < g.spread-1 {
		return
	}
	for i, x := range g.turn {
		k := e.conns[x.conn].posted
		at := e.deliver(x.conn, t)
		if e.obs != nil {
			e.obs.Sent(SendEvent{As: SentInTurn, Group: gi, Conn: x.conn, Piece: k, First: true, Bytes: x.bytes, Chunk: x.chunk, End: at, Place: i, Of: len(g.turn)})
		}
	}
	g.turn = g.turn[:0]
}

// releaseTurn returns the room of a gathered turn at its end.
func (e *engine) releaseTurn(g *group, t units.Time) {
	for _, id := range g.op.From {
		g.turn = append(g.turn, turnEnd{conn: id})
	}
	if g.op.Chunk%g.spread < g.spread-1 {
		return
	}
	for _, x := range g.turn {
		e.conns[x.conn].taken++
		e.giveCredit(x.conn, t)
	}
	g.turn = g.turn[:0]
}
