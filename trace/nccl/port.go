package nccl

import (
	"fmt"

	"github.com/simccl/simccl/units"
)

// PortState is the state of a network port, or of the data that waits for it, from At on.
type PortState struct {
	At      units.Time
	Queued  units.Bytes
	Marks   int64 // frames marked so far
	Paused  bool
	Credits bool // Paused means that it waits for credits of the other end
}

// PortTrace is the last written state of a port.
type PortTrace struct {
	PortState
	marked bool       // the last written count of marks is not 0
	since  units.Time // begin of its pause
}

// Note stores a state as the last one.
func (p *PortTrace) Note(s *PortState) {
	if s.Paused && !p.Paused {
		p.since = s.At
	}
	p.PortState = *s
}

// PortChanges writes the differences between the last state of a link's port and s; times are counted from
// shift.
func (r *Recorder) PortChanges(link int, p *PortTrace, s *PortState, shift units.Time) {
	at := s.At - shift
	if s.Queued != p.Queued {
		r.Queued(link, at, s.Queued)
	}
	if marks := s.Marks - p.Marks; marks != 0 || p.marked { // written as 0 once no further frame is marked
		r.Marked(link, at, marks)
		p.marked = marks != 0
	}
	if p.Paused && !s.Paused {
		r.Paused(link, max(0, p.since-shift), at, s.Credits)
	}
}

// PortEnds writes the pause that a port is in at the end of the run.
func (r *Recorder) PortEnds(link int, p *PortTrace, end, shift units.Time) {
	if p.Paused {
		r.Paused(link, max(0, p.since-shift), end-shift, p.Credits)
	}
}

// QueuePair returns the name of a queue pair: number counts from 0 within its connection; of distinguishes
// connections of equal name.
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
