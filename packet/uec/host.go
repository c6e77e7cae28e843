package uec

import "slices"

// host is a node with one NIC: control frames and flows that wait for it, flows to start, and timers. Times
// are in ps.
type host struct {
	id      int32
	size    uint16 // bytes of the last data frame
	free    int64  // end of the NIC's transmission; never: it is idle
	opens   int64  // start of the first of starts
	ends    int64  // end of the transmission on the link
	lasts   int64  // the NIC's transmission time for size
	wire    int64  // the link's transmission time for size, rounded differently
	small   int64  // the NIC's transmission time for a control frame
	little  int64  // the link's transmission time for a control frame
	delay   int64  // of the link (ps)
	control fifo
	active  ring[int32] // flows that wait for the NIC, each at most once
	turn    int         // position in the weighted round robin of control and data
	rate    int64
	starts  []begin // flows to start, sorted by time
	timers  timers  // retransmission timers of flows with packets in flight
}

// begin is the scheduled start of a flow.
type begin struct {
	at   int64
	flow int32
}

// turns is the weight of control frames: while both wait, one of eleven frames is data.
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

// firstStart sets opens to the time of the first scheduled start.
func (h *host) firstStart() {
	if h.opens = never; len(h.starts) > 0 {
		h.opens = h.starts[0].at
	}
}

// nextEvent returns the time of the host's next own event.
func (h *host) nextEvent() int64 { return min(h.opens, h.free, h.timers.first()) }

// noteEndings records the flows that end by an acknowledgement that arrives on link l before end.
func (e *engine) noteEndings(l *link, end int64) {
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

// finish records the end of a flow.
func (e *engine) finish(s *sender, flow int32, now int64) {
	s.ending = true
	e.ended = append(e.ended, flow)
	e.res.Flows[flow].End, e.res.Flows[flow].Done = timeOf(now), true
}

// runHost simulates a host up to end and returns how many frames arrived. Events of one time are taken in
// this order: arrivals, starts, the NIC, timers. Arrivals stay on the link, which no other node touches
// meanwhile.
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

func (e *engine) arrive(h *host, f *frame) {
	switch {
	case !f.has(flagsAhead):
		e.receive(h, f)
	case f.has(flagAck):
		e.acknowledged(h, f)
	case f.has(flagNack):
		e.handleNack(h, f)
	default:
		e.receiveHeader(h, f)
	}
}

// nicFree starts the next frame of an idle NIC: control and data in the ratio of turns, flows in round robin.
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

// startFrame starts a frame on a host's NIC and link.
func (e *engine) startFrame(h *host, who, what uint64, now int64) {
	lasts, wire := h.small, h.little
	if size := uint16(what >> sizeAt); size != control {
		if h.size != size {
			h.size = size
			h.lasts, h.wire = nicTransmission(int64(size), h.rate), transmission(int64(size), h.rate)
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

// nicTransmission returns the time of bytes at a rate in ps, rounded as htsim's NICs do; links use
// transmission.
func nicTransmission(bytes, rate int64) int64 { return bytes * 8_000_000_000_000 / rate }

func (e *engine) sendControl(h *host, now int64) {
	f := h.control.pop()
	e.startFrame(h, f.who, f.what, now)
}

// answer sends a control frame, or queues it until the NIC is free.
func (e *engine) answer(h *host, who, what uint64, now int64) {
	if h.free == never && !h.control.waits() {
		e.startFrame(h, who, what, now)
		return
	}
	h.control.push(who, what, 0)
	if h.free == never {
		e.sendControl(h, now)
	}
}

// trySend sends as many packets as a flow's window allows; while the NIC is busy, it queues the flow for it.
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
