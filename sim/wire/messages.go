package wire

import "github.com/simccl/simccl/units"

// Messages is a Model that carries what hosts send each other as messages of queue
// pairs over cables: frame by frame, in place of a flow over a route's links. Links
// within hosts stay links.
type Messages interface {
	Model
	// Hop is the delay of a cable that adds no latency of its own, the pipeline of
	// the switch or NIC behind it included.
	Hop() units.Time
	// Whole says that frames choose their routes: all cables are to be declared, not
	// those of queue pairs' routes alone.
	Whole() bool
	// Cable says that a link is one direction of a cable.
	Cable(l LinkID, c Cable)
	// Queue declares a queue pair whose messages take a route, before Seal. Where a
	// key was declared before, that queue pair goes on.
	Queue(r RouteID, key QueueKey) QueueID
	// Post gives a queue pair a message at time now: so much work, and the host's
	// bound on it. Messages of a queue pair arrive in order; the token of one comes
	// back from Advance when its last byte is there.
	Post(now units.Time, q QueueID, bound Rate, w Work, token int32)
	// Observe, before the first message, requests a call where the state of a cable or
	// of a queue pair has changed. Times do not depend on it.
	Observe(report func(PortState))
	// Why says what keeps messages from arriving though nothing is in progress; nil
	// where all have arrived.
	Why() error
	// Congestion reports what happened at each cable's direction so far, in the
	// order of LinkID.
	Congestion() []Congestion
}

// QueueID is a dense index of queue pairs.
type QueueID int32

// QueueKey names a queue pair: one of a communicator's connection, by number.
type QueueKey struct {
	Comm, Conn, Pair int32
}

// Vertex is an end of a cable.
type Vertex struct {
	ID   int32
	Host bool // a port of a host, not a switch
	Name string
}

// Cable is one direction of a cable.
type Cable struct {
	Number   int32 // of the direction: those of one cable differ in the last bit
	From, To Vertex
	Bits     int64 // bit/s on the wire
	Delay    units.Time
	Loss     float64 // probability that a frame is lost
}

// PortState is that of a link that is a cable, or of a queue pair, since At.
type PortState struct {
	At      units.Time
	Link    LinkID
	Queue   QueueID // -1: it is of a link
	Queued  units.Bytes
	Marks   int64 // frames marked so far
	Paused  bool
	Rate    Rate // of a queue pair, on the wire
	Credits bool // what Paused says is that it waits for credits of the other end
}

// Congestion is what happened where a link begins.
type Congestion struct {
	Link       LinkID
	Peak       units.Bytes // most that waited
	Paused     units.Time  // that it was not allowed to send
	Pauses     int64       // pause frames that stopped it
	Marks      int64       // frames marked
	Drops      int64       // frames that found no room, or were lost
	Trims      int64       // frames that were cut to their headers
	Inputs     int32       // that fed it with something
	QueuePairs int32       // whose messages crossed it
	Resent     int64       // frames sent again, of a host's port
	Through    units.Bytes // that it sent, headers and what was sent again included
	First      units.Time  // when it was paused first
	// whose queue was the deepest, at the switch that paused it, most of that time; -1: not known
	Behind    LinkID
	From      []Stream // whose messages crossed it, the most first; of ports that several inputs feed
	Watchdogs int64    // times that a watchdog dropped what waited
	Held      []Held   // whose messages waited there for the sake of another port, the longest first
	Credits   bool     // what Paused counts is waiting for credits of the other end, not pauses
	// cycles of ports that paused each other, of those that began here; a watchdog dissolved them
	Deadlocks []Deadlock
}

// Deadlock is a cycle of nodes each of which may not send to the next.
type Deadlock struct {
	At    units.Time // when it was seen first
	Nodes []string
}

// Stream is what a port of a host sent another.
type Stream struct {
	From, To string
	Bytes    units.Bytes
}

// Held is messages of one port of a host for another that waited on a paused link for
// the queue of a port that they do not use: head-of-line blocking.
type Held struct {
	From, To, Behind string
	Time             units.Time
}
