package uec

import "slices"

// host is a node with one NIC: control frames and flows that wait for it.
type host struct {
	id      int32
	size    uint16 // of data frames, seen last
	free    int64  // when the NIC is free; never: it is
	opens   int64  // when the first of starts is
	ends    int64  // when what the link carries ends
	lasts   int64  // ps that a data frame of size takes of the NIC
	wire    int64  // and of the link
	small   int64  // ps that a control frame takes of the NIC
	little  int64  // and of the link
	delay   int64  // of the link
	control fifo
	active  ring[int32] // flows, each once
	turn    int         // of control and data
	rate    int64
	starts  []begin // sorted
	timers  timers  // of flows with packets in flight, for retransmission
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
	h.firstStart()
	e.acts[h.id] = min(e.acts[h.id], at)
	e.come[h.id/64] |= 1 << (h.id % 64)
}

// firstStart notes when the first of starts is.
func (h *host) firstStart() {
	if h.opens = never; len(h.starts) > 0 {
		h.opens = h.starts[0].at
	}
}

// nextEvent returns when a host does something of its own.
func (h *host) nextEvent() int64 { return min(h.opens, h.free, h.timers.first()) }

// foresee notes which flows end with what arrives at a host before end.
func (e *engine) foresee(l *link, end int64) {
	q := &l.hi
	for i := q.head; i != q.sent; i++ {
		f := q.at(i)
		if f.at >= end {
			return
		}
		if f.has(flagAck) {
			flow := f.flow()
			if s := &e.snd[flow]; !s.ending && e.rcv[flow].acks[f.slot()].cumulative >= s.packets {
				e.finish(s, flow, f.at)
			}
		}
	}
}

// finish notes that a flow ends.
func (e *engine) finish(s *sender, flow int32, now int64) {
	s.ending = true
	e.ended = append(e.ended, flow)
	e.res.Flows[flow].End, e.res.Flows[flow].Done = timeOf(now), true
}

// runHost simulates a host up to end: what arrives, starts, the NIC, timers, in
// this order where times are equal. What arrives is in the rings of the link, which no other node touches
// meanwhile. It returns how many frames arrived.
func (e *engine) runHost(h *host, end int64) (busy int) {
	x := &e.ports[h.id]
	l := x.in
	low, hi := l.low.comes(), l.hi.comes()
	for {
		t := min(h.opens, h.free, h.timers.first(), end)
		switch next := min(low, hi); {
		case next <= t && next < end:
			busy++
			q := &l.low
			if low >= hi {
				q = &l.hi
			}
			f := q.at(q.head)
			q.head++
			if next = q.comes(); low >= hi {
				hi = next
			} else {
				low = next
			}
			e.arrive(h, f)
		case t == end:
			x.due, e.acts[h.id] = l.first(), h.nextEvent()
			if x.due == never && e.acts[h.id] == never {
				e.come[h.id/64] &^= 1 << (h.id % 64)
			}
			if x.peer.due == never {
				e.await(x)
			}
			return busy
		case t == h.opens:
			flow := h.starts[0].flow
			h.starts = h.starts[1:]
			h.firstStart()
			e.open(h, flow, t)
		case t == h.free:
			h.free = never
			e.nicFree(h, t)
		default:
			e.expire(h, t)
		}
	}
}

// arrive handles a frame that came to a host.
func (e *engine) arrive(h *host, f *frame) {
	switch {
	case !f.has(flagsAhead):
		e.receive(h, f)
	case f.has(flagAck):
		e.acknowledged(h, f)
	case f.has(flagNack):
		e.refused(h, f)
	default:
		e.receiveHeader(h, f)
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
		if size := e.permitted(s); size > 0 {
			e.sendData(h, flow, s, size, now)
			if e.permitted(s) > 0 {
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
func (e *engine) put(h *host, who, what uint64, now int64) {
	lasts, wire := h.small, h.little
	if size := uint16(what >> sizeAt); size != control {
		if h.size != size {
			h.size, h.lasts, h.wire = size, exact(int64(size), h.rate), spell(int64(size), h.rate)
		}
		lasts, wire = h.lasts, h.wire
	}
	h.free = now + lasts
	h.ends = max(now, h.ends) + wire
	q := &e.links[h.id].low
	i := q.tail
	if i-q.head == uint32(len(q.buf)) {
		q.grow()
	}
	q.sent, q.tail = i+1, i+1
	g := q.at(i)
	g.at, g.who, g.what = h.ends+h.delay, who, what
}

// exact is how long bytes take at a rate, in ps: NICs do not round as links do (spell).
func exact(bytes, rate int64) int64 { return bytes * 8_000_000_000_000 / rate }

func (e *engine) sendControl(h *host, now int64) {
	f := h.control.pop()
	e.put(h, f.who, f.what, now)
}

// answer queues a control frame, and sends it if the NIC is free.
func (e *engine) answer(h *host, who, what uint64, now int64) {
	if h.free == never && !h.control.waits() {
		e.put(h, who, what, now)
		return
	}
	h.control.push(who, what, 0)
	if h.free == never {
		e.sendControl(h, now)
	}
}

// trySend sends what a flow may send, or queues it for the NIC.
func (e *engine) trySend(h *host, flow int32, now int64) {
	s := &e.snd[flow]
	for !s.queued {
		size := e.permitted(s)
		if size == 0 {
			return
		}
		if h.free != never {
			s.queued = true
			h.active.push(flow)
			return
		}
		e.sendData(h, flow, s, size, now)
	}
}
