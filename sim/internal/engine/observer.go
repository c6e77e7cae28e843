package engine

import (
	"github.com/simccl/simccl/sim/internal/host"
	"github.com/simccl/simccl/sim/wire"
	"github.com/simccl/simccl/units"
)

// Observer is called with what a run does: kernels, pieces of thread groups, and the
// network's part. It must not change anything: no time depends on it. A run
// without an observer pays a nil check an event.
//
// A piece is what a thread group moves at once: a slice of Simple, a step of LL
// and LL128. It begins, joins the links when its overhead is over, has moved
// its bytes, and is done when the group can continue; what it sends is reported
// by Sent, when its flag goes up.
type Observer interface {
	host.Observer
	// Kernel reports that a device starts its k-th kernel, k from 0.
	Kernel(k int32, at units.Time)
	// Piece reports a point in the life of a group's piece.
	Piece(PieceEvent)
	// Sent reports that a piece was put into a connection.
	Sent(SendEvent)
	// Phase reports that the last group of a multiprocessor's phase is through.
	Phase(group int32)
	// Block reports that a multiprocessor's part of a kernel ends.
	Block(sm int32, at units.Time)
	// Waits reports whether events are still to come that the observer wants,
	// though all kernels are done: acknowledgements of the last sends.
	Waits() bool
	// Repeats reports whether periods of a steady state may be counted. If so, Keep
	// is called where one may begin, and Period where some were counted that are as
	// what was since the last call of Keep.
	Repeats() bool
	Keep()
	Period(PeriodEvent)
}

// PeriodEvent says that what was since From, up to the present time of the queue,
// comes again so many times: the run goes on later by as much (Engine.Skipped) than
// its clock says.
type PeriodEvent struct {
	From  units.Time
	Times int64
}

// PiecePoint is a point in the life of a piece.
type PiecePoint uint8

// Points of a piece, in order. PieceRead precedes the release of what was read.
// PieceHeld: its flag stays behind a fence. PieceInRound: it also waits for the
// other heads of its round (rounds.go).
const (
	PieceBegun PiecePoint = iota
	PieceJoined
	PieceMoved
	PieceRead
	PieceHeld
	PieceInRound
	PieceDone
)

// PieceEvent is a group's piece at one of its points.
type PieceEvent struct {
	Point PiecePoint
	Group int32
	Work  float64   // PieceJoined: nano-bytes that its links carry
	Rate  wire.Rate // and the group's own bound
}

// SentAs says which of a group's pieces was put into a connection.
type SentAs uint8

// The current piece (LL, LL128), the one held behind a fence (Simple), or one of
// a round over the heads.
const (
	SentAtOnce SentAs = iota
	SentHeld
	SentInRound
)

// SendEvent is a piece that a group has put into a connection.
type SendEvent struct {
	As    SentAs
	Group int32
	Conn  int32
	Piece int64 // of the connection, from 0
	First bool  // of its op
	Bytes units.Bytes
	Chunk int32
	End   units.Time // readable since then; over the network 0: not known yet
	// Place and Of: which of how many pieces of a round (SentInRound).
	Place, Of int
}
