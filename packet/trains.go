package packet

import (
	"math/bits"

	"github.com/simccl/simccl/packet/internal/parted"
	"github.com/simccl/simccl/packet/internal/port"
	"github.com/simccl/simccl/packet/internal/train"
)

// Frames of one flow that follow each other by equal gaps travel as one record, a train, as long as nothing
// comes between them and no port makes one of them wait. Where something does, the frames are taken apart,
// and go on one by one.

// mayTrain says that frames may go in trains: nothing looks at each of them where it begins or arrives, and
// no cable is so long that its trains could not be counted.
func (e *engine) mayTrain() bool {
	c, r := &e.cfg.CC, &e.cfg.Repair
	return e.stays && port.Countable(e.links) && !e.plain && !e.single && !e.ordered && !e.picky &&
		e.given == nil && e.paths == 1 && e.classes == 2 && e.cfg.AckFrom <= 1 &&
		(c.Kind == NoCC || c.Kind == DCQCN) && c.ByteReset == 0 && !c.VarWindow && r.Timeout == 0 &&
		!r.Selective && r.BackTo == 0 && e.cfg.Buffer.Trim == 0
}

// depart puts a train on the cable, as Link.Depart does.
func (e *engine) depart(w *worker, l *link, f *frame, at, from int64) {
	n := train.Frames(f)
	if w.trains += n; f.Flags&flagAck == 0 {
		w.DataPacketHops += n
	}
	l.Depart(f, at, from)
	e.due[l.ID] = l.Wire.Front().At
}

// byTrains simulates a host up to end if trains come to it, or all it does is to send one, and returns how
// many records came; else it is not done. The frames of trains that are not answered as such go on one by
// one.
func (e *engine) byTrains(w *worker, h *host, in *link, end int64) (n int, done bool) {
	q, rides := &in.Wire, in.Trains > 0
	if !rides && (e.search.Rests() || len(h.Pairs) != 1) {
		return 0, false
	}
	to := q.Head
	var come []frame
	if rides {
		come = in.Unload(end, h.arrived[:0])
		h.arrived = come[:0]
	} else {
		to = q.Before(end)
		come = q.Between(q.Head, to, &h.arrived)
	}
	n = len(come)
	come, done = e.byTrain(w, h, come, end)
	switch {
	case done:
		e.search.Moved = true
	case !rides:
		return 0, false
	default:
		w.apart = train.All(come, w.apart[:0])
		e.runHost(w, h, w.apart, end)
	}
	if !rides {
		q.Head = to
	}
	if n > 0 {
		e.due[in.ID] = q.First()
	}
	return n, true
}

// byTrain simulates a host up to end if all it does is to send one train or to acknowledge some. If it
// acknowledges only the first of what has come, it returns the others.
func (e *engine) byTrain(w *worker, h *host, come []frame, end int64) (left []frame, done bool) {
	if h.out < 0 || h.Wake != 0 || h.Timer < end || h.First < end || e.links[h.out].Paused != 0 {
		return come, false
	}
	switch l := &e.links[h.out]; {
	case len(h.Pairs) == 0:
		return e.answerTrains(w, h, l, come, end)
	case len(h.Pairs) == 1 && h.InFlight:
		return come, e.sendTrain(w, h, l, come, end)
	}
	return come, false
}

// singles is for how many windows a host sends no trains after one was taken apart.
const singles = 32

// sendTrain sends the frames that start before end of the only queue pair of a host as a train, if nothing
// but acknowledgements comes and its window would not hold it.
func (e *engine) sendTrain(w *worker, h *host, l *link, come []frame, end int64) bool {
	if h.single > 0 {
		h.single--
		return false
	}
	id := h.Pairs[0]
	s, free, lasts := &e.snd[id], l.Free, l.Lasts[0]
	if s.Gap == 0 || s.Gap > lasts || s.NextAvail > free || free >= end || s.Gapped || s.Ended ||
		l.Sizes[0] != e.full || !h.acks.Empty() || lasts > train.MostGap {
		return false
	}
	n := (end-1-free)/lasts + 1
	if n < 2 || n > train.Most || int64(s.Nxt)+n >= int64(s.Frames) || e.cfg.CC.Kind == DCQCN &&
		s.Dcqcn.Due(end) {
		return false
	}
	una, ok := train.Una(come, train.Sending{Flow: id, Una: s.Una, Nxt: s.Nxt, Most: train.Within(s.Window,
		int64(e.cfg.Frames.Payload)), Free: free, Lasts: lasts, Frames: n}, flagAck)
	if !ok {
		return false
	}
	s.Una = una
	f := frame{At: free, Flow: id, Psn: s.Nxt, Route: s.Route, Size: e.full, Class: s.Class}
	train.Of(&f, n, lasts)
	e.depart(w, l, &f, free, 0)
	s.Nxt += uint32(n)
	s.NextAvail = free + (n-1)*lasts + s.Gap
	s.Last = e.full
	w.sent += n
	h.Last = 0
	return true
}

