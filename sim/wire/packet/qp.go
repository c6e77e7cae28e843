package packet

import (
	"github.com/simccl/simccl/sim/wire/packet/cc"
	"github.com/simccl/simccl/sim/wire/packet/internal/gaps"
	"github.com/simccl/simccl/sim/wire/packet/internal/route"
	"github.com/simccl/simccl/units"
)

// sender is the sending half of a queue pair.
//
// What each frame touches is in the first line of a cache, and with DCQCN in the second.
type sender struct {
	frames, nxt, una uint32 // data frames in all, the next, the first not acknowledged
	class            uint8
	ending, ended    bool
	gapped           bool  // gaps is in use
	nextAvail        int64 // when pacing lets it send
	cc.Rate
	window int64 // bytes; 0: none
	route  uint32
	last   uint16 // size of the frame sent last
	listed bool   // of a Live run: among its host's queue pairs
	_      [1]byte

	dcqcn   cc.Reaction
	bytes   int64
	retries int32
	resent  uint32    // frames
	moved   int64     // when una last moved, or sending began
	gaps    gaps.Gaps // to a whole line of a cache
}

// receiver is the receiving half.
type receiver struct {
	expected uint32
	lastNak  uint32
	nakAt    int64 // before then no other NAK of the same frame
	back     uint32
	cnpAt    int64       // no notification before then
	came     gaps.Bitmap // frames above expected that came, with selective repeat
	_        [8]byte
}

// open makes a queue pair at the start of its flow.
func (e *engine) open(h *host, id int32, now int64) {
	if e.given != nil {
		e.given.post(h, id, now)
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
		links = e.fill(base+(1+k)*e.slot, route.Key{Src: f.Src, Dst: f.Dst, SPort: port + uint16(k), DPort: f.DstPort})
	}
	e.fill(base, route.Key{Src: f.Dst, Dst: f.Src, SPort: f.DstPort, DPort: port})
	e.rcv[id].back = uint32(base)
	line := e.links[h.out].rate
	payload := int64(e.cfg.Frames.Payload)
	*s = sender{bytes: f.Bytes, frames: uint32((f.Bytes + payload - 1) / payload), nextAvail: now, Rate: cc.Rate{Rate: line, Line: line},
		window: e.cfg.CC.Window, route: uint32(base + e.slot), class: e.classOf[f.Priority]}
	if f.Window > 0 {
		s.window = f.Window
	}
	e.ccOpen(id, s, links)
	e.result[id] = FlowResult{SrcPort: port, Start: units.Time(now)}
	h.qps = append(h.qps, id)
}

// fill writes a route, and by which ports it leads on, and returns how many links it has.
func (e *engine) fill(at int, k route.Key) int {
	n := e.routes.Fill(e.hops[at:], k)
	for i := at; i < at+n; i++ {
		e.outs[i] = e.exits[e.hops[i]]
	}
	return n
}

// offset is the first byte of a data frame.
func (e *engine) offset(s *sender, psn uint32) int64 {
	return min(int64(psn)*int64(e.cfg.Frames.Payload), s.bytes)
}

// windowBound says that a queue pair has as much in flight as it may.
func (e *engine) windowBound(s *sender, now int64) bool {
	w := s.window
	if flight := int64(s.nxt-s.una) * int64(e.cfg.Frames.Payload); w == 0 || flight < w && !e.cfg.CC.VarWindow {
		return false
	}
	if e.cfg.CC.VarWindow {
		if e.cfg.CC.Kind == DCQCN {
			s.dcqcn.Tick(&e.cfg.CC, &s.Rate, now, 0)
		}
		w = max(1, int64(float64(w)*float64(s.Rate.Rate)/float64(s.Line)))
	}
	flight := e.offset(s, s.nxt) - e.offset(s, s.una)
	if e.cfg.Buffer.Trim > 0 {
		flight -= e.elsewhere(s)
	}
	return flight >= w
}

