package port

import "github.com/simccl/simccl/packet/internal/frames"

// Flows of the frames that Take makes.
const (
	PauseEnds    = -3 // the pause of class psn ends
	PauseRepeats = -4 // class psn is to be paused again
)

// PauseTimer is the pauses of a port.
type PauseTimer struct {
	lasts int64
	ends  [8]int64 // by class: when its own pause ends; 0: it is not paused
	again [8]int64 // by class: when it asks its neighbour for a pause again; 0: it does not
}

// PauseLasts is how long so many quanta last at a rate in bit/s, in ps.
func PauseLasts(quanta int, rate int64) int64 {
	return int64(float64(quanta) * 512 * 1e12 / float64(rate))
}

// NewPauseTimer is a port that is not paused, with pauses of so many quanta at a rate in bit/s.
func NewPauseTimer(quanta int, rate int64) *PauseTimer {
	return &PauseTimer{lasts: PauseLasts(quanta, rate)}
}

// Received records a PFC frame of the neighbour, or of the end of a pause; false: that pause
// was renewed before its end.
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

// Asks records a PFC frame that the port sends at a time. One that pauses is sent again after half
// the time that the pause lasts.
func (p *PauseTimer) Asks(class uint8, pause bool, at int64) {
	if p.again[class] = 0; pause {
		p.again[class] = at + p.lasts/2
	}
}

// Due reports whether the port is to ask for a pause again at a time: the neighbour was not resumed since.
func (p *PauseTimer) Due(class uint32, at int64) bool { return p.again[class] == at }

// Repeats reports whether the port asks for a pause of a class again and again.
func (p *PauseTimer) Repeats(class int) bool { return p.again[class] != 0 }

// Paused reports whether the port's own pause of a class has an end.
func (p *PauseTimer) Paused(class int) bool { return p.ends[class] != 0 }

// Take appends a frame for each pause that ends and each that is to be asked for again before a time.
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

// Lasts is how long a pause lasts, in ps.
func (p *PauseTimer) Lasts() int64 { return p.lasts }

// Renew asks for pauses up to a time, and returns how many frames that are.
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

// Extend has the port's own pauses last beyond a time.
func (p *PauseTimer) Extend(at int64) {
	for c := range p.ends {
		if t := &p.ends[c]; *t != 0 && *t < at {
			*t += (at - *t + p.lasts/2 - 1) / (p.lasts / 2) * (p.lasts / 2)
		}
	}
}

// Next is when Take has the next one.
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
