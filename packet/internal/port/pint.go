package port

import (
	"github.com/simccl/simccl/packet/cc"
	"github.com/simccl/simccl/packet/internal/frames"
	"github.com/simccl/simccl/packet/internal/instant"
	"github.com/simccl/simccl/packet/internal/pair"
	"github.com/simccl/simccl/packet/internal/streams"
	"github.com/simccl/simccl/packet/spec"
)

// Codes are the draws of HPCC-PINT: switches draw for each data frame that they begin, and senders for each
// acknowledgement. In turn they are the numbers of one generator in the order of all events, as in the HPCC
// simulator. Switches then go through a window before hosts, as a sender needs what is drawn for an
// acknowledgement that comes.
type Codes struct {
	cc      *cc.Params
	seed    uint64
	answers []answers // by flow
	// in turn; nil: they are drawn by the numbers of frames at a port, and of acknowledgements of a flow
	coder *cc.PintCoder
}

// answers are acknowledgements of a flow.
type answers struct {
	seen  uint64 // without turns
	skips []bool // those of this window, in turn: its sender does not look at them
	next  int    // of skips
}

// NewCodes is for so many flows; nil without HPCC-PINT.
func NewCodes(c *spec.Config, ordered bool, flows int) *Codes {
	if c.CC.Kind != cc.Pint {
		return nil
	}
	x := &Codes{cc: &c.CC, seed: c.Seed, answers: make([]answers, flows)}
	if ordered && c.Stream > 0 && c.Repair.Stubborn() {
		x.coder = cc.NewPintCoder(x.cc, streams.NewFeedback(1).Draw) // 1: the peer sets no seed
	}
	return x
}

// InTurn says that numbers are drawn in turn.
func (x *Codes) InTurn() bool { return x != nil && x.coder != nil }

// Stamp lets a frame that begins on a link carry the highest utilisation of its path, encoded as a power of
// PintBase. If it is coded later, in turn, it says so.
func (x *Codes) Stamp(l *Link, f *frames.Frame, at int64) (later bool) {
	if f.Flags&frames.Ack == 0 && f.Flow >= 0 {
		if later = x.coder != nil; later {
			l.Pint.Seen(l.Wire.Tail, at/1000, l.Held())
		} else {
			u := l.Pint.Used(x.cc, at/1000, l.Held(), l.Rate)
			f.Aux = max(f.Aux, x.cc.Code(u, streams.Hash(x.seed, l.ID, streams.Code, l.Pint.Frames)))
		}
	}
	l.Pint.Sent(at/1000, f.Size)
	return later
}

// Come takes note of what comes to a host in this window, in turn: queue pairs draw for their
// acknowledgements.
func (x *Codes) Come(all []frames.Frame, senders []pair.Sender, c *instant.Calendar) {
	for i := range all {
		f := &all[i]
		if f.Flow < 0 || f.Flags&frames.Ack == 0 {
			continue
		}
		// else there is no queue pair any more
		if s := &senders[f.Flow]; !s.Ended && (!s.Ending || f.At <= s.Moved) {
			c.Answer(instant.Number(f.Tag), f.At, f.Flow)
		}
	}
}

// Drawn is what draws for a link or a flow, see instant.Ranker's Marked; mark draws marks.
func (x *Codes) Drawn(links []Link, mark func(link int32, wire uint32, p float64)) func(link int32,
	wire uint32, p float64) {
	if !x.InTurn() {
		return mark
	}
	return func(link int32, wire uint32, p float64) {
		if flow := instant.Flow(link); flow >= 0 {
			a := &x.answers[flow]
			a.skips = append(a.skips, x.coder.Skips())
			return
		}
		l := &links[link]
		if f, ok := l.Pint.Next(wire); ok {
			g := l.Wire.At(wire)
			g.Aux = max(g.Aux, x.coder.Code(l.Pint, f, l.Rate))
		}
		if p >= 0 {
			mark(link, wire, p)
		}
	}
}

// Skips says that a sender does not look at the next acknowledgement of its flow.
func (x *Codes) Skips(flow int32) (skips bool) {
	a := &x.answers[flow]
	if x.coder == nil {
		a.seen++
		return streams.Hash(x.seed, flow, streams.Sample, a.seen) >= x.cc.PintShare
	}
	skips = a.skips[a.next]
	if a.next++; a.next == len(a.skips) {
		a.skips, a.next = a.skips[:0], 0
	}
	return skips
}
