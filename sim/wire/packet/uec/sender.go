package uec

import (
	"math/bits"

	"github.com/simccl/simccl/sim/wire/packet/cc"
	"github.com/simccl/simccl/units"
)

func timeOf(ps int64) units.Time { return units.Time(ps) }

// States of a packet at its sender.
const (
	unsent   uint8 = iota // or acknowledged
	inFlight              // sent, and neither acknowledged nor refused
	resend                // waits to be sent again
)

// record is a packet of a sender's window.
type record struct {
	sent  int64
	size  uint16
	state uint8
	again uint8 // times sent again
}

// sender is the sending half of a flow.
type sender struct {
	packets   uint32 // in all
	highest   uint32 // the next that was never sent
	una       uint32 // all below are acknowledged
	lowResend uint32 // no packet below waits to be sent again
	resends   int
	backlog   int64 // bytes never sent, with headers
	flight    int64 // bytes
	window    []record
	received  int64 // bytes that the receiver has, as it last said
	queued    bool  // waits for the NIC
	ending    bool
	done      bool
	timed     bool // in the host's list of timers
	timeout   int64
	paths     paths
	win       cc.Windowing
}

// at returns the record of a packet; the window is a ring that grows.
func (s *sender) at(psn uint32) *record { return &s.window[psn&uint32(len(s.window)-1)] }

func (s *sender) room(psn uint32) {
	for psn-s.una >= uint32(len(s.window)) {
		w := make([]record, max(min(64, 1<<bits.Len32(s.packets-1)), 2*len(s.window)))
		for p := s.una; p != s.una+uint32(len(s.window)); p++ {
			w[p&uint32(len(w)-1)] = s.window[p&uint32(len(s.window)-1)]
		}
		s.window = w
	}
}

// open starts a flow.
func (e *engine) open(h *host, id int32, now int64) {
	s, f := &e.snd[id], &e.flows[id]
	mss := int64(e.cfg.MTU - Header)
	s.packets = uint32((f.Bytes + mss - 1) / mss)
	s.backlog = int64(s.packets)*Header + f.Bytes
	s.win = e.nscc.Fresh()
	e.res.Flows[id].Start = timeOf(now)
	e.trySend(h, id, now)
}

// nextSize is how large the next packet of a flow is; 0: there is none.
func (e *engine) nextSize(s *sender) int64 {
	if s.resends > 0 {
		for s.at(s.lowResend).state != resend {
			s.lowResend++
		}
		return int64(s.at(s.lowResend).size)
	}
	return min(s.backlog, int64(e.cfg.MTU))
}

// permitted says that a flow has a packet that its window lets out.
func (e *engine) permitted(s *sender) bool {
	size := e.nextSize(s)
	return size > 0 && s.win.Cwnd >= s.flight+size
}

// sendData sends the next packet of a flow: first what must be sent again.
func (e *engine) sendData(h *host, id int32, s *sender, now int64) {
	size := e.nextSize(s)
	f := frame{flow: id, size: uint16(size)}
	if s.resends > 0 {
		f.psn = s.lowResend
		f.flags = flagResent | flagAsk
		s.resends--
		r := s.at(f.psn)
		r.again++
		e.res.Retransmitted++
	} else {
		f.psn = s.highest
		s.highest++
		s.room(f.psn)
		*s.at(f.psn) = record{}
		s.backlog -= size
		e.res.NewPackets++
	}
	s.flight += size
	if s.backlog == 0 || s.flight+size >= s.win.Cwnd {
		f.flags |= flagAsk
	}
	f.path = s.paths.next(e.cfg.Seed, id)
	r := s.at(f.psn)
	r.sent, r.size, r.state = now, uint16(size), inFlight
	e.put(h, &f, now)
	e.arm(h, id, s, now+e.rto)
}

// arm sets a flow's timer unless it runs.
func (e *engine) arm(h *host, id int32, s *sender, at int64) {
	if !s.timed {
		s.timed, s.timeout = true, at
		if len(h.timers) == 0 || at < h.soonest {
			h.soonest = at
		}
		h.timers = append(h.timers, id)
	}
}

