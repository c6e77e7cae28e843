package uec

import (
	"math/bits"

	"github.com/simccl/simccl/packet/cc"
	"github.com/simccl/simccl/units"
)

func timeOf(ps int64) units.Time { return units.Time(ps) }

const (
	unsent   uint8 = iota // or acknowledged
	inFlight              // neither acknowledged nor refused
	resend                // waits to be retransmitted
)

// record is the state of a packet in a sender's window.
type record struct {
	sent  int64 // ps: start of its last transmission
	size  uint16
	state uint8
	again uint8 // retransmissions
}

// sender is the sending half of a flow. Its packets, by number:
//
//	0 … acknowledged | sent: inFlight, resend or acknowledged (window) | new … packets
//	                 ^una                                              ^highest
type sender struct {
	packets   uint32 // of the flow
	highest   uint32 // next new packet
	una       uint32 // all packets below are acknowledged
	lowResend uint32 // no packet below waits to be retransmitted
	resends   int    // packets that wait to be retransmitted
	backlog   int64  // bytes of packets not yet sent, with headers
	flight    int64  // bytes in flight
	window    []record
	received  int64 // bytes that the receiver has reported
	queued    bool  // in the host's active list
	ending    bool
	done      bool
	timed     bool // has a timer
	paths     paths
	win       cc.Windowing
}

// at returns a packet's record; the window is a ring that grows.
func (s *sender) at(psn uint32) *record { return &s.window[psn&uint32(len(s.window)-1)] }

// room grows the window until it has a record for a packet.
func (s *sender) room(psn uint32) {
	for psn-s.una >= uint32(len(s.window)) {
		w := make([]record, max(min(64, 1<<bits.Len32(s.packets-1)), 2*len(s.window)))
		for p := s.una; p != s.una+uint32(len(s.window)); p++ {
			w[p&uint32(len(w)-1)] = s.window[p&uint32(len(s.window)-1)]
		}
		s.window = w
	}
}

// open starts a flow: all its bytes are posted, with the largest window.
func (e *engine) open(h *host, id int32, now int64) {
	s, f := &e.snd[id], &e.flows[id]
	mss := int64(e.cfg.MTU - Header)
	s.packets = uint32((f.Bytes + mss - 1) / mss)
	s.backlog = int64(s.packets)*Header + f.Bytes
	s.win = e.nscc.Fresh()
	e.res.Flows[id].Start = timeOf(now)
	e.trySend(h, id, now)
}

// nextSize returns the bytes of a flow's next packet, a retransmission first; 0: none.
func (e *engine) nextSize(s *sender) int64 {
	if s.resends > 0 {
		for s.at(s.lowResend).state != resend {
			s.lowResend++
		}
		return int64(s.at(s.lowResend).size)
	}
	return min(s.backlog, e.mtu)
}

// permitted returns nextSize if the window has room for it, else 0.
func (e *engine) permitted(s *sender) int64 {
	size := e.nextSize(s)
	if s.win.Cwnd < s.flight+size {
		return 0
	}
	return size
}

// sendData sends a flow's next packet, retransmissions first.
func (e *engine) sendData(h *host, id int32, s *sender, size, now int64) {
	psn, what, again := s.highest, uint64(size)<<sizeAt, uint8(0)
	if s.resends > 0 {
		psn = s.lowResend
		what |= flagResent | flagAsk
		s.resends--
		again = s.at(psn).again + 1
		e.res.Retransmitted++
	} else {
		s.highest++
		s.room(psn)
		s.backlog -= size
		e.res.NewPackets++
	}
	s.flight += size
	if s.backlog == 0 || s.flight+size >= s.win.Cwnd {
		what |= flagAsk
	}
	what |= uint64(s.paths.next(e.cfg.Seed, id)) << pathAt
	*s.at(psn) = record{sent: now, size: uint16(size), state: inFlight, again: again}
	e.res.DataPacketHops++
	e.startFrame(h, identity(id, psn), what, now)
	if !s.timed {
		e.arm(h, id, s, now+e.rto)
	}
}

// arm starts a flow's retransmission timer, which expires at a time in ps.
func (e *engine) arm(h *host, id int32, s *sender, at int64) {
	s.timed = true
	h.timers.add(id, at)
}

// expire handles the timers that are due: a flow whose oldest packet has been in flight for the timeout
// retransmits it. Acknowledgements do not move a timer; it is moved when it expires: one move per timeout
// instead of one per packet.
func (e *engine) expire(h *host, now int64) {
	for h.timers.first() <= now {
		id := h.timers.First().flow
		s := &e.snd[id]
		psn, sent := s.oldest()
		late := !s.done && sent != never && sent+e.rto <= now
		if late {
			e.expired(s, psn)
			_, sent = s.oldest()
		}
		if s.done || sent == never {
			s.timed = false // armed again by the next packet
			h.timers.Pop()
		} else {
			h.timers.move(max(now, sent+e.rto))
		}
		if late {
			e.trySend(h, id, now)
		}
	}
}

