package cc

import "math"

// Delay is Swift's state of a flow (SIGCOMM'20). Times are in ps.
type Delay struct {
	cwnd   float64 // frames
	cut    int64   // time of the last decrease
	rtt    int64   // the last round trip
	target int64   // target delay without the part that depends on the window
}

// NewDelay returns the state of a flow over the given number of switches; its first window is the largest.
func NewDelay(p *SwiftParams, switches int) Delay {
	return Delay{cwnd: p.Most, cut: -1 << 60, target: int64(p.Base) + int64(switches)*int64(p.PerHop)}
}

// aim returns the target delay at the present window (flow-based scaling).
func (x *Delay) aim(p *SwiftParams) int64 {
	a := float64(p.Range) / (1/math.Sqrt(p.LeastFlows) - 1/math.Sqrt(p.MostFlows))
	more := a/math.Sqrt(x.cwnd) - a/math.Sqrt(p.MostFlows)
	return x.target + int64(min(max(0, more), float64(p.Range)))
}

// Ack adjusts the window after a round trip of rtt ps: below the target it grows by AI frames a round trip,
// above it shrinks by the excess, at most once a round trip.
func (x *Delay) Ack(p *SwiftParams, now, rtt int64, acked uint32) {
	x.rtt = rtt
	switch target := x.aim(p); {
	case x.rtt < target && x.cwnd >= 1:
		x.cwnd += p.AI / x.cwnd * float64(acked)
	case x.rtt < target:
		x.cwnd += p.AI * float64(acked)
	case now-x.cut >= x.rtt:
		x.cwnd *= max(1-float64(p.Beta*float64(x.rtt-target)/float64(x.rtt)), 1-p.MostCut)
		x.cut = now
	}
	x.cwnd = min(max(x.cwnd, p.Least), p.Most)
}

// Loss cuts the window after a loss: a reported gap, or the given number of timeouts in a row.
func (x *Delay) Loss(p *SwiftParams, now int64, timeouts int32) {
	switch {
	case p.Resets > 0 && timeouts >= p.Resets:
		x.cwnd, x.cut = p.Least, now
	case now-x.cut >= x.rtt:
		x.cwnd *= 1 - p.MostCut
		x.cut = now
	}
	x.cwnd = min(max(x.cwnd, p.Least), p.Most)
}

// Window returns the bytes of payload that may be in flight. A window below one frame becomes a rate in *s
// instead (frame: bytes on the wire).
func (x *Delay) Window(c *Params, s *Rate, payload, frame int) int64 {
	rate := s.Line
	if x.cwnd < 1 && x.rtt > 0 {
		rate = min(s.Line, max(c.MinRate, int64(float64(frame)*8e12*x.cwnd/float64(x.rtt))))
	}
	s.Set(rate)
	return max(1, int64(x.cwnd*float64(payload)))
}
