package spec

import "github.com/simccl/simccl/units"

// Seen filters states for an observer: only changed states are reported.
type Seen struct {
	report func(State)
	ports  []State
	rates  []int64
	at     units.Time
}

// NewSeen returns a filter for the given numbers of ports and queue pairs; rate returns a queue pair's
// initial rate in bit/s.
func NewSeen(report func(State), ports, queues int, rate func(queue int) int64) *Seen {
	s := &Seen{report: report, ports: make([]State, ports), rates: make([]int64, queues)}
	for q := range s.rates {
		s.rates[q] = rate(q)
	}
	return s
}

// Due reports whether to report states now: a microsecond after the last report, or if no event comes for
// that long (next is the time of the next event). It records that they are reported.
func (s *Seen) Due(now, next units.Time) bool {
	if now-s.at < units.Microsecond && next-now < units.Microsecond {
		return false
	}
	s.at = now
	return true
}

// Port reports a port's state if it has changed.
func (s *Seen) Port(x State) {
	i := 2 * x.Cable
	if x.Back {
		i++
	}
	if last := &s.ports[i]; x.Queued != last.Queued || x.Marks != last.Marks || x.Paused != last.Paused {
		*last = x
		s.report(x)
	}
}

// Rate reports a queue pair's rate if it has changed.
func (s *Seen) Rate(x State) {
	if x.Rate != s.rates[x.Queue] {
		s.rates[x.Queue] = x.Rate
		s.report(x)
	}
}
