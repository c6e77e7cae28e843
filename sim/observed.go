package sim

import (
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

// Step implements NetObserver.
func (t *tracer) Step(ev StepEvent) {
	switch ev.Point {
	case StepPosted:
		t.wires(ev.Conn, ev.Step)
	case StepBegun:
		t.leaves(ev.Conn, ev.Step)
	case PartCrossed:
		t.crosses(ev.Lane)
	case StepLanded:
		t.lands(ev.Conn, ev.Step)
	case StepArrived:
		t.arrives(ev.Conn, ev.Step, ev.At, ev.Raised)
	case StepAcked:
		t.acks(ev.Conn, ev.Step, ev.At)
	case StepOffered:
		t.offers(ev.Conn, ev.Step, ev.At)
	}
}

// Reduction implements NetObserver.
func (t *tracer) Reduction(ev ReductionEvent) {
	switch ev.Point {
	case SidePosted:
		t.contributes(ev.Batch)
	case AllPosted:
		t.whole(ev.Side)
	case SumBegun:
		t.leavesFor(ev.Rail)
	case SumLanded:
		t.landsFor(ev.Rail)
	case SumAcked:
		t.sums(ev.Batch, ev.Step, ev.At)
	case SumTaken:
		t.takesFrom(ev.Batch, ev.Step, ev.At, ev.Raised)
	case RoomOpened:
		t.makesRoom(ev.Batch, ev.Step, ev.At)
	}
}

// Thread implements NetObserver.
func (t *tracer) Thread(thread int32, until units.Time) { t.serves(thread, until) }

// Delayed implements NetObserver.
func (t *tracer) Delayed(l *queuePair, wait units.Time) { t.waited(l, wait) }
