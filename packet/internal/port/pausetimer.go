package port

import "github.com/simccl/simccl/packet/internal/frames"

// Values of Frame.Flow for the timer's own events.
const (
	PauseEnds    = -3 // the pause of class Psn runs out
	PauseRepeats = -4 // the PAUSE of class Psn is due for renewal
)

// PauseTimer keeps the times of 802.1Qbb pauses, which last for a number of quanta: pauses of the port itself
// (ends), and pauses that it imposes on its neighbour (again), renewed after half of their duration.
type PauseTimer struct {
	lasts int64
	ends  [8]int64 // by class: end of the port's own pause; 0: not paused
	again [8]int64 // by class: next renewal to the neighbour; 0: none
}

// PauseLasts returns the duration in ps of a pause of the given quanta (512 bits each) at a rate in bit/s.
func PauseLasts(quanta int, rate int64) int64 {
	return int64(float64(quanta) * 512 * 1e12 / float64(rate))
}

// NewPauseTimer returns the timer of an unpaused port.
func NewPauseTimer(quanta int, rate int64) *PauseTimer {
	return &PauseTimer{lasts: PauseLasts(quanta, rate)}
}

// Received handles a PFC frame, or PauseEnds. It returns false for the end of a pause that was renewed in the
// meantime.
func (p *PauseTimer) Received(f *frames.Frame) bool {
	at := &p.ends[f.Psn]
	switch {
	case f.Flags&frames.Pause != 0:
		*at = f.At + p.lasts
		return true
	case f.Flow == PauseEnds && *at != f.At:
		return false
	}
	*at = 0
	return true
}

// Asks records that the port sends PAUSE or RESUME at a time; a PAUSE is renewed after half of its duration.
func (p *PauseTimer) Asks(class uint8, pause bool, at int64) {
	if p.again[class] = 0; pause {
		p.again[class] = at + p.lasts/2
	}
}

// Due reports whether a renewal scheduled for time at is still valid, that is, no RESUME was sent since.
func (p *PauseTimer) Due(class uint32, at int64) bool { return p.again[class] == at }

// Repeats reports whether the port keeps its neighbour's class paused.
func (p *PauseTimer) Repeats(class int) bool { return p.again[class] != 0 }

// Paused reports whether the port's class is paused with a set end.
func (p *PauseTimer) Paused(class int) bool { return p.ends[class] != 0 }

// Take appends a frame for each end of a pause and each renewal before a time.
func (p *PauseTimer) Take(tag uint32, before int64, into []frames.Frame) []frames.Frame {
	for c := range p.ends {
		if t := p.ends[c]; t != 0 && t < before {
			into = append(into, frames.Frame{At: t, Flow: PauseEnds, Psn: uint32(c), Flags: frames.Resume,
				Tag: tag})
		}
		if t := p.again[c]; t != 0 && t < before {
			into = append(into, frames.Frame{At: t, Flow: PauseRepeats, Psn: uint32(c), Tag: tag})
		}
	}
	return into
}

// Lasts returns the duration of a pause in ps.
func (p *PauseTimer) Lasts() int64 { return p.lasts }

// Renew skips renewals up to a time and returns their number.
func (p *PauseTimer) Renew(at int64) (n int64) {
	for c := range p.again {
		if t := &p.again[c]; *t != 0 && *t < at {
			k := (at - *t + p.lasts/2 - 1) / (p.lasts / 2)
			*t += k * (p.lasts / 2)
			n += k
		}
	}
	return n
}

// Extend moves the ends of the port's own pauses beyond a time, as the skipped renewals would have.
func (p *PauseTimer) Extend(at int64) {
	for c := range p.ends {
		if t := &p.ends[c]; *t != 0 && *t < at {
			*t += (at - *t + p.lasts/2 - 1) / (p.lasts / 2) * (p.lasts / 2)
		}
	}
}

// Next returns the time of Take's next frame; never: none.
func (p *PauseTimer) Next() int64 {
	t := never
	for c := range p.ends {
		if p.ends[c] != 0 {
			t = min(t, p.ends[c])
		}
		if p.again[c] != 0 {
			t = min(t, p.again[c])
		}
	}
	return t
}