// sendData sends the next frame of a queue pair.
func (e *engine) sendData(w *worker, h *host, l *link, id int32, now int64) {
	s := &e.snd[id]
	size := e.cfg.Frames.Payload
	full, psn := true, s.nxt
	if s.gapped && s.hasGap() {
		psn, _ = s.hole()
		s.resent++
		w.retx++
		if known := s.gaps.Sent(psn, s.una); !known {
			e.lossSeen(id, s, now, 0)
		}
	} else {
		s.nxt++
	}
	if e.given != nil {
		size, full = e.given.size(id, psn, size)
	} else if psn+1 == s.frames {
		size = int(s.bytes - e.offset(s, psn))
		full = size == e.cfg.Frames.Payload
	}
	size += e.cfg.Frames.Header
	route := s.route
	if e.paths > 1 {
		route += uint32(e.slot) * (psn % uint32(e.paths))
	}
	f := frame{flow: id, psn: psn, route: route, size: uint16(size), class: s.class}
	e.ccStamp(&f, now)
	if t := int64(e.cfg.Repair.Timeout); t > 0 {
		if s.una+1 == s.nxt {
			s.moved = now
		}
		h.timer = min(h.timer, s.moved+t)
	}
	s.last = f.size
	w.sent++
	e.transmit(w, l, &f, now, 0)
	if l.credit != nil {
		e.gate(l, now)
	}
	if e.cfg.CC.Kind == DCQCN {
		if s.dcqcn.Due(now) {
			s.dcqcn.Tick(&e.cfg.CC, &s.Rate, now, e.notice(w, now))
		}
		if e.cfg.CC.ByteReset > 0 {
			s.dcqcn.Count(&e.cfg.CC, &s.Rate, int64(s.last))
		}
	}
	switch {
	case !full:
		s.nextAvail = now + e.lasts(size, e.paceRate(s))
	case s.Gap == 0:
		s.Gap = e.lasts(size, e.paceRate(s))
		fallthrough
	default:
		s.nextAvail = now + s.Gap
	}
}

func (e *engine) paceRate(s *sender) int64 {
	if e.cfg.CC.Unpaced {
		return s.Line
	}
	return s.Rate.Rate
}

// receive handles a data frame; it reports whether it is to be acknowledged, and how.
func (e *engine) receive(f, ack *frame) bool {
	r := &e.rcv[f.flow]
	if f.flags&flagTrim != 0 {
		return e.refuse(r, f, ack)
	}
	flags := flagAck | f.flags&flagCE
	report := f.aux
	if gap := int64(e.cfg.CC.CNPGap); gap > 0 && flags&flagCE != 0 {
		if f.at < r.cnpAt {
			flags &^= flagCE
		} else {
			r.cnpAt = f.at + gap
		}
	}
	switch {
	case e.cfg.Repair.Selective && f.psn >= r.expected:
		if f.psn != r.expected {
			flags |= flagSack
			report = f.psn
		}
		r.expected = r.came.Take(f.psn, r.expected)
	case f.psn == r.expected:
		r.expected++
		if e.cfg.AckFrom > 1 && !e.acks(f.flow, r.expected) && (e.given == nil || flags&flagCE == 0) {
			return false
		}
	case f.psn < r.expected:
		if e.cfg.Repair.Timeout == 0 {
			return false // a duplicate
		}
	default:
		if f.at < r.nakAt && r.lastNak == r.expected {
			return false
		}
		r.nakAt, r.lastNak = f.at+int64(e.cfg.NackGap), r.expected
		r.expected = e.backTo(r.expected, e.flows[f.flow].Bytes)
		flags |= flagNack
	}
	class := f.class
	if e.cfg.AckHigh {
		class = 0
	}
	*ack = frame{flow: f.flow, psn: r.expected, route: r.back, aux: report, size: uint16(e.cfg.Frames.Ack), flags: flags, class: class}
	return true
}

// acks says whether the receiver acknowledges once it has so many frames.
func (e *engine) acks(flow int32, frames uint32) bool {
	if e.given != nil {
		return int64(frames)%e.cfg.AckFrom == 0 || e.given.queues[flow].Ends(frames)
	}
	b := min(int64(frames)*int64(e.cfg.Frames.Payload), e.flows[flow].Bytes)
	return b >= e.cfg.AckFrom || e.cfg.AckChunk > 0 && b%e.cfg.AckChunk == 0
}

// acknowledged handles an acknowledgement; it reports whether the queue pair
// still exists.
func (e *engine) acknowledged(w *worker, h *host, f *frame) bool {
	s := &e.snd[f.flow]
	if s.ended {
		return false
	}
	acked, psn := uint32(0), f.psn
	if e.cfg.Repair.BackTo > 0 {
		psn = e.backTo(psn, s.bytes)
	}
	if psn > s.una {
		acked = psn - s.una
		s.advance(psn)
		s.moved, s.retries = f.at, 0
		s.nxt = max(s.nxt, s.una) // a timeout may have set it back behind
	}
	if f.flags&flagSack != 0 {
		s.reported(f.aux, e.cfg.Repair.Reorder)
	}
	if f.flags&flagTrim != 0 {
		e.refused(f, s)
		return true
	}
	if s.una >= s.frames {
		s.ended = true
		h.over++
		if !e.result[f.flow].Failed {
			e.result[f.flow].End, e.result[f.flow].Done = units.Time(f.at), true
		}
	}
	if f.flags&flagNack != 0 {
		w.retx += int64(s.nxt - s.una)
		s.resent += s.nxt - s.una
		s.nxt = s.una
	}
	e.ccAck(w, h, f, s, acked)
	return true
}
