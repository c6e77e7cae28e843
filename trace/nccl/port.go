package nccl

import (
	"fmt"

	"github.com/simccl/simccl/units"
)

// PortState is that of a port of the network, or of what waits for it, since At.
type PortState struct {
	At      units.Time
	Queued  units.Bytes
	Marks   int64 // frames marked so far
	Paused  bool
	Credits bool // what Paused says is that it waits for credits of the other end
}

// PortTrace is the state of a port that was written last.
type PortTrace struct {
	PortState
	marked bool       // the count of marks that was written last is not 0
	since  units.Time // of its pause
}

// Note takes a state as the last one.
func (p *PortTrace) Note(s *PortState) {
	if s.Paused && !p.Paused {
		p.since = s.At
	}
	p.PortState = *s
}

// PortChanges writes what has changed at a link's port since the last state; times count from shift.
func (r *Recorder) PortChanges(link int, p *PortTrace, s *PortState, shift units.Time) {
	at := s.At - shift
	if s.Queued != p.Queued {
		r.Queued(link, at, s.Queued)
	}
	if marks := s.Marks - p.Marks; marks != 0 || p.marked { // back to 0 where none is marked any more
		r.Marked(link, at, marks)
		p.marked = marks != 0
	}
	if p.Paused && !s.Paused {
		r.Paused(link, max(0, p.since-shift), at, s.Credits)
	}
}

// PortEnds writes the pause in which a port is when the run ends.
func (r *Recorder) PortEnds(link int, p *PortTrace, end, shift units.Time) {
	if p.Paused {
		r.Paused(link, max(0, p.since-shift), end-shift, p.Credits)
	}
}

// QueuePair is the name of a queue pair: the number-th from 0 of those that a
// connection has, and what it belongs to where others are called like it.
func QueuePair(src, dst string, channel, number int32, of string) string {
	name := fmt.Sprintf("QP %s→%s channel %d", src, dst, channel)
	if number > 0 {
		name += fmt.Sprintf(" #%d", number+1)
	}
	if of != "" {
		name += ", " + of
	}
	return name
}
