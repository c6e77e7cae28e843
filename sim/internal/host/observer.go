package host

import "github.com/simccl/simccl/units"

// Observer is called with what the network part of a run does. It must not change
// anything: no time depends on whether a run is observed. A run without one
// pays a nil check an event.
type Observer interface {
	// Step reports a point in the life of one step of a connection.
	Step(StepEvent)
	// Reduction reports a point in the life of a step that the network reduces.
	Reduction(ReductionEvent)
	// Thread reports that a proxy thread has taken up work that ends at a time.
	Thread(thread int32, until units.Time)
	// Delayed reports that the message on a queue pair took longer by a wait
	// than it would have alone.
	Delayed(l *QueuePair, wait units.Time)
}

// StepPoint is a point in the life of a connection's step.
type StepPoint uint8

// Points of a step, in order: the sender's proxy posts it, its bytes begin to
// go, one queue pair's part is through, all are, the receiver's proxy polls the
// completion, the sender's does; and before all that the receiver offers room.
const (
	StepPosted StepPoint = iota
	StepBegun
	PartCrossed
	StepLanded
	StepArrived
	StepAcked
	StepOffered
)

// StepEvent is a step of a connection at one of its points.
type StepEvent struct {
	Point  StepPoint
	Conn   int32      // in Network.Conns
	Step   int64      // of the connection, from 0
	QP     *QueuePair // PartCrossed
	At     units.Time // when the proxy thread is done: StepArrived, StepAcked, StepOffered
	Raised units.Time // StepArrived: when the receiver's tail goes up
}

// ReductionPoint is a point in the life of a step that the network reduces.
type ReductionPoint uint8

// Points of a reduced step: a side posts its part, the last side does, the sum
// goes on the wire, it is through, the sending proxy polls the completion, the
// receiving one takes the result, and room for another is there.
const (
	SidePosted ReductionPoint = iota
	AllPosted
	SumBegun
	SumLanded
	SumAcked
	SumTaken
	RoomOpened
)

// ReductionEvent is a reduced step at one of its points.
type ReductionEvent struct {
	Point  ReductionPoint
	Rail   int32 // SumBegun, SumLanded
	Side   *Side // AllPosted: the last
	Batch  int32 // the others
	Step   int64 // SumAcked, SumTaken, RoomOpened: of the batch
	At     units.Time
	Raised units.Time // SumTaken: when the tails go up
}
