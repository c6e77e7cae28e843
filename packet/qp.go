package packet

import (
	"github.com/simccl/simccl/packet/cc"
	"github.com/simccl/simccl/packet/internal/port"
	"github.com/simccl/simccl/packet/internal/qp"
	"github.com/simccl/simccl/packet/internal/route"
	"github.com/simccl/simccl/packet/internal/tiebreak"
	"github.com/simccl/simccl/units"
)

type (
	sender   = qp.Sender
	receiver = qp.Receiver
)

// openFlow creates the queue pair of a flow that starts: source port, routes, window and congestion control.
func (e *engine) openFlow(h *host, id int32, now int64) {
	if e.live != nil {
		e.live.post(h, id, now)
		return
	}
	f := &e.flows[id]
	s := &e.snd[id]
	port, known := h.sports[f.Dst]
	if !known {
		port = firstPort
	}
	h.sports[f.Dst] = port + uint16(e.paths)
	base, links := e.base+(1+e.paths)*e.slot*int(id), 0
	for k := range e.paths {
		links = e.fillRoute(base+(1+k)*e.slot, route.Key{Src: f.Src, Dst: f.Dst, SPort: port + uint16(k),
			DPort: f.DstPort}, f.Path)
	}
	e.fillRoute(base, route.Key{Src: f.Dst, Dst: f.Src, SPort: f.DstPort, DPort: port}, f.Back)
	e.rcv[id].Back = uint32(base)
	line := e.links[h.out].Nominal
	payload := int64(e.cfg.Frames.Payload)
	*s = sender{Bytes: f.Bytes, Frames: uint32((f.Bytes + payload - 1) / payload), NextAvail: now,
		Rate:   cc.Rate{Rate: line, Line: line},
		Window: e.cfg.CC.Window, Route: uint32(base + e.slot), Class: e.classOf[f.Priority]}
	if f.Window > 0 {
		s.Window = f.Window
	}
	e.ccOpen(id, s, links)
	e.result[id] = FlowResult{SrcPort: port, Start: units.Time(now)}
	h.Add(id, e.snd)
}

// fillRoute writes a route into hops at index at, either along the given cables or by hashing k, and returns
// its number of links.
func (e *engine) fillRoute(at int, k route.Key, along []int32) int {
	n := e.routes.Fill(e.hops[at:], k, along)
	for i := at; i < at+n; i++ {
		e.outs[i] = e.exits[e.hops[i]]
	}
	return n
}

// sendData sends a queue pair's next frame (a frame to be resent before new data), and sets when pacing
// allows the next one.
func (e *engine) sendData(w *worker, h *host, s *sender, l *link, id int32, now int64) {
	size, full, psn := e.full, true, s.Nxt
	if s.Gapped && s.HasGap() {
		psn, _ = s.Hole()
		s.Resent++
		w.Retransmitted++
		if known := s.Gaps.Sent(psn, s.Una); !known {
			e.lossSeen(id, s, now, 0)
		}
	} else {
		s.Nxt++
	}
	if e.live != nil || psn+1 == s.Frames {
		size, full = e.frameSize(s, id, psn)
	}
	route := s.Route
	if e.paths > 1 {
		route += uint32(e.slot) * (psn % uint32(e.paths))
	}
	aux := uint32(0)
	if k := e.cfg.CC.Kind; k != NoCC && k != DCQCN {
		aux = e.controls.Sent(id, psn, psn-s.Una, now)
	}
	if t := int64(e.cfg.Repair.Timeout); t > 0 {
		if s.Una+1 == s.Nxt {
			s.Moved = now
		}
		h.Timer = min(h.Timer, s.Moved+t)
	}
	s.Last = size
	w.sent++
	w.DataPacketHops++
	f := e.beginFrame(w, l, size, 0, now)
	f.Flow, f.Psn, f.Route, f.Aux, f.Size, f.Flags, f.Class = id, psn, route, aux, size, 0, s.Class
	l.Data += int64(size)
	if l.Credit != nil {
		l.Spend(f)
		e.gate(l, now)
	}
	if e.cfg.CC.Kind == DCQCN {
		if s.Dcqcn.Due(now) {
			s.Dcqcn.Tick(&e.cfg.CC, &s.Rate, now, e.leadTime(w, now))
		}
		if e.cfg.CC.ByteReset > 0 {
			s.Dcqcn.Count(&e.cfg.CC, &s.Rate, int64(s.Last))
		}
	}
	switch {
	case !full:
		s.NextAvail = now + e.cfg.Lasts(int(size), s.Pace(&e.cfg.CC))
	case s.Gap == 0:
		s.Gap = e.cfg.Lasts(int(size), s.Pace(&e.cfg.CC))
		fallthrough
	default:
		s.NextAvail = now + s.Gap
	}
}

// frameSize returns a frame's bytes on the wire and whether its payload is full.
func (e *engine) frameSize(s *sender, id int32, psn uint32) (bytes uint16, full bool) {
	c := &e.cfg.Frames
	n := int(s.Bytes - s.Offset(psn, c.Payload))
	if full = n == c.Payload; e.live != nil {
		n, full = e.live.queues[id].Size(psn, c.Payload, c.First, c.Last)
	}
	return uint16(n + c.Header), full
}

