package port

import (
	"github.com/simccl/simccl/packet/cc"
	"github.com/simccl/simccl/packet/internal/frames"
	"github.com/simccl/simccl/packet/internal/qp"
	"github.com/simccl/simccl/packet/internal/tiebreak"
	"github.com/simccl/simccl/packet/spec"
)

// PacingPlan records when and by which event a host's wake-up was scheduled, to order it among simultaneous
// events.
type PacingPlan struct {
	At     int64
	Number tiebreak.Number
	Place  uint64 // final rank among all events, once Number is None
}

// HostPort is the sending side of a host's NIC: its queue pairs in round-robin order and its timers. Times
// are in ps.
//
// A host that only sends touches the first two cache lines.
type HostPort struct {
	Wake int64 // time at which pacing lets a queue pair send; 0: not awaited
	// after a failed attempt to send: no queue pair may send before this time, even if acknowledgements
	// arrive
	Paced   int64
	Timer   int64 // lower bound of the next retransmission timeout
	First   int64 // start of the next flow; never: none
	In, Out *Link // the NIC's links, for HostSender; nil: the host also receives
	qp.RoundRobin
	Pacing   PacingPlan
	InFlight bool // a transmission is in progress whose end is still an event to come
}

// HostSender simulates hosts that only send, with one queue pair each: the event loop of package packet,
// reduced to arriving acknowledgements, ends of transmissions and pacing.
type HostSender struct {
	Sent int64 // data frames sent since the caller last reset it

	config   *spec.Config
	cc       *cc.Params
	flows    *cc.Flows
	calendar *tiebreak.Calendar // nil: events have no order
	due      []int64            // by link: arrival of its first frame
	payload  int64
	full     uint16
	ack      uint16
	kind     cc.Kind
	stubborn bool // Repair.Stubborn

	*HostPort
	pair   *qp.Sender
	cause  tiebreak.Cause // the present event
	notice int64          // how long before now the present event was scheduled; never: events have no order
}

// NewHostSender returns nil for settings that HostSender does not handle: timeouts, selective repeat,
// credits, trimming, several paths, or window-based congestion control.
func NewHostSender(c *spec.Config, flows *cc.Flows, calendar *tiebreak.Calendar, due []int64) *HostSender {
	if c.Repair.Timeout > 0 || c.Repair.BackTo > 0 || c.Repair.Selective || c.Buffer.Credits > 0 ||
		c.Buffer.Trim > 0 || c.Paths > 1 {
		return nil
	}
	switch c.CC.Kind {
	case cc.None, cc.DCQCN, cc.HPCC, cc.Timely, cc.DCTCP:
	default:
		return nil
	}
	return &HostSender{config: c, cc: &c.CC, flows: flows, calendar: calendar, due: due,
		payload: int64(c.Frames.Payload), full: uint16(c.Frames.Payload + c.Frames.Header),
		ack: uint16(c.Frames.Ack), kind: c.CC.Kind, stubborn: c.Repair.Stubborn(), notice: never}
}

// Run simulates a host up to end, taking acknowledgements off its link. It returns how many it took, and the
// time of the host's next own event; 0: an event of another kind comes next, which the caller's general loop
// must handle.
func (x *HostSender) Run(p *HostPort, end int64) (came int, quiet int64) {
	s := p.Only
	if s == nil || p.Over > 0 || s.Gapped || min(p.First, p.Timer) < end {
		return 0, 0
	}
	x.HostPort, x.pair = p, s
	in, out := &p.In.Wire, &p.Out.Wire
	head := in.Head
	quiet = x.run(in, end)
	came = int(in.Head - head)
	in.Reset()
	x.due[p.In.ID], x.due[p.Out.ID] = in.Soon(), out.Soon()
	return came, quiet
}

