package packet

import "github.com/simccl/simccl/sim/wire/packet/internal/instant"

// A host that only receives has acknowledgements alone on its link. Where they leave its switch
// over links to hosts that send to this host alone, nothing else is on those, so nothing holds
// them up: each is put onto the second cable at once. A switch that may come to
// pause a neighbour takes back what has not reached it yet.

// findDirect finds such links.
func (e *engine) findDirect() {
	c := e.cfg
	if e.given != nil || len(e.workers) > 1 || e.picky || c.Buffer.Credits > 0 || len(c.Faults) > 0 || c.CC.Kind == Pint {
		return
	}
	const none, several = -1, -2
	to, gets := make([]int32, len(e.hosts)), make([]bool, len(e.hosts))
	for i := range to {
		to[i] = none
	}
	for i := range e.flows {
		src, dst := e.hostOf[e.flows[i].Src], e.hostOf[e.flows[i].Dst]
		if gets[dst] = true; to[src] == none || to[src] == dst {
			to[src] = dst
		} else {
			to[src] = several
		}
	}
	of := map[int32]*swtch{}
	for i := range e.switches {
		of[e.switches[i].node] = &e.switches[i]
	}
	for x, dst := range to {
		if dst < 0 || gets[x] || to[dst] != none {
			continue
		}
		a, b := &e.links[e.hosts[dst].out], &e.links[e.hosts[x].in]
		if s := of[b.from]; s != nil && a.to == b.from && !a.lossy && !b.lossy && e.bound(s) {
			a.ahead, b.feeder, b.ahead = true, a.id, true
			s.direct = append(s.direct, b.id)
		}
	}
}

// bound finds out how much can arrive at a switch in a window.
func (e *engine) bound(s *swtch) bool {
	if s.most != nil {
		return s.mostAll >= 0
	}
	s.most = make([]int64, len(s.in))
	for p, id := range s.in {
		for _, size := range [2]uint16{e.full, e.ack} {
			t := e.lasts(int(size), e.links[id].rate)
			if t == 0 {
				s.mostAll = -1
				return false
			}
			s.most[p] = max(s.most[p], (e.look/t+2)*int64(size))
		}
		s.mostAll += s.most[p]
	}
	return true
}

// sendAck starts an acknowledgement of a host.
func (e *engine) sendAck(w *worker, a *link, f *frame, at int64) {
	if !a.ahead || !e.links[e.hops[f.route+1]].ahead {
		e.transmit(w, a, f, at, 0)
		return
	}
	b := &e.links[e.hops[f.route+1]]
	what := f.flags & flagAck
	if a.sizes[what] != f.size {
		e.measure(a, what, f.size)
	}
	if b.sizes[what] != f.size {
		e.measure(b, what, f.size)
	}
	come := at + a.lasts[what] + a.delay
	if b.free >= come { // it would have to wait
		s := e.switchOf(b.from)
		e.shut(w, s, e.began)
		s.direct = nil
		e.transmit(w, a, f, at, 0)
		return
	}
	if e.ordered {
		a.start, a.begun = at, w.Sent(at, a.id, a.wire.tail)
	}
	a.sent++
	a.txBytes += int64(f.size)
	a.free = at + a.lasts[what]
	e.onward1(w, b, f, come, a.begun)
}

// onward1
func (e *engine) onward1(w *worker, b *link, f *frame, at int64, n instant.Number) {
	tag := instant.Number(0)
	if e.ordered {
		w.Happens(n)
		b.start, b.begun = at, w.Sent(at, b.id, b.wire.tail)
		tag = b.begun
	}
	if f.class != 0 {
		b.turn = f.class
	}
	b.peak = max(b.peak, int64(f.size))
	b.sent++
	b.txBytes += int64(f.size)
	b.free = at + b.lasts[f.flags&flagAck]
	if b.wire.empty() {
		e.due[b.id] = b.free + b.delay
	}
	f.route++
	b.wire.pass(f, b.free+b.delay, uint32(tag))
	f.route--
}

// switchOf is the switch that is a node.
func (e *engine) switchOf(node int32) *swtch {
	for i := range e.switches {
		if e.switches[i].node == node {
			return &e.switches[i]
		}
	}
	return nil
}

// foresee lets nothing be ahead of a switch that may pause a neighbour in the window that begins.
func (e *engine) foresee(w *worker, s *swtch) {
	calm := s.CalmWith(s.most, s.mostAll)
	switch {
	case !calm && s.closed < len(s.direct):
		e.shut(w, s, e.began)
	}
}

// shut takes back what was put onto links but is not at their switch before a time.
func (e *engine) shut(w *worker, s *swtch, from int64) {
	for _, id := range s.direct {
		b := &e.links[id]
		if !b.ahead {
			continue
		}
		b.ahead = false
		s.closed++
		a, q, some := &e.links[b.feeder], &b.wire, false
		for !q.empty() {
			f := &q.buf[(q.tail-1)&uint32(len(q.buf)-1)]
			at := f.at - b.delay - b.lasts[f.flags&flagAck]
			if at < from {
				break
			}
			some = true
			q.tail--
			b.sent--
			b.txBytes -= int64(f.size)
			g := *f
			g.at, g.route, g.tag = at, f.route-1, 0
			if e.ordered {
				g.tag = uint32(w.Led(instant.Number(f.tag)))
			}
			a.wire.insert(&g)
			e.due[a.id] = a.wire.front().at
		}
		if !some {
			continue
		}
		if b.free = from - 1; !q.empty() {
			f := &q.buf[(q.tail-1)&uint32(len(q.buf)-1)]
			b.free = f.at - b.delay
			b.start, b.begun = b.free-b.lasts[f.flags&flagAck], instant.Number(f.tag)
		}
		e.due[id] = q.first()
	}
}

// answer lets a host that only receives acknowledge what has come, up to the first frame that is
// no data, and returns how many frames that are.
func (e *engine) answer(w *worker, h *host, l *link, end int64) (i int) {
	for ; i < len(h.come); i++ {
		f := &h.come[i]
		if f.flow < 0 || f.flags&flagAck != 0 {
			return i
		}
		e.catchUp(w, h, l, f.at)
		e.came(w, h, f)
		var ack frame
		switch {
		case !e.receive(f, &ack):
		case h.acks.empty() && l.free < f.at:
			h.inFlight = true
			e.sendAck(w, l, &ack, f.at)
		default:
			h.acks.push(&ack)
		}
	}
	e.catchUp(w, h, l, end)
	h.inFlight = l.free >= end
	return i
}

// catchUp starts the acknowledgements of a host that start before a time.
func (e *engine) catchUp(w *worker, h *host, l *link, until int64) {
	for !h.acks.empty() && l.free < until {
		f := h.acks.front()
		h.acks.head++
		e.completed(w, l)
		h.inFlight = true
		e.sendAck(w, l, f, l.free)
	}
}
