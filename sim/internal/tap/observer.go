package tap

import (
	"github.com/simccl/simccl/sim/internal/engine"
	"github.com/simccl/simccl/sim/internal/host"
	"github.com/simccl/simccl/units"
)

var _ engine.Observer = (*Tracer)(nil)

// Kernel implements Observer: the last kernel opens the trace.
func (t *Tracer) Kernel(k int32, at units.Time) { t.begins(k, at) }

// Piece implements Observer.
func (t *Tracer) Piece(ev engine.PieceEvent) {
	gi := ev.Group
	switch ev.Point {
	case engine.PieceBegun:
		t.starts(gi)
	case engine.PieceJoined:
		t.joins(gi, ev.Work, ev.Rate)
	case engine.PieceMoved:
		t.moves(gi)
	case engine.PieceRead:
		t.received(gi)
	case engine.PieceHeld:
		t.holds(gi)
	case engine.PieceInRound:
		t.joinsRound(gi)
	case engine.PieceDone:
		t.done(gi)
	}
}

// Sent implements Observer.
func (t *Tracer) Sent(ev engine.SendEvent) {
	p := &t.groups[ev.Group].piece
	switch ev.As {
	case engine.SentHeld:
		p = &t.groups[ev.Group].held
	case engine.SentInRound:
		p = t.inRound(ev.Group, ev.Place, ev.Of)
	}
	t.sends(ev.Group, ev.Conn, ev.Piece, p, ev.First, ev.Bytes, ev.Chunk, ev.End)
}

// Phase implements Observer.
func (t *Tracer) Phase(group int32) { t.ended(group) }

// Block implements Observer.
func (t *Tracer) Block(sm int32, at units.Time) { t.kernel(sm, at) }

// Waits implements Observer.
func (t *Tracer) Waits() bool { return t.waits() }

// Step implements host.Observer.
func (t *Tracer) Step(ev host.StepEvent) {
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
func (t *Tracer) Reduction(ev host.ReductionEvent) {
	switch ev.Point {
	case host.SidePosted:
		t.contributes(ev.Batch)
	case host.AllPosted:
		t.whole(ev.Side)
	case host.SumBegun:
		t.leavesFor(ev.Rail)
	case host.SumLanded:
		t.traceReduction(ev.Rail)
	case host.SumAcked:
		t.sums(ev.Batch, ev.Step, ev.At)
	case host.SumTaken:
		t.takesFrom(ev.Batch, ev.Step, ev.At, ev.Raised)
	case host.RoomOpened:
		t.makesRoom(ev.Batch, ev.Step, ev.At)
	}
}

// Thread implements host.Observer.
func (t *Tracer) Thread(thread int32, until units.Time) { t.serves(thread, until) }

// Delayed implements host.Observer.
func (t *Tracer) Delayed(l *host.QueuePair, wait units.Time) { t.waited(l, wait) }
