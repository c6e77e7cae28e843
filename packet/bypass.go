package packet

import (
	"github.com/simccl/simccl/packet/internal/port"
	"github.com/simccl/simccl/packet/internal/tiebreak"
	"github.com/simccl/simccl/packet/spec"
)

// The link of a host that only receives carries acknowledgements alone. Where its switch sends them on over
// links to hosts that send to this host alone, no other frame is on those links and nothing delays the
// acknowledgements: each is put onto the second cable at once, past the switch. When a switch may have to
// pause a neighbour, it takes back the acknowledgements that have not reached it yet (stopBypass).

// cooldownWindows is how long a switch waits after a failed attempt to resume the bypass.
const cooldownWindows = 15

// findDirect finds the links that bypass their switch: the last hop to a host whose only sender is one
// receiver's NIC at the same switch.
func (e *engine) findDirect() {
	if e.noFastPath || !e.arrivalsStable || e.egressPerFrame {
		return
	}
	for x, dst := range spec.OneWay(e.net.Nodes, e.flows) {
		if dst < 0 {
			continue
		}
		a, b := &e.links[e.hosts[e.hostOf[dst]].out], &e.links[e.hosts[e.hostOf[x]].in]
		if i := e.hostOf[b.From]; i < 0 && a.To == b.From {
			s := &e.switches[^i]
			a.Ahead, b.Ahead, b.Feeder = true, true, a.ID
			s.bypassing = append(s.bypassing, b.ID)
		}
	}
	for i := range e.switches {
		if s := &e.switches[i]; s.bypassing != nil {
			s.bypassable = s.bypassing
			for p, id := range s.in {
				s.Expect(p, int64(e.full), e.lookahead, e.links[id].Whole)
				s.Expect(p, int64(e.ack), e.lookahead, e.links[id].Ack)
			}
		}
	}
}

// findSenders marks the hosts that receive no data, and sets up the fast paths of hosts that only send or
// only receive.
func (e *engine) findSenders() {
	w, receives := &e.workers[0], spec.Receivers(e.net.Nodes, e.flows)
	w.sink = port.NewHostReceiver(e.cfg, w.order, e.links, e.hops, e.rcv, e.due)
	w.solo = port.NewHostSender(e.cfg, &e.controls, w.order, e.due)
	for i := range e.hosts {
		if h := &e.hosts[i]; w.solo != nil && h.out >= 0 && !receives[h.node] {
			h.In, h.Out = &e.links[h.in], &e.links[h.out]
		}
	}
}

// sendAck starts a host's acknowledgement; where the bypass is open it occupies both cables at once.
func (e *engine) sendAck(w *worker, a *link, f *frame, at int64) {
	b, what := a, f.Flags&flagAck
	if a.Ahead {
		b = &e.links[e.hops[f.Route+1]]
	}
	if !b.Ahead {
		e.transmit(w, a, f, at, 0)
		return
	}
	if a.Sizes[what] != f.Size {
		a.Measure(e.cfg, what, f.Size)
	}
	come := at + a.Lasts[what] + a.Delay
	if b.Free >= come { // it would have to wait at the second cable
		e.stopBypass(w, &e.switches[^e.hostOf[b.From]], e.began+e.lag)
		e.transmit(w, a, f, at, 0)
		return
	}
	if b.Sizes[what] != f.Size {
		b.Measure(e.cfg, what, f.Size)
	}
	if a.Both(b, f, at, w.order) {
		e.due[b.ID] = b.Free + b.Delay
	}
}

// stopBypass closes the bypass of a switch: acknowledgements that the bypass put on a last hop, and that
// reach the switch only after from (ps), return to the cable before it.
func (e *engine) stopBypass(w *worker, s *switchNode, from int64) {
	for _, id := range s.bypassing {
		b := &e.links[id]
		var led func(tiebreak.Number) tiebreak.Number
		if e.ordered {
			led = w.Led
		}
		if b.TakeBack(&e.links[b.Feeder], from, led) {
			e.due[b.Feeder] = e.links[b.Feeder].Wire.First()
		}
		e.due[id] = b.Wire.First()
	}
	s.bypassing = nil
}

// resumeBypass opens the bypass of a switch again. If a queue or a pause prevents that, it is not tried again
// for cooldownWindows.
func (e *engine) resumeBypass(w *worker, s *switchNode, from int64) {
	if s.cooldown > 0 {
		s.cooldown--
		return
	}
	if s.bypassing = s.bypassable; !port.Reopen(e.cfg, e.links, s.bypassable, e.hops, e.due, w.order) {
		s.cooldown = cooldownWindows
		e.stopBypass(w, s, from)
	}
}

// ackInOrder acknowledges the leading in-order data frames of come at a host that only receives, without the
// event loop, and returns how many frames it handled.
func (e *engine) ackInOrder(w *worker, h *host, l *link, come []frame, end int64) (i int) {
	if w.sink != nil && h.acks.Empty() {
		i = w.sink.Run(l, come)
	}
	for ; i < len(come); i++ {
		f := &come[i]
		if f.Flow < 0 || f.Flags&flagAck != 0 {
			return i
		}
		if !h.acks.Empty() {
			e.catchUp(w, h, l, f.At)
		}
		e.noteHostArrival(w, h, f)
		var ack frame
		switch {
		case !e.receive(f, &ack):
		case h.acks.Empty() && l.Free < f.At:
			h.InFlight = true
			e.sendAck(w, l, &ack, f.At)
		default:
			h.acks.Push(&ack)
		}
	}
	e.catchUp(w, h, l, end)
	h.InFlight = l.Free >= end
	return i
}

// catchUp starts the queued acknowledgements that begin before a time.
func (e *engine) catchUp(w *worker, h *host, l *link, until int64) {
	for !h.acks.Empty() && l.Free < until {
		f := h.acks.Front()
		h.acks.Head++
		e.noteCompletion(w, l)
		h.InFlight = true
		e.sendAck(w, l, f, l.Free)
	}
}
