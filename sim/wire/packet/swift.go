package packet

import "math"

// swift is the state of a sender.
type swift struct {
	cwnd   float64 // frames
	cut    int64   // the last decrease
	rtt    int64   // the last round trip, ps
	target int64   // without the part that depends on the window, ps
}

// newSwift makes the state of a sender whose frames pass so many switches; its
// first window is the largest.
func (e *engine) newSwift(s *sender, switches int) swift {
	p := &e.cfg.CC.Swift
	x := swift{cwnd: p.Most, cut: -1 << 60, target: int64(p.Base) + int64(switches)*int64(p.PerHop)}
	e.swiftWindow(s, &x)
	return x
}

// aim is the target of the round trip at a window.
func aim(p *SwiftParams, x *swift) int64 {
	a := float64(p.Range) / (1/math.Sqrt(p.LeastFlows) - 1/math.Sqrt(p.MostFlows))
	more := a/math.Sqrt(x.cwnd) - a/math.Sqrt(p.MostFlows)
	return x.target + int64(min(max(0, more), float64(p.Range)))
}

// swiftAck moves the window: up by AI frames a round trip below the target, down
// by the excess above it, at most once a round trip.
func (e *engine) swiftAck(f *frame, s *sender, acked uint32) {
	x, p := &e.sw[f.flow], &e.cfg.CC.Swift
	x.rtt = 1000 * int64(uint32(f.at/1000)-f.aux)
	switch target := aim(p, x); {
	case x.rtt < target && x.cwnd >= 1:
		x.cwnd += p.AI / x.cwnd * float64(acked)
	case x.rtt < target:
		x.cwnd += p.AI * float64(acked)
	case f.at-x.cut >= x.rtt:
		x.cwnd *= max(1-float64(p.Beta*float64(x.rtt-target)/float64(x.rtt)), 1-p.MostCut)
		x.cut = f.at
	}
	e.swiftWindow(s, x)
}

// swiftLoss cuts the window after a loss: a gap that was reported, or a timeout.
func (e *engine) swiftLoss(id int32, s *sender, now int64, timeout bool) {
	x, p := &e.sw[id], &e.cfg.CC.Swift
	switch {
	case timeout && p.Resets > 0 && s.retries >= p.Resets:
		x.cwnd, x.cut = p.Least, now
	case now-x.cut >= x.rtt:
		x.cwnd *= 1 - p.MostCut
		x.cut = now
	}
	e.swiftWindow(s, x)
}

// swiftWindow sets the sender's window; below one frame it is paced.
func (e *engine) swiftWindow(s *sender, x *swift) {
	p := &e.cfg.CC.Swift
	x.cwnd = min(max(x.cwnd, p.Least), p.Most)
	payload := float64(e.cfg.Frames.Payload)
	s.window = max(1, int64(x.cwnd*payload))
	rate := s.Line
	if x.cwnd < 1 && x.rtt > 0 {
		size := payload + float64(e.cfg.Frames.Header)
		rate = min(s.Line, max(e.cfg.CC.MinRate, int64(size*8e12*x.cwnd/float64(x.rtt))))
	}
	s.Set(rate)
}