// expire looks at the timers of a host: a flow whose oldest packet has been in
// flight for too long sends it again.
func (e *engine) expire(h *host, now int64) {
	keep := h.timers[:0]
	h.soonest = never
	var late []int32
	for _, id := range h.timers {
		s := &e.snd[id]
		if !s.done && s.timeout <= now {
			psn, sent := s.oldest()
			switch {
			case sent == never:
				s.timed = false // armed again by the next packet
				continue
			case sent+e.rto > now:
				s.timeout = sent + e.rto
			default:
				e.expired(s, psn)
				late = append(late, id)
				s.timeout = now + e.rto
			}
		}
		if s.done {
			s.timed = false
			continue
		}
		h.soonest = min(h.soonest, s.timeout)
		keep = append(keep, id)
	}
	h.timers = keep
	for _, id := range late {
		e.trySend(h, id, now)
	}
}

// oldest returns the packet in flight that was sent first, and when.
func (s *sender) oldest() (psn uint32, sent int64) {
	sent = never
	for p := s.una; p != s.highest; p++ {
		if r := s.at(p); r.state == inFlight && r.sent < sent {
			psn, sent = p, r.sent
		}
	}
	return psn, sent
}

// expired marks a packet for another transmission after its timeout.
func (e *engine) expired(s *sender, psn uint32) {
	e.res.Timeouts++
	s.paths.learn(0, expired)
	r := s.at(psn)
	s.flight -= int64(r.size)
	s.win.Cwnd = max(s.win.Cwnd-int64(r.size), int64(e.cfg.MTU))
	s.again(psn)
}

// again queues a packet for another transmission.
func (s *sender) again(psn uint32) {
	s.at(psn).state = resend
	if s.resends == 0 || psn < s.lowResend {
		s.lowResend = psn
	}
	s.resends++
}

// settle takes a packet out of the window: the receiver has it.
func (s *sender) settle(psn uint32) {
	r := s.at(psn)
	if r.state == resend { // it was subtracted when it was queued
		s.resends--
		s.flight += int64(r.size)
	}
	r.state = unsent
}

// acknowledged handles an acknowledgement.
func (e *engine) acknowledged(h *host, f *frame) {
	s := &e.snd[f.flow]
	r := &e.rcv[f.flow]
	a := r.acks[f.slot]
	r.free = append(r.free, f.slot)
	e.res.Acks++
	fresh := max(0, a.received-s.received)
	s.received += fresh
	s.flight -= fresh
	ce := f.flags&flagCE != 0
	s.win.Credit(fresh)
	delay := s.win.Average
	if f.psn >= s.una && f.psn < s.highest {
		if r := s.at(f.psn); r.state == inFlight && (r.again == 0 && f.flags&flagResent == 0 || r.again == 1 && f.flags&flagResent != 0) {
			delay = e.nscc.Sample(&s.win, f.at-r.sent, ce)
		}
	}
	for ; s.una < a.cumulative; s.una++ {
		s.settle(s.una)
	}
	for some := a.bitmap; some != 0; some &= some - 1 {
		if psn := a.base + uint32(bits.TrailingZeros64(some)); psn >= s.una && psn < s.highest {
			s.settle(psn)
		}
	}
	s.paths.learn(f.path, b2i(ce))
	e.nscc.Acknowledged(&s.win, ce, delay, fresh, s.flight, f.at)
	if s.una >= s.packets {
		s.done = true
		return
	}
	e.trySend(h, f.flow, f.at)
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

// refused handles a NACK: its packet was trimmed and goes again.
func (e *engine) refused(h *host, f *frame) {
	s := &e.snd[f.flow]
	e.res.Nacks++
	if f.psn < s.una || f.psn >= s.highest || s.at(f.psn).state != inFlight {
		e.again = max(e.again, f.at)
		return
	}
	r := s.at(f.psn)
	e.nscc.Base(&s.win, f.at-r.sent)
	e.nscc.Refused(&s.win, int64(r.size), s.flight, f.at)
	s.flight -= int64(r.size)
	s.again(f.psn)
	e.trySend(h, f.flow, f.at)
	switch {
	case f.flags&flagLast == 0:
		s.paths.learn(f.path, nacked)
	default:
		s.paths.learn(f.path, b2i(f.flags&flagCE != 0))
	}
	e.trySend(h, f.flow, f.at)
}
