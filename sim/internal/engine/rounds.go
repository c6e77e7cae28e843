package engine

import (
	"slices"

	"github.com/simccl/simccl/plan"
	"github.com/simccl/simccl/units"
)

// NCCL's scatter and gather primitives of NVLS handle the pieces of all heads
// in one step: they wait for the room or the data of every head, and post or
// release all of them at the end (prims_simple.h:494, ScatterGatherOp). In a
// plan that step is one op a head; a round puts them together again.

// roundPiece is a piece of a round that is not posted or released yet.
type roundPiece struct {
	conn  int32
	chunk int32
	bytes units.Bytes
}

// inRounds reports whether the group's ops come in rounds over the heads.
func (g *Group) inRounds() bool { return g.rounds }

// Awaits are the connections that the op waits for, of its own ones: those of
// all heads where a round begins.
func (g *Group) Awaits(own []int32) []int32 {
	if g.inRounds() && len(own) > 0 && g.Op.Chunk%g.perRound == 0 {
		return g.heads
	}
	return own
}

// LayHeads lists the connections of every group whose ops come in rounds.
func (e *Engine) LayHeads() {
	var cur plan.Cursor
	var op plan.Op
	for gi := range e.Groups {
		g := &e.Groups[gi]
		if !g.inRounds() {
			continue
		}
		g.Job.Plan.OpenInto(&cur, &g.Program)
		for cur.Next(&op) && op.Step == 0 {
			if g.Job.Fold != nil {
				g.Job.Fold.Ends(g, &op)
			}
			for _, id := range slices.Concat(op.From, op.To) {
				if !slices.Contains(g.heads, id) {
					g.heads = append(g.heads, id)
				}
			}
		}
	}
}

// holdRound keeps a scattered piece back until the last of its round is through.
func (e *Engine) holdRound(gi int32, h *heldSlice, t units.Time) {
	g := &e.Groups[gi]
	for _, id := range h.peers() {
		g.round = append(g.round, roundPiece{id, h.chunk, h.bytes})
		if e.Observer != nil {
			e.Observer.Piece(PieceEvent{Point: PieceInRound, Group: gi})
		}
	}
	if h.chunk%g.perRound < g.perRound-1 {
		return
	}
	for i, x := range g.round {
		k := e.Conns[x.conn].posted
		at := e.deliver(x.conn, t)
		if e.Observer != nil {
			e.Observer.Sent(SendEvent{As: SentInRound, Group: gi, Conn: x.conn, Piece: k, First: true,
				Bytes: x.bytes, Chunk: x.chunk, End: at, Place: i, Of: len(g.round)})
		}
	}
	g.round = g.round[:0]
}

// releaseRound returns the room of a gathered round at its end.
func (e *Engine) releaseRound(g *Group, t units.Time) {
	for _, id := range g.Op.From {
		g.round = append(g.round, roundPiece{conn: id})
	}
	if g.Op.Chunk%g.perRound < g.perRound-1 {
		return
	}
	for _, x := range g.round {
		e.Conns[x.conn].Taken++
		e.giveCredit(x.conn, t)
	}
	g.round = g.round[:0]
}
