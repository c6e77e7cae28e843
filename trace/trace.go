// Package trace defines timelines: tracks, events and the sinks that receive them. It knows nothing of
// collectives: names and args are strings and numbers.
package trace

import "github.com/simccl/simccl/units"

// TrackID is the number of a registered track, by order of registration.
type TrackID int32

// Track is one lane of a viewer: a thread of a process.
type Track struct {
	Process     int64 // pid
	ProcessName string
	ProcessSort int64
	Labels      string
	Thread      int64 // tid
	ThreadName  string
	ThreadSort  int64
}

// Phase is the kind of an event.
type Phase uint8

// Phases.
const (
	Slice Phase = iota // a span with a duration
	Instant
	FlowStart
	FlowEnd
	Counter
)

// Arg is one ordered argument of an event.
type Arg struct {
	Key  string
	Kind ArgKind
	Str  string
	Int  int64
	Num  float64
}

// ArgKind says which field of an Arg holds its value.
type ArgKind uint8

// Argument kinds.
const (
	StringArg ArgKind = iota
	IntArg
	FloatArg
)

// Tint is the kind of work of an event, for viewers that colour by it.
type Tint uint8

// Tints.
const (
	Plain    Tint = iota // the viewer's own colour
	Sends                // data on its way
	Receives             // received data is taken over
	Computes             // a kernel
	Copies               // copies and flushes
	Waits
	Idles // nothing to do
	Calls // the host's calls, launches, and operations as a whole
	NumTints
)

// Event is an event on a track: a slice, an instant, a counter's value or an end of an arrow.
type Event struct {
	Phase Phase
	Track TrackID
	Start units.Time
	Dur   units.Time // Slice only
	Cat   string
	Name  string
	Tint  Tint  // of a Slice
	ID    int64 // flow id
	Args  []Arg // valid during Emit only: sinks must copy them
}

// Sink receives events. Emit may be called in any time order across tracks; within one track, of events with
// equal start the enclosing one comes first.
type Sink interface {
	// Track registers a lane before its first event and returns its id; equal
	// (Process, Thread) give the same id.
	Track(Track) TrackID
	Emit(*Event)
	// Close writes buffered data and returns the first error of the sink.
	Close() error
}

// Orderer is a Sink that can change the position of a process in the viewer until it is closed.
type Orderer interface {
	// Order sets the ProcessSort of a registered process.
	Order(process, sort int64)
}

// Discard is a Sink that drops everything.
var Discard Sink = discard{}

// OrDiscard returns s, or Discard if s is nil: an executor without a sink then writes no events.
func OrDiscard(s Sink) Sink {
	if s == nil {
		return Discard
	}
	return s
}

type discard struct{}

func (discard) Track(Track) TrackID { return 0 }
func (discard) Emit(*Event)         {}
func (discard) Close() error        { return nil }
