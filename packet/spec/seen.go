package spec

import "github.com/simccl/simccl/units"

// Seen is what was reported of ports and rates last.
type Seen struct {
	report func(State)
	ports  []State
	rates  []int64
	at     units.Time
}

// NewSeen is for so many ports, and queue pairs with the rates, in bit/s, that they begin with.
func NewSeen(report func(State), ports, queues int, rate func(queue int) int64) *Seen {
	s := &Seen{report: report, ports: make([]State, ports), rates: make([]int64, queues)}
	for q := range s.rates {
		s.rates[q] = rate(q)
	}
	return s
}

// Due reports whether it is a microsecond since all was looked at, or that nothing moves for that
// long, and records that it is now.
func (s *Seen) Due(now, next units.Time) bool {
	if now-s.at < units.Microsecond && next-now < units.Microsecond {
		return false
	}
	s.at = now
	return true
}

// Port reports on a port if something but the time has changed.
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

// Rate reports on a queue pair whose rate has changed.
func (s *Seen) Rate(x State) {
	if x.Rate != s.rates[x.Queue] {
		s.rates[x.Queue] = x.Rate
		s.report(x)
	}
}