// run is Run's event loop. q is the incoming cable.
func (x *HostSender) run(q *frames.Ring, end int64) (quiet int64) {
	p, s, wake, free := x.HostPort, x.pair, x.awake(), never
	if p.InFlight {
		free = p.Out.Free
	}
	for next := q.Soon(); ; {
		if x.calendar != nil {
			x.calendar.Fit(4)
		}
		now := min(wake, free)
		switch {
		case next < end && next <= now &&
			(next < now || !x.OwnFirst(x.calendar, p.Out, x.In.Travel(x.config, q.Front().Size, x.full,
				x.ack), q.Front(), free == now)):
			f := q.Front()
			if f.Flags&^frames.CE != frames.Ack || f.Psn >= s.Frames || f.Flow != p.ID {
				return 0
			}
			q.Head++
			now, next = next, q.Soon()
			x.acked(f)
			if wake = x.awake(); free != never || p.Paced > now {
				continue
			}
		case now >= end:
			return min(now, p.First, p.Timer)
		case free == now:
			p.InFlight, free = false, never
			if x.calendar != nil {
				x.cause, x.notice = tiebreak.Of(p.Out.Begun), now-p.Out.Start
			}
		default:
			p.Wake, wake = 0, never
			if x.calendar != nil {
				x.cause, x.notice = tiebreak.OfPlace(p.Pacing.Number, p.Pacing.Place), now-p.Pacing.At
			}
			if free != never {
				continue
			}
		}
		switch {
		case s.Nxt >= s.Frames:
			p.Paced = never
		case s.NextAvail > now:
			if p.Paced = s.NextAvail; p.Wake <= now {
				wake = s.NextAvail
				x.await(wake, now)
			}
		case p.Out.Paused>>s.Class&1 != 0 || x.bound(now):
			p.Paced = now
		default:
			x.send(now, min(next, end))
			if wake = x.awake(); p.InFlight {
				free = p.Out.Free
			}
		}
	}
}

// awake returns Wake, or never if it is not awaited.
func (p *HostPort) awake() int64 {
	if p.Wake == 0 {
		return never
	}
	return p.Wake
}

// Own returns the time of the host's next own event: a flow's start, pacing, the end of a transmission; not
// timeouts.
func (p *HostPort) Own(links []Link, link int32) int64 {
	t := min(p.First, p.awake())
	if p.InFlight {
		t = min(t, links[link].Free)
	}
	return t
}

// OwnFirst reports whether the host's own event (end of transmission if ends, else pacing) precedes the
// arrival of f at the same instant: it was scheduled first if it takes longer than f's travel time. Without a
// calendar arrivals come first.
func (p *HostPort) OwnFirst(calendar *tiebreak.Calendar, out *Link, travels int64, f *frames.Frame,
	ends bool) bool {
	if ends {
		return out.EndsFirst(calendar, travels, tiebreak.Number(f.Tag))
	}
	return calendar != nil && p.Wake-p.Pacing.At > travels
}

// await sets the wake-up for pacing, scheduled by the present event.
func (x *HostSender) await(until, now int64) {
	x.Wake = until
	if x.calendar != nil {
		x.Pacing.At, x.Pacing.Number = now, x.calendar.Plan(x.cause.Sleeps(), now)
	}
}

// bound reports whether the window is full.
func (x *HostSender) bound(now int64) bool {
	s := x.pair
	flight := int64(s.Nxt-s.Una) * x.payload
	switch {
	case s.Window == 0 || flight < s.Window && !x.cc.VarWindow:
		return false
	case x.kind == cc.DCQCN && x.cc.VarWindow:
		return s.Bound(x.cc, int(x.payload), false, now, x.notice)
	}
	return flight >= s.Within(x.cc)
}