// beginFrame starts a frame on a link without marking or telemetry; what is 0 for data, 1 for an
// acknowledgement. It returns the frame in its place on the cable with time and tag set; the caller fills in
// the other fields.
func (e *engine) beginFrame(w *worker, l *link, size uint16, what uint8, at int64) *frame {
	l.Sent++
	l.TxBytes += int64(size)
	tag := tiebreak.Number(0)
	if e.ordered {
		l.Start, l.Begun = at, w.Sent(at, l.ID, l.Wire.Tail)
		tag = l.Begun
	}
	if l.Sizes[what] != size {
		l.Measure(e.cfg, what, size)
	}
	l.Free = at + l.Lasts[what]
	come := l.Free + l.Delay
	if l.Wire.Empty() {
		e.due[l.ID] = come
	}
	if l.Wire.Full() {
		l.Wire.Grow()
	}
	f := l.Wire.Next()
	f.At, f.Tag = come, uint32(tag)
	return f
}

// receive handles a data frame at the receiver: in order, out of order, repeated or trimmed. If it is to be
// acknowledged, receive fills ack and returns true.
func (e *engine) receive(f, ack *frame) bool {
	r := &e.rcv[f.Flow]
	if f.Flags&flagTrim != 0 {
		return port.RefuseTrimmed(r, f, ack, uint16(e.cfg.Frames.Ack))
	}
	flags := flagAck | f.Flags&flagCE
	report := f.Aux
	if gap := int64(e.cfg.CC.CNPGap); gap > 0 && flags&flagCE != 0 && !r.Notifies(f.At, gap) {
		flags &^= flagCE
	}
	if f.Psn == r.Expected && !e.cfg.Repair.Selective {
		r.Expected++
		if e.cfg.AckFrom > 1 && !e.mustAck(f.Flow, r.Expected) && (e.live == nil || flags&flagCE == 0) {
			return false
		}
	} else {
		switch r.Take(f.Psn, f.At, e.cfg.Repair.Selective, int64(e.cfg.NackGap)) {
		case qp.Apart:
			flags, report = flags|flagSack, f.Psn
		case qp.Again:
			if e.cfg.Repair.Stubborn() && r.Forget(&e.snd[f.Flow], f.At) {
				return e.receive(f, ack)
			}
			if e.cfg.Repair.Timeout == 0 {
				return false
			}
		case qp.Silent:
			return false
		case qp.Missing:
			r.Expected = e.cfg.Repair.Back(r.Expected, e.flows[f.Flow].Bytes, int64(e.cfg.Frames.Payload))
			flags |= flagNack
		}
	}
	class := f.Class
	if e.cfg.AckHigh {
		class = 0
	}
	ack.Flow, ack.Psn, ack.Route, ack.Aux, ack.Size, ack.Flags, ack.Class = f.Flow, r.Expected, r.Back,
		report, uint16(e.cfg.Frames.Ack), flags, class
	return true
}

// mustAck reports whether the receiver acknowledges after the given number of frames, with AckFrom: it
// coalesces acknowledgements by bytes.
func (e *engine) mustAck(flow int32, frames uint32) bool {
	if e.live != nil {
		return int64(frames)%e.cfg.AckFrom == 0 || e.live.queues[flow].Ends(frames)
	}
	b := min(int64(frames)*int64(e.cfg.Frames.Payload), e.flows[flow].Bytes)
	return b >= e.cfg.AckFrom || e.cfg.AckChunk > 0 && b%e.cfg.AckChunk == 0
}

// acknowledged handles an acknowledgement at the sender: progress, gaps, end of the flow, congestion control.
// It returns false if the queue pair had ended.
func (e *engine) acknowledged(w *worker, h *host, f *frame) bool {
	s := &e.snd[f.Flow]
	if s.Ended {
		return false
	}
	psn := f.Psn
	if e.cfg.Repair.BackTo > 0 {
		psn = e.cfg.Repair.Back(psn, s.Bytes, int64(e.cfg.Frames.Payload))
	}
	acked := e.ackUpTo(s, psn, f.At)
	if f.Flags&flagSack != 0 {
		s.Reported(f.Aux, e.cfg.Repair.Reorder)
	}
	if f.Flags&flagTrim != 0 {
		e.noteTrimmed(f, s)
		return true
	}
	if s.Una >= s.Frames {
		s.Ended = true
		h.Over++
		if !s.Ending {
			e.recordEnding(w, s, f)
		}
		if e.cfg.Repair.Stubborn() && s.Linger() && e.cfg.CC.Kind == DCQCN {
			s.Dcqcn.Halt(&e.cfg.CC, &s.Rate, f.At, e.leadTime(w, f.At))
		}
		if !e.result[f.Flow].Failed {
			e.result[f.Flow].End, e.result[f.Flow].Done = units.Time(f.At), true
		}
	}
	if f.Flags&flagNack != 0 {
		w.Retransmitted += e.controls.Again(f.Flow, s.Again(false))
		// a sender may retransmit even after the flow has ended, and its receiver must know that
		if e.arrivalsStable {
			e.endsBeforeHosts = true
		}
	}
	if e.cfg.CC.Kind != DCQCN || f.Flags&flagCE != 0 { // else congestion control ignores the acknowledgement
		e.ccAck(w, h, f, s, acked)
	}
	h.table.Note(&h.RoundRobin, f.Flow, s)
	return true
}

// ackUpTo records that the receiver has all frames before psn, and returns how many are newly acknowledged.
func (e *engine) ackUpTo(s *sender, psn uint32, now int64) uint32 {
	if psn <= s.Una {
		return 0
	}
	acked := psn - s.Una
	s.Advance(psn)
	if e.cfg.Repair.Timeout > 0 {
		s.Moved, s.Retries = now, 0
	}
	if s.Nxt < s.Una && !e.cfg.Repair.Stubborn() {
		s.Nxt = s.Una // a timeout may have set Nxt back below Una
	}
	return acked
}
