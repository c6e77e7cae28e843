package uec

import "slices"

// host is a node with one NIC: control frames and flows that wait for it.
type host struct {
	id      int32
	busy    bool
	free    int64 // when the NIC is free; valid if busy
	small   int64 // ps that a control frame takes
	lasts   int64 // ps that a data frame of size takes
	size    uint16
	control fifo
	active  ring[int32] // flows, each once
	turn    int         // of control and data
	starts  []begin     // sorted
	timers  []int32     // flows with a retransmission timer
	soonest int64       // of the timers
	arrived []frame
}

// begin is a flow that starts.
type begin struct {
	at   int64
	flow int32
}

// Of eleven frames that a NIC sends while both wait, one is data.
const turns = 11

func (e *engine) begin(flow int32, at int64) {
	h := &e.hosts[e.flows[flow].Src]
	i, _ := slices.BinarySearchFunc(h.starts, at, func(b begin, t int64) int {
		if b.at <= t {
			return -1
		}
		return 1
	})
	h.starts = slices.Insert(h.starts, i, begin{at, flow})
	e.acts[h.id] = min(e.acts[h.id], at)
}

// nextEvent returns when a host does something of its own.
func (h *host) nextEvent(e *engine) int64 {
	t := never
	if len(h.starts) > 0 {
		t = h.starts[0].at
	}
	if h.busy {
		t = min(t, h.free)
	}
	if len(h.timers) > 0 {
		t = min(t, h.soonest)
	}
	return t
}

// pullHost takes what arrives before end off the link, in place of what a list had, and notes which
// flows end with it.
func (e *engine) pullHost(h *host, arrived []frame, end int64) []frame {
	l := &e.links[2*h.id+1]
	low, hi := &l.low, &l.hi
	arrived = arrived[:0]
	for {
		q, x, y := low, never, never
		if low.head != low.sent {
			x = low.at(low.head).at
		}
		if hi.head != hi.sent {
			y = hi.at(hi.head).at
		}
		if y < x {
			q, x = hi, y
		}
		if x >= end {
			break
		}
		f := q.at(q.head)
		q.head++
		arrived = extend(arrived)
		arrived[len(arrived)-1] = *f
		if f.flags&flagAck != 0 {
			s := &e.snd[f.flow]
			if !s.ending && e.rcv[f.flow].acks[f.slot].cumulative >= s.packets {
				s.ending = true
				e.ended = append(e.ended, f.flow)
				e.res.Flows[f.flow].End, e.res.Flows[f.flow].Done = timeOf(f.at), true
			}
		}
	}
	e.due[l.id] = l.first()
	return arrived
}

// runHost simulates a host up to end: what arrived, starts, the NIC, timers, in
// this order where times are equal.
func (e *engine) runHost(h *host, arrived []frame, end int64) {
	for i := 0; ; {
		t, what := end, 0
		if len(h.timers) > 0 && h.soonest < t {
			t, what = h.soonest, 1
		}
		if h.busy && h.free < end && h.free <= t {
			t, what = h.free, 2
		}
		if len(h.starts) > 0 && h.starts[0].at < end && h.starts[0].at <= t {
			t, what = h.starts[0].at, 3
		}
		if i < len(arrived) && arrived[i].at <= t {
			e.arrive(h, &arrived[i])
			i++
			continue
		}
		switch what {
		case 0:
			return
		case 1:
			e.expire(h, t)
		case 2:
			h.busy = false
			e.nicFree(h, t)
		case 3:
			e.open(h, h.starts[0].flow, t)
			h.starts = h.starts[1:]
		}
	}
}

// arrive handles a frame that came to a host.
func (e *engine) arrive(h *host, f *frame) {
	switch {
	case f.flags&flagAck != 0:
		e.acknowledged(h, f)
	case f.flags&flagNack != 0:
		e.refused(h, f)
	case f.flags&flagTrimmed != 0:
		e.receiveHeader(h, f)
	default:
		e.receive(h, f)
	}
}

// nicFree sends what waits for a NIC: of control and data mostly control.
func (e *engine) nicFree(h *host, now int64) {
	if !h.active.empty() && h.control.waits() {
		h.turn = (h.turn + 1) % turns
		if h.turn != 0 {
			e.sendControl(h, now)
			return
		}
	}
	for !h.active.empty() {
		flow := h.active.pop()
		s := &e.snd[flow]
		s.queued = false
		if e.permitted(s) {
			e.sendData(h, flow, s, now)
			if e.permitted(s) {
				s.queued = true
				h.active.push(flow)
			}
			return
		}
	}
	if h.control.waits() {
		e.sendControl(h, now)
	}
}

// put starts a frame on the NIC and the link of a host.
func (e *engine) put(h *host, f *frame, now int64) {
	l := &e.links[2*h.id]
	lasts := h.small
	if f.size != control {
		if h.size != f.size {
			h.size, h.lasts = f.size, exact(int64(f.size), l.rate)
		}
		lasts = h.lasts
	}
	h.busy, h.free = true, now+lasts
	if f.flags&(flagAck|flagNack) == 0 {
		e.res.DataPacketHops++
	}
	l.free = max(now, l.free) + e.lasts(l, f.size)
	at := l.free + l.delay
	e.pass(l, f, at)
}

// exact is how long bytes take at a rate, in ps: NICs do not round as links do (spell).
func exact(bytes, rate int64) int64 { return bytes * 8_000_000_000_000 / rate }

func (e *engine) sendControl(h *host, now int64) {
	e.put(h, h.control.pop(), now)
}

// answer queues a control frame, and sends it if the NIC is free.
func (e *engine) answer(h *host, f *frame, now int64) {
	if !h.busy && !h.control.waits() {
		e.put(h, f, now)
		return
	}
	h.control.push(f, 0)
	if !h.busy {
		e.sendControl(h, now)
	}
}

// trySend sends what a flow may send, or queues it for the NIC.
func (e *engine) trySend(h *host, flow int32, now int64) {
	s := &e.snd[flow]
	for !s.queued && e.permitted(s) {
		if h.busy {
			s.queued = true
			h.active.push(flow)
			return
		}
		e.sendData(h, flow, s, now)
	}
}
