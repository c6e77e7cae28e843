package port

import (
	"github.com/simccl/simccl/packet/cc"
	"github.com/simccl/simccl/packet/internal/frames"
	"github.com/simccl/simccl/packet/internal/qp"
	"github.com/simccl/simccl/packet/internal/tiebreak"
	"github.com/simccl/simccl/packet/spec"
)

// PacingPlan is where a pause of pacing was planned.
type PacingPlan struct {
	At     int64
	Number tiebreak.Number
	Place  uint64 // in the order of all, once the number is None
}

// HostPort is the queue pairs of a host, and when it does what. Times are in ps.
//
// What a host that only sends looks at is in the first two lines of a cache.
type HostPort struct {
	Wake    int64 // when a queue pair may send again; 0: not awaited
	Paced   int64 // when none could send: until when pacing alone holds all queue pairs up, or earlier
	Timer   int64 // no timeout ends before then
	First   int64 // when the next flow begins; never without one
	In, Out *Link // of a host that only sends; else nil
	qp.RoundRobin
	Pacing   PacingPlan
	InFlight bool // a frame is in transmission and its end is to come
}

// HostSender goes through windows of ports.
type HostSender struct {
	Sent int64 // data frames since that was read last

	config   *spec.Config
	cc       *cc.Params
	flows    *cc.Flows
	calendar *tiebreak.Calendar // nil: the order of events does not count
	due      []int64            // by link: when its first frame arrives
	payload  int64
	full     uint16
	ack      uint16
	kind     cc.Kind
	stubborn bool // Repair.Stubborn

	*HostPort
	pair   *qp.Sender
	cause  tiebreak.Cause // the present event
	notice int64          // for how long it was planned; never without the order of events
}

// NewHostSender is a HostSender if settings are those of plain senders, whose frames take one route each and
// which no timer and no credit keeps; else nil. Without the order of events there is no calendar. By link,
// due is when its first frame arrives.
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

// Run simulates a port up to end, as long as frames come and go as they mostly do. It takes frames off the
// link as they come and returns how many, and when the port does the next thing of its own; 0: something
// else is next now.
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

// run is Run for the port that is set.
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

// awake is when a queue pair may send again; never if that is not awaited.
func (p *HostPort) awake() int64 {
	if p.Wake == 0 {
		return never
	}
	return p.Wake
}

// Own is when the port, whose link is one of links, does something of its own, but for timeouts.
func (p *HostPort) Own(links []Link, link int32) int64 {
	t := min(p.First, p.awake())
	if p.InFlight {
		t = min(t, links[link].Free)
	}
	return t
}

// OwnFirst reports whether the frame in transmission over a link ends, or else pacing, before another that
// comes at that instant and travels for so long: that it was planned first. Without a calendar what comes is
// first.
func (p *HostPort) OwnFirst(calendar *tiebreak.Calendar, out *Link, travels int64, f *frames.Frame,
	ends bool) bool {
	if ends {
		return out.EndsFirst(calendar, travels, tiebreak.Number(f.Tag))
	}
	return calendar != nil && p.Wake-p.Pacing.At > travels
}

// await lets the port wait for its pacing from now on.
func (x *HostSender) await(until, now int64) {
	x.Wake = until
	if x.calendar != nil {
		x.Pacing.At, x.Pacing.Number = now, x.calendar.Plan(x.cause.Sleeps(), now)
	}
}

// bound reports whether the queue pair has as much in flight as it may.
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

// send starts the next frame. If it ends before a time, before which nothing comes, and pacing holds up the
// one after it, that is all done.
func (x *HostSender) send(now, before int64) {
	s, l := x.pair, x.Out
	size, full, psn := x.full, true, s.Nxt
	if s.Nxt++; s.Nxt == s.Frames { // the last may be short
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
	l.Sent, l.TxBytes = l.Sent+1, l.TxBytes+int64(size)
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

// acked handles an acknowledgement that neither ends the flow nor asks for a frame.
func (x *HostSender) acked(f *frames.Frame) {
	s := x.pair
	if f.Psn > s.Una {
		s.Una = f.Psn
		if s.Nxt < s.Una && !x.stubborn { // frames that are sent again may have arrived before
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

// shift changes the rate, and the time of the next frame by the difference of the gaps.
func (x *HostSender) shift(rate, now int64) {
	s := x.pair
	sooner := rate > s.Rate.Rate || s.NextAvail < x.Wake // known long before the gap is
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
