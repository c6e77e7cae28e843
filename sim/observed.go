package sim

import (
	"github.com/simccl/simccl/sim/internal/host"
	"github.com/simccl/simccl/units"
)

var _ Observer = (*tracer)(nil)

// Kernel implements Observer: the last kernel opens the trace.
func (t *tracer) Kernel(k int32, at units.Time) { t.begins(k, at) }

// Piece implements Observer.
func (t *tracer) Piece(ev PieceEvent) {
	gi := ev.Group
	switch ev.Point {
	case PieceBegun:
		t.starts(gi)
	case PieceJoined:
		t.joins(gi, ev.Work, ev.Rate)
	case PieceMoved:
		t.moves(gi)
	case PieceRead:
		t.received(gi)
	case PieceHeld:
		t.holds(gi)
	case PieceTurned:
		t.turns(gi)
	case PieceDone:
		t.done(gi)
	}
}

// Sent implements Observer.
func (t *tracer) Sent(ev SendEvent) {
	p := &t.groups[ev.Group].piece
	switch ev.As {
	case SentHeld:
		p = &t.groups[ev.Group].held
	case SentInTurn:
		p = t.turned(ev.Group, ev.Place, ev.Of)
	}
	t.sends(ev.Group, ev.Conn, ev.Piece, p, ev.First, ev.Bytes, ev.Chunk, ev.End)
}

// Phase implements Observer.
func (t *tracer) Phase(group int32) { t.ended(group) }

// Block implements Observer.
func (t *tracer) Block(sm int32, at units.Time) { t.kernel(sm, at) }

// Waits implements Observer.
func (t *tracer) Waits() bool { return t.waits() }

// Step implements host.Observer.
func (t *tracer) Step(ev host.StepEvent) {
	switch ev.Point {
	case host.StepPosted:
		t.wires(ev.Conn, ev.Step)
	case host.StepBegun:
		t.leaves(ev.Conn, ev.Step)
	case host.PartCrossed:
		t.crosses(ev.QP)
	case host.StepLanded:
		t.lands(ev.Conn, ev.Step)
	case host.StepArrived:
		t.arrives(ev.Conn, ev.Step, ev.At, ev.Raised)
	case host.StepAcked:
		t.acks(ev.Conn, ev.Step, ev.At)
	case host.StepOffered:
		t.offers(ev.Conn, ev.Step, ev.At)
	}
}

// Reduction implements host.Observer.
func (t *tracer) Reduction(ev host.ReductionEvent) {
	switch ev.Point {
	case host.SidePosted:
		t.contributes(ev.Batch)
	case host.AllPosted:
		t.whole(ev.Side)
	case host.SumBegun:
		t.leavesFor(ev.Rail)
	case host.SumLanded:
		t.landsFor(ev.Rail)
	case host.SumAcked:
		t.sums(ev.Batch, ev.Step, ev.At)
	case host.SumTaken:
		t.takesFrom(ev.Batch, ev.Step, ev.At, ev.Raised)
	case host.RoomOpened:
		t.makesRoom(ev.Batch, ev.Step, ev.At)
	}
}

// Thread implements host.Observer.
func (t *tracer) Thread(thread int32, until units.Time) { t.serves(thread, until) }

// Delayed implements host.Observer.
func (t *tracer) Delayed(l *host.QueuePair, wait units.Time) { t.waited(l, wait) }
