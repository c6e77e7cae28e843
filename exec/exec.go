// Package exec declares what runs a workload: the simulator and real hardware
// are both Executors and promise the same track names, event names and op ids.
package exec

import (
	"context"
	"fmt"
	"strings"

	"github.com/simccl/simccl/trace"
	"github.com/simccl/simccl/units"
)

// Executor runs a job and reports events to a sink; nil is trace.Discard. All
// executors run jobs of one operation (Job.Single); what they cannot run is a
// NotImplementedError.
type Executor interface {
	Run(ctx context.Context, job Job, sink trace.Sink) (Result, error)
}

// LinkLoad is what one directed link carried for one operation.
type LinkLoad struct {
	Name     string
	Capacity units.GBps
	Bytes    units.Bytes
	Busy     units.Time // time with at least one flow
	// Queue is the estimated mean number of bytes of network messages queued for
	// the link; 0 if not measured.
	Queue units.Bytes
	// Net is what happened to frames there; nil where they were not simulated.
	Net *Congestion
}

// Use is the share of a time that the link needs for its bytes; 0 where it has
// no capacity of its own.
func (l *LinkLoad) Use(of units.Time) float64 {
	if of <= 0 {
		return 0
	}
	return float64(l.Ideal()) / float64(of)
}

// Ideal is the time that the link needs for its bytes at least; 0 where it has
// no capacity of its own.
func (l *LinkLoad) Ideal() units.Time {
	if l.Capacity <= 0 {
		return 0
	}
	return l.Bytes.Over(l.Capacity)
}

// Method is how the times of a Result came about.
type Method uint8

// Methods. Each: every rank ran, or was simulated, by itself. Folded: equivalent
// ranks and channels were merged; the result is identical bit for bit. Near:
// nearly equivalent ones were merged; the result is approximate. Formula: a
// closed form; nothing ran. Window: some of many equal iterations ran, each rank by
// itself, and the others were given their mean time.
const (
	Each Method = iota
	Folded
	Near
	Formula
	Window
)

// String is the method's word in tables and files.
func (m Method) String() string {
	switch m {
	case Folded:
		return "folded"
	case Near:
		return "near"
	case Formula:
		return "formula"
	case Window:
		return "window"
	}
	return "each"
}

// Account reports how a Result was found.
type Account struct {
	Method   Method
	Programs int     // thread groups that were run or simulated, 0 if not counted
	Margin   float64 // of Near and Window: by how much of itself Elapsed may be off
	Note     string  // of Near: what was left out
	// Periods is how many periods of a steady state were counted, not simulated
	// one by one: the same result, to the picosecond. Of Window they are the iterations
	// beyond it. Skipped is their time.
	Periods int64
	Skipped units.Time
	// ByCost is set of a Window where the whole would cost too much, jitter or not: a
	// simulator that is asked for exact folds runs all of it.
	ByCost bool
	// Reduction says what ran in place of the whole, and why.
	Reduction Reduction
}

// Reduction is what of an operation is simulated in place of all of it: the policy of a
// simulator chooses it before anything runs. The zero Reduction leaves nothing out.
type Reduction struct {
	Ranks      Method // Each, Folded or Near: who represents the others
	Iterations Part   // of the operation's loop over chunks
	Blocks     Part   // of each iteration of a ring, one a rank
	Draws      Draws
	Margin     float64 // by how much of itself the time may be off; 0: exact
	Cost       Cost    // forecast; the zero Cost where nothing was forecast
	Why        string  // what the policy compared
}

// Part is how many of some equal parts run; the zero Part is all of them, uncounted.
type Part struct{ Ran, Of int64 }

// Draws says who draws jitter.
type Draws uint8

// Draws: none; every rank and channel; equivalent ranks and channels share theirs.
const (
	NoDraws Draws = iota
	OwnDraws
	SharedDraws
)

// String is the word of who draws.
func (d Draws) String() string {
	switch d {
	case OwnDraws:
		return "own"
	case SharedDraws:
		return "shared"
	}
	return "none"
}

// Cost is what a run takes of a processor of 2.5 GHz, and of memory.
type Cost struct {
	Time   units.Time
	Memory units.Bytes
}

// String says in one line what was done and why.
func (a Account) String() string {
	r := &a.Reduction
	words := []string{a.Method.String()}
	if a.Margin > 0 {
		words = append(words, fmt.Sprintf("±%.0f %%", 100*a.Margin))
	}
	if r.Ranks != Each && r.Ranks != a.Method {
		words = append(words, r.Ranks.String())
	}
	if a.Programs > 0 {
		words = append(words, fmt.Sprintf("%d thread groups", a.Programs))
	}
	if p := r.Iterations; p.Of > 0 {
		words = append(words, fmt.Sprintf("%d of %d iterations", p.Ran, p.Of))
	}
	if p := r.Blocks; p.Of > 0 {
		words = append(words, fmt.Sprintf("%d of %d blocks", p.Ran, p.Of))
	}
	if r.Draws != NoDraws {
		words = append(words, r.Draws.String()+" draws")
	}
	if r.Cost.Time > 0 {
		words = append(words, fmt.Sprintf("forecast %.2g s", float64(r.Cost.Time)/float64(units.Second)))
	}
	if r.Why != "" {
		words = append(words, r.Why)
	}
	if a.Note != "" {
		words = append(words, a.Note)
	}
	return strings.Join(words, ", ")
}

// Congestion is what happened where a link begins, of one operation.
type Congestion struct {
	Inputs, QueuePairs           int32       // that fed it
	Peak                         units.Bytes // most that waited
	Paused                       units.Time  // that it was not allowed to send
	Pauses, Marks, Drops, Resent int64       // frames
	Trims                        int64       // frames that were cut to their headers for lack of room
	Watchdogs                    int64       // times that a watchdog dropped what waited
	// when it was paused first, after the first of all operations began
	First units.Time
	// the port whose queue was the deepest, at the switch that paused it, most of that time; empty: not known
	Behind string
	// whose messages crossed it, the most first; of ports that several inputs feed
	From []Stream
	// whose messages waited there for the sake of another port, the longest first
	Held []Held
	// what Paused counts is waiting for credits of the other end, not pauses
	Credits   bool
	Deadlocks []Deadlock // that begin with this link, and that a watchdog dissolved
}

// Deadlock is a cycle of ports that paused each other: switches each of which may not send
// to the next, and when that was seen first, after the first of all operations began.
type Deadlock struct {
	At    units.Time
	Nodes []string
}

// Stream is what a port of a host sent another, in one operation.
type Stream struct {
	From, To string
	Bytes    units.Bytes
}

// Held is messages of one port of a host for another that waited on a paused link for
// the queue of a port, Behind, that they do not use: head-of-line blocking.
type Held struct {
	From, To, Behind string
	Time             units.Time
}

// Result is the outcome of one run.
type Result struct {
	Finish  []units.Time // per rank
	Elapsed units.Time   // time of one operation as nccl-tests reports it
	AlgBW   float64      // GB/s
	BusBW   float64      // GB/s
	Links   []LinkLoad
	Events  int64 // engine events handled
	Wrong   int64 // wrong elements, -1 where data was not checked
	Account Account
}

// Last is when the last rank is through.
func (r *Result) Last() (t units.Time) {
	for _, f := range r.Finish {
		t = max(t, f)
	}
	return t
}