// send starts the next frame. Where no event can happen before the transmission ends (before) and pacing then
// delays the next frame, it also handles that end and sets the wake-up: one event instead of two.
func (x *HostSender) send(now, before int64) {
	s, l := x.pair, x.Out
	size, full, psn := x.full, true, s.Nxt
	if s.Nxt++; s.Nxt == s.Frames { // the last frame may be short
		n := s.Bytes - int64(psn)*x.payload
		size, full = uint16(int(n)+x.config.Frames.Header), n == x.payload
	}
	aux := uint32(0)
	if x.kind == cc.HPCC {
		if flight := psn - s.Una; cc.Grows(flight) {
			x.flows.Grow(x.ID, flight)
		}
		aux = x.flows.Send(x.ID, psn)
	} else if x.kind == cc.Timely {
		aux = uint32(now / 1000)
	}
	x.Sent, x.Last = x.Sent+1, 0
	tag := tiebreak.Number(0)
	if x.calendar != nil {
		tag = x.calendar.Plan(x.cause.Sends(), now)
		l.Start, l.Begun = now, tag
	}
	if l.Sizes[0] != size {
		l.Measure(x.config, 0, size)
	}
	l.Sent, l.TxBytes, l.Data = l.Sent+1, l.TxBytes+int64(size), l.Data+int64(size)
	l.Free = now + l.Lasts[0]
	if l.Wire.Full() {
		l.Wire.Grow()
	}
	f := l.Wire.Next()
	f.At, f.Flow, f.Psn, f.Route, f.Aux = l.Free+l.Delay, x.ID, psn, s.Route, aux
	f.Size, f.Flags, f.Class, f.Tag = size, 0, s.Class, uint32(tag)
	s.Last = size
	if x.kind == cc.DCQCN {
		if s.Dcqcn.Due(now) {
			s.Dcqcn.Tick(x.cc, &s.Rate, now, x.notice)
		}
		if x.cc.ByteReset > 0 {
			s.Dcqcn.Count(x.cc, &s.Rate, int64(size))
		}
	}
	gap := s.Gap
	if !full || gap == 0 {
		if gap = x.config.Lasts(int(size), s.Pace(x.cc)); full {
			s.Gap = gap
		}
	}
	if s.NextAvail = now + gap; l.Free >= before || s.NextAvail <= l.Free || s.Nxt >= s.Frames ||
		x.Wake != 0 {
		x.InFlight = true
		return
	}
	x.Paced = s.NextAvail
	x.cause = tiebreak.Of(tag)
	x.await(s.NextAvail, l.Free)
}

// acked handles an acknowledgement that neither ends the flow nor reports a gap.
func (x *HostSender) acked(f *frames.Frame) {
	s := x.pair
	if f.Psn > s.Una {
		s.Una = f.Psn
		if s.Nxt < s.Una && !x.stubborn { // retransmitted frames may have arrived before
			s.Nxt = s.Una
		}
	}
	if x.calendar != nil {
		x.cause = tiebreak.Of(tiebreak.Number(f.Tag))
	}
	switch x.kind {
	case cc.HPCC:
		if rate, ok := x.flows.Seen(x.ID, &s.Rate, s.Window, f.Aux, false, f.Psn, s.Nxt); ok {
			x.shift(rate, f.At)
		}
	case cc.DCQCN:
		if x.calendar != nil {
			x.notice = x.In.Travel(x.config, f.Size, x.full, x.ack)
		}
		if f.Flags&frames.CE != 0 {
			s.Dcqcn.Notify(x.cc, &s.Rate, f.At, x.notice)
		}
	case cc.Timely:
		x.flows.Gradient(x.ID).Ack(x.cc, &s.Rate, f.Psn, s.Nxt, int64(uint32(f.At/1000)-f.Aux))
	case cc.DCTCP:
		x.flows.Share(x.ID).Ack(x.cc, &s.Rate, f.Psn, s.Nxt, f.Flags&frames.CE != 0)
	}
}

// shift changes the rate and moves the next start by the difference of the two gaps.
func (x *HostSender) shift(rate, now int64) {
	s := x.pair
	sooner := rate > s.Rate.Rate || s.NextAvail < x.Wake // known before the gap ends
	if rate != s.Rate.Rate {
		size := int(s.Last)
		gap, before, full := x.config.Lasts(size, rate), s.Gap, s.Last == x.full && s.Gap > 0 && !x.cc.Unpaced
		if !full {
			before = x.config.Lasts(size, s.Rate.Rate)
		}
		s.NextAvail += gap - before
		if s.Set(rate); full {
			s.Gap = gap
		}
	}
	x.Paced = min(x.Paced, s.NextAvail)
	if x.Wake > now && sooner && s.NextAvail < x.Wake {
		x.await(max(s.NextAvail, now), now)
	}
}