// oldest returns the packet in flight that was sent first.
func (s *sender) oldest() (psn uint32, sent int64) {
	sent = never
	for p := s.una; p != s.highest; p++ {
		if r := s.at(p); r.state == inFlight && r.sent < sent {
			psn, sent = p, r.sent
		}
	}
	return psn, sent
}

// expired schedules a packet for retransmission whose timeout has expired, and counts the timeout.
func (e *engine) expired(s *sender, psn uint32) {
	e.res.Timeouts++
	s.paths.learn(0, expired)
	r := s.at(psn)
	s.flight -= int64(r.size)
	s.win.Cwnd = max(s.win.Cwnd-int64(r.size), e.mtu)
	s.again(psn)
}

// again marks a packet for retransmission.
func (s *sender) again(psn uint32) {
	s.at(psn).state = resend
	if s.resends == 0 || psn < s.lowResend {
		s.lowResend = psn
	}
	s.resends++
}

// settle removes a packet that the receiver has from the window.
func (s *sender) settle(psn uint32) {
	r := s.at(psn)
	if r.state == resend { // its bytes were subtracted from flight when it was marked
		s.resends--
		s.flight += int64(r.size)
	}
	r.state = unsent
}

// settleAll acknowledges all packets below a number. Their records are updated only while some packet waits
// to be retransmitted.
func (s *sender) settleAll(below uint32) {
	if s.resends == 0 {
		s.una = max(s.una, below)
		return
	}
	for ; s.una < below; s.una++ {
		s.settle(s.una)
	}
}

// settleSome acknowledges the packets of a bitmap from base on, as far as they are in the window.
func (s *sender) settleSome(base uint32, some uint64) {
	if base < s.una {
		some = some >> min(64, s.una-base) << min(64, s.una-base)
	}
	if n := s.highest - base; base >= s.highest {
		return
	} else if n < 64 {
		some &= 1<<n - 1
	}
	if s.resends == 0 {
		for ; some != 0; some &= some - 1 {
			s.at(base + uint32(bits.TrailingZeros64(some))).state = unsent
		}
	}
	for ; some != 0; some &= some - 1 {
		s.settle(base + uint32(bits.TrailingZeros64(some)))
	}
}

// acknowledged handles an acknowledgement at the sender: window, round trip, path feedback, next packets.
func (e *engine) acknowledged(h *host, f *frame) {
	flow, psn := f.flow(), f.psn()
	s, r := &e.snd[flow], &e.rcv[flow]
	a := r.acks[f.slot()]
	r.free = append(r.free, f.slot())
	e.res.Acks++
	fresh := max(0, a.received-s.received)
	s.received += fresh
	s.flight -= fresh
	ce := f.has(flagCE)
	s.win.Credit(fresh)
	delay := s.win.Average
	if psn >= s.una && psn < s.highest {
		if r := s.at(psn); r.state == inFlight && r.again == uint8(b2i(f.has(flagResent))) {
			delay = e.nscc.Sample(&s.win, f.at-r.sent, ce)
		}
	}
	s.settleAll(a.cumulative)
	s.settleSome(a.base, a.bitmap)
	s.paths.learn(f.path(), b2i(ce))
	e.nscc.Acknowledged(&s.win, ce, delay, fresh, s.flight, f.at)
	if s.una >= s.packets {
		if s.done = true; !s.ending {
			e.finish(s, flow, f.at)
		}
		return
	}
	e.trySend(h, flow, f.at)
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

// handleNack handles a NACK at the sender: its packet was trimmed and is sent again.
func (e *engine) handleNack(h *host, f *frame) {
	s, psn := &e.snd[f.flow()], f.psn()
	e.res.Nacks++
	if psn < s.una || psn >= s.highest || s.at(psn).state != inFlight {
		e.again = max(e.again, f.at)
		return
	}
	r := s.at(psn)
	e.nscc.Base(&s.win, f.at-r.sent)
	e.nscc.Refused(&s.win, int64(r.size), s.flight, f.at)
	s.flight -= int64(r.size)
	s.again(psn)
	e.trySend(h, f.flow(), f.at)
	switch {
	case !f.has(flagLast):
		s.paths.learn(f.path(), nacked)
	default:
		s.paths.learn(f.path(), b2i(f.has(flagCE)))
	}
	e.trySend(h, f.flow(), f.at)
}