// answerTrains is answer where trains have come; it returns those that it has not answered.
func (e *engine) answerTrains(w *worker, h *host, l *link, come []frame, end int64) (left []frame,
	done bool) {
	for i := range come {
		f := &come[i]
		if !train.Is(f) || f.Flags != 0 || e.rcv[f.Flow].Expected != f.Psn {
			return come[i:], false
		}
		e.catchUp(w, h, l, f.At)
		if !h.acks.Empty() || !e.answerTrain(w, l, f, end) {
			return come[i:], false
		}
		h.InFlight = true
		e.rcv[f.Flow].Expected += uint32(train.Frames(f))
	}
	h.InFlight = l.Free >= end
	return nil, true
}

// answerTrain acknowledges a train if nothing has to wait.
func (e *engine) answerTrain(w *worker, a *link, f *frame, end int64) bool {
	r, class := &e.rcv[f.Flow], f.Class
	if e.cfg.AckHigh {
		class = train.Many
	}
	ack := frame{At: f.At, Flow: f.Flow, Psn: r.Expected + 1, Route: r.Back, Aux: f.Aux, Size: e.ack,
		Flags: flagAck, Class: class}
	first := a.Line(e.cfg, &ack)
	if !first.Takes(&ack) || a.Odd {
		return false
	}
	b := &e.links[e.hops[ack.Route+1]]
	if !a.Ahead || !b.Ahead {
		e.depart(w, a, &ack, f.At, 0)
		return true
	}
	second := b.Line(e.cfg, &ack)
	if ack.At += a.Lasts[flagAck] + a.Delay; b.Free >= ack.At || !second.Takes(&ack) {
		return false
	}
	n := train.Frames(f)
	a.Free, a.Sent, a.TxBytes = first.Free, a.Sent+uint64(n), a.TxBytes+n*int64(ack.Size)
	b.Peak = max(b.Peak, int64(ack.Size))
	ack.Route++
	e.depart(w, b, &ack, ack.At, end)
	return true
}

// takeTrains is take where trains are on the link.
func (e *engine) takeTrains(w *worker, s *swtch, l *link, port uint16, end int64, arrived []frame) ([]frame,
	int64) {
	n, first, from, bytes := len(arrived), len(arrived), end-e.look, int64(0)
	for arrived = l.Unload(end, arrived); n < len(arrived); n++ {
		g := &arrived[n]
		g.Route++
		if g.Tag = uint32(port); train.Is(g) {
			out := e.outs[g.Route]
			s.trains[out/64] |= 1 << (out % 64)
			s.riding = true
		}
		bytes += int64(g.Size) * train.Frames(g)
	}
	if s.apart {
		e.sort(w, s, arrived, first, port, from)
	}
	return arrived, bytes
}

// carryTrains lets trains pass the ports of a switch, and takes those apart that do not.
func (e *engine) carryTrains(w *worker, s *swtch, end int64) {
	for i, some := range s.trains {
		for s.trains[i] = 0; some != 0; some &= some - 1 {
			p := 64*i + bits.TrailingZeros64(some)
			if l := &e.links[s.out[p]]; e.carry(w, s, l, p, end) {
				w.Instead(p, nil)
			}
		}
	}
	s.riding = false
}

// carry lets what leaves by a port pass, trains among it, if nothing has to wait. If something has, trains
// are taken apart, and it returns false.
func (e *engine) carry(w *worker, s *swtch, l *link, port int, end int64) bool {
	keys := w.Added(port)
	if !l.Passes(e.cfg, s.arrived, keys) {
		e.spread(w, s, port, keys, end)
		return false
	}
	for _, key := range keys {
		f := &s.arrived[key&parted.Place]
		if l.Peak = max(l.Peak, int64(f.Size)); train.Is(f) {
			l.Line(e.cfg, f)
			e.depart(w, l, f, f.At, 0)
		} else {
			e.transmit(w, l, f, f.At, 0)
		}
	}
	if e.vague {
		w.peak = max(w.peak, l.Peak)
	}
	return true
}

// spread takes the trains apart among the frames that leave by a port. Their hosts send none for some
// windows: what one port takes apart another will.
func (e *engine) spread(w *worker, s *swtch, port int, keys []uint64, end int64) {
	from, first := len(s.arrived), end-e.look
	for _, key := range keys {
		f := s.arrived[key&parted.Place]
		if s.arrived = train.Apart(&f, s.arrived); train.Is(&f) {
			e.hosts[e.hostOf[e.flows[f.Flow].Src]].single = singles
		}
		if train.Class(&f) == 0 {
			s.control[port/64] |= 1 << (port % 64)
		}
	}
	w.keys = w.keys[:0]
	for i := from; i < len(s.arrived); i++ {
		w.keys = append(w.keys, parted.Key(s.arrived[i].At-first, i))
	}
	w.Instead(port, w.keys)
}

// unload takes all trains apart that arrived at a switch in a window.
func (e *engine) unload(w *worker, s *swtch) {
	if s.riding {
		w.apart = train.All(s.arrived, w.apart[:0])
		s.arrived, w.apart, s.riding = w.apart, s.arrived, false
		clear(s.trains)
	}
}
