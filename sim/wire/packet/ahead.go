package packet

import (
	"github.com/simccl/simccl/sim/wire/packet/internal/instant"
	"github.com/simccl/simccl/sim/wire/packet/internal/train"
	"github.com/simccl/simccl/sim/wire/packet/spec"
)

// A host that only receives has acknowledgements alone on its link. Where they leave its switch
// over links to hosts that send to this host alone, nothing else is on those, so nothing holds
// them up: each is put onto the second cable at once. A switch that may come to
// pause a neighbour takes back what has not reached it yet.

// findDirect finds such links.
func (e *engine) findDirect() {
	if e.plain || !e.stays || e.picky || e.cfg.CC.Kind == Pint {
		return
	}
	of := map[int32]*swtch{}
	for i := range e.switches {
		of[e.switches[i].node] = &e.switches[i]
	}
	for x, dst := range spec.OneWay(e.net.Nodes, e.flows) {
		if dst < 0 {
			continue
		}
		a, b := &e.links[e.hosts[e.hostOf[dst]].out], &e.links[e.hosts[e.hostOf[x]].in]
		if s := of[b.from]; s != nil && a.to == b.from {
			a.ahead, b.ahead, b.feeder = true, true, a.id
			s.direct = append(s.direct, b.id)
		}
	}
	for i := range e.switches {
		if s := &e.switches[i]; s.direct != nil {
			for p, id := range s.in {
				s.Expect(p, int64(e.full), e.look, e.links[id].whole)
				s.Expect(p, int64(e.ack), e.look, e.links[id].ack)
			}
		}
	}
}

// sendAck starts an acknowledgement of a host, over both cables if it can.
func (e *engine) sendAck(w *worker, a *link, f *frame, at int64) {
	b, what := a, f.Flags&flagAck
	if a.ahead {
		b = &e.links[e.hops[f.Route+1]]
	}
	if !b.ahead {
		e.transmit(w, a, f, at, 0)
		return
	}
	if a.sizes[what] != f.Size {
		e.measure(a, what, f.Size)
	}
	come := at + a.lasts[what] + a.delay
	if b.free >= come { // it would have to wait
		for i := range e.switches {
			if s := &e.switches[i]; s.node == b.from {
				e.shut(w, s, e.began+e.lag)
			}
		}
		e.transmit(w, a, f, at, 0)
		return
	}
	if b.sizes[what] != f.Size {
		e.measure(b, what, f.Size)
	}
	tag := instant.Number(0)
	if e.ordered {
		a.start, a.begun = at, w.Sent(at, a.id, a.wire.Tail)
		w.Happens(a.begun)
		b.start, b.begun = come, w.Sent(come, b.id, b.wire.Tail)
		tag = b.begun
	}
	a.sent, b.sent = a.sent+1, b.sent+1
	a.txBytes, b.txBytes = a.txBytes+int64(f.Size), b.txBytes+int64(f.Size)
	a.free, b.free = at+a.lasts[what], come+b.lasts[what]
	b.peak = max(b.peak, int64(f.Size))
	if f.Class != 0 {
		b.turn = f.Class
	}
	if b.wire.Empty() {
		e.due[b.id] = b.free + b.delay
	}
	f.Route++
	if b.wire.Full() {
		b.wire.Grow()
	}
	b.wire.Next().Set(f, b.free+b.delay, uint32(tag))
}

// shut takes back what was put onto links but is not at their switch before a time, and lets
// nothing be ahead of it any more.
func (e *engine) shut(w *worker, s *swtch, from int64) {
	for _, id := range s.direct {
		b := &e.links[id]
		a, q, n := &e.links[b.feeder], &b.wire, b.sent
		if b.trains > 0 {
			train.Unload(q)
			b.trains = 0
		}
		for b.ahead = false; !q.Empty(); b.sent-- {
			f := q.Last()
			at := f.At - b.delay - b.lasts[f.Flags&flagAck]
			if at < from {
				b.free, b.start, b.begun = f.At-b.delay, at, instant.Number(f.Tag)
				break
			}
			q.Tail--
			b.txBytes -= int64(f.Size)
			f.At, f.Route = at, f.Route-1
			if e.ordered {
				f.Tag = uint32(w.Led(instant.Number(f.Tag)))
			}
			a.wire.Insert(f)
			e.due[a.id] = a.wire.Front().At
		}
		if b.sent < n && q.Empty() {
			b.free = from - 1
		}
		e.due[id] = q.First()
	}
	s.direct = nil
}

// answer lets a host that only receives acknowledge what has come, up to the first frame that is
// no data, and returns how many frames that are.
func (e *engine) answer(w *worker, h *host, l *link, come []frame, end int64) (i int) {
	for ; i < len(come); i++ {
		f := &come[i]
		if f.Flow < 0 || f.Flags&flagAck != 0 {
			return i
		}
		if !h.acks.Empty() {
			e.catchUp(w, h, l, f.At)
		}
		e.came(w, h, f)
		var ack frame
		switch {
		case !e.receive(f, &ack):
		case h.acks.Empty() && l.free < f.At:
			h.inFlight = true
			e.sendAck(w, l, &ack, f.At)
		default:
			h.acks.Push(&ack)
		}
	}
	e.catchUp(w, h, l, end)
	h.inFlight = l.free >= end
	return i
}

// catchUp starts the acknowledgements of a host that start before a time.
func (e *engine) catchUp(w *worker, h *host, l *link, until int64) {
	for !h.acks.Empty() && l.free < until {
		f := h.acks.Front()
		h.acks.Head++
		e.completed(w, l)
		h.inFlight = true
		e.sendAck(w, l, f, l.free)
	}
}
