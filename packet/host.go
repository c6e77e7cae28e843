package packet

import (
	"math/bits"

	"github.com/simccl/simccl/packet/internal/arrivals"
	"github.com/simccl/simccl/packet/internal/frames"
	"github.com/simccl/simccl/packet/internal/port"
	"github.com/simccl/simccl/packet/internal/qp"
	"github.com/simccl/simccl/packet/internal/tiebreak"
)

// host is a node with one NIC. The NIC sends acknowledgements first, then queue pairs in round-robin order,
// each limited by its pacing and window.
type host struct {
	port.HostPort
	out, in int32 // links; -1: none
	node    int32
	ready   int64 // with MessageGap: the next flow may not start earlier
	starts  qp.Starts
	table   qp.ReadyTable

	acks fifo // acknowledgements to send
	// arrivals of this window, unless they stay on their links (arrivalsStable); then scratch memory
	arrived []frame
	sports  map[int32]uint16 // next source port by destination
	_       [24]byte         // whole lines of a cache
}

// firstPort is the source port of the first flow between two hosts.
const firstPort = 10000

// begin schedules a flow's start at a time in ps.
func (e *engine) begin(flow int32, at int64) {
	id := e.hostOf[e.flows[flow].Src]
	h := &e.hosts[id]
	e.acts[id] = min(e.acts[id], at)
	h.starts.Add(flow, at)
	h.First = h.starts.Next(h.ready)
}

// pullHosts takes the frames that arrive before end (ps) at hosts [from, to) off their links, and returns
// their number. With arrivalsStable the frames stay there and are only searched for ends of flows.
func (e *engine) pullHosts(w *worker, from, to int, end int64) int {
	busy := 0
	for ; from < to; from += 64 {
		some := arrivals.BeforeOf(e.due, e.doors[from:min(from+64, to)], end)
		if e.cfg.Buffer.Timed() {
			some = ^uint64(0) >> (64 - min(64, to-from))
		}
		for ; some != 0; some &= some - 1 {
			switch i := from + bits.TrailingZeros64(some); {
			case e.doors[i] < 0:
			case e.arrivalsStable:
				q := &e.links[e.doors[i]].Wire
				for at, m := q.Head, uint32(len(q.Buf)-1); at != q.Tail && q.Buf[at&m].At < end; at++ {
					e.noteEndings(w, &q.Buf[at&m])
				}
			default:
				busy += e.pullHost(w, &e.hosts[i], end)
				e.acts[i], e.due[e.doors[i]] = 0, e.links[e.doors[i]].Wire.First()
			}
		}
	}
	return busy
}

// noteEndings records that frame f, which arrives in this window, completes a flow or a message: dependent
// flows may start before the host itself has run.
func (e *engine) noteEndings(w *worker, f *frame) {
	if f.Flags&flagAck != 0 {
		if s := &e.snd[f.Flow]; f.Psn >= s.Frames && !s.Ending && (e.cfg.Repair.BackTo == 0 ||
			e.cfg.Repair.Back(f.Psn, s.Bytes, int64(e.cfg.Frames.Payload)) >= s.Frames) {
			e.recordEnding(w, s, f)
		}
	} else if e.live != nil && f.Flow >= 0 && f.Flags&flagTrim == 0 {
		e.live.landed.Take(&e.live.queues[f.Flow], f.Psn, e.cfg.Repair.Selective, f.At)
	}
}

// pullHost is pullHosts for one host whose frames leave the link; lost frames are dropped here.
func (e *engine) pullHost(w *worker, h *host, end int64) int {
	l := &e.links[h.in]
	for q := &l.Wire; !q.Empty() && q.Front().At < end; q.Head++ {
		f := q.Front()
		if l.Lossy && e.lose(w, l, f) {
			continue
		}
		h.arrived = frames.Extend(h.arrived)
		h.arrived[len(h.arrived)-1] = *f
		e.noteEndings(w, f)
	}
	if e.cfg.Buffer.Timed() {
		h.arrived = e.links[h.out].Back(uint32(tiebreak.None), end, h.arrived)
		frames.Sort(h.arrived)
	}
	return len(h.arrived)
}

// runHosts simulates the hosts of [from, to) that have an event before end. It returns the number of frames
// that they took off their links themselves. Each bit of some is a host: 64 hosts are tested without a
// branch.
func (e *engine) runHosts(w *worker, from, to int, end int64) (busy int) {
	for ; from < to; from += 64 {
		some := arrivals.Before(e.acts[from:min(from+64, to)], end)
		if e.arrivalsStable {
			some |= arrivals.BeforeOf(e.due, e.doors[from:min(from+64, to)], end)
		}
		for ; some != 0; some &= some - 1 {
			i := from + bits.TrailingZeros64(some)
			h := &e.hosts[i]
			if h.Out != nil {
				n, quiet := w.solo.Run(&h.HostPort, end)
				if busy += n; quiet > 0 {
					e.acts[i] = quiet
					continue
				}
			}
			if e.arrivalsStable && h.in >= 0 {
				busy += e.runFromLink(w, h, i, end)
				continue
			}
			e.runHost(w, h, h.arrived, end)
			e.acts[i], h.arrived = h.quiet(e), h.arrived[:0]
		}
	}
	if w.solo != nil {
		w.sent, w.DataPacketHops, w.solo.Sent = w.sent+w.solo.Sent, w.DataPacketHops+w.solo.Sent, 0
	}
	return busy
}

// runFromLink simulates a host that takes arrivals straight off its link, and returns their number.
func (e *engine) runFromLink(w *worker, h *host, id int, end int64) int {
	q := &e.links[h.in].Wire
	head := q.Head
	if s := h.Only; s == nil || !e.singleQPHosts || !e.runSingleQP(w, h, s, q, end) {
		to := q.Before(end)
		e.runHost(w, h, q.Between(q.Head, to, &h.arrived), end)
		q.Head = to
	}
	n := int(q.Head - head)
	if n > 0 {
		e.due[h.in] = q.First()
	}
	e.acts[id] = h.quiet(e)
	return n
}

// quiet returns the time (ps) of the host's next own event: a timer, the end of a transmission, or pacing.
func (h *host) quiet(e *engine) int64 { return min(h.Timer, h.Own(e.links, h.out)) }

// runSingleQP is runHost for a host with one queue pair in its common case: frames in order, no timers, no
// gaps. It takes frames off the link one by one. It returns false at the first event of another kind; runHost
// continues from there.
func (e *engine) runSingleQP(w *worker, h *host, s *sender, q *fifo, end int64) bool {
	if min(h.First, h.Timer) < end || h.Over > 0 || s.Gapped {
		return false
	}
	l, m := &e.links[h.out], uint32(len(q.Buf)-1)
	for {
		now, ended := h.Wake, false
		if now == 0 {
			now = end
		}
		if h.InFlight && l.Free <= now {
			now, ended = l.Free, true
		}
		var f *frame // the next event that is no arrival
		if q.Head != q.Tail {
			if f = &q.Buf[q.Head&m]; f.At >= end || f.At > now || f.At == now &&
				e.ownFirst(w, h, l, f, ended) {
				f = nil
			}
		}
		if f != nil {
			what := f.Flags &^ flagCE
			if what > flagAck || f.Flow < 0 || what == flagAck &&
				(f.Psn >= s.Frames || f.Flow != h.Pairs[0]) {
				return false
			}
			q.Head++
			e.noteHostArrival(w, h, f)
			if what == flagAck {
				e.ccAck(w, h, f, s, e.ackUpTo(s, f.Psn, f.At))
				if h.InFlight || h.Paced > f.At && h.acks.Empty() {
					continue
				}
			} else if !e.answered(h, f) || h.InFlight {
				continue
			}
			now = f.At
		} else if now >= end {
			return true
		} else if ended {
			h.InFlight = false
			e.noteCompletion(w, l)
		} else {
			h.Wake = 0
			if e.noteWakeup(w, h); h.InFlight {
				continue
			}
		}
		if h.acks.Empty() {
			e.startOnly(w, h, s, l, now)
		} else {
			e.start(w, h, l, now)
		}
		if h.Timer < end {
			return false
		}
	}
}

// Kinds of a host's next event.
const (
	nothing = iota
	arrives // a frame arrives
	ends    // a transmission ends
	wakes   // pacing lets a queue pair send
	begins  // a flow starts
	expires // a retransmission timeout
)

// runHost simulates a host up to end. Events of one time are taken in this order: arrivals, starts of flows,
// ends of transmissions, pacing; with EventOrder starts come last, except before transmissions that began at
// that very time, because ns-3 schedules them last.
func (e *engine) runHost(w *worker, h *host, come []frame, end int64) {
	l := &e.links[max(0, h.out)]
	if !e.noFastPath && len(h.Pairs) == 0 && h.Wake == 0 && h.Timer >= end && l.Paused == 0 &&
		e.cfg.Buffer.Credits == 0 && h.First >= end {
		if come = come[e.ackInOrder(w, h, l, come, end):]; len(come) == 0 {
			return
		}
	}
	port.Prefetch(come, e.snd, e.rcv, &e.controls)
	rest := min(end, h.Timer, h.First) // the next event of another kind
	for next := frames.First(come); ; {
		now, what := h.Wake, wakes
		if now == 0 {
			now = never
		}
		if h.InFlight && l.Free <= now {
			now, what = l.Free, ends
		}
		switch {
		case next < now && next < rest:
			now, what = next, arrives
		case now < next && now < rest:
		case now >= end && next >= end && rest >= end:
			return
		default:
			now, what = e.nextEvent(w, h, l, come, end)
		}
		switch what {
		case arrives:
			f := &come[0]
			come = come[1:]
			if next = frames.First(come); !e.arrive(w, h, f) || h.InFlight {
				continue
			}
		case ends:
			h.InFlight = false
			e.noteCompletion(w, l)
			e.start(w, h, l, now)
			if h.Timer < rest {
				rest = h.Timer
			}
			continue
		case wakes:
			h.Wake = 0
			e.noteWakeup(w, h)
		default:
			e.act(w, h, what, now)
		}
		if !h.InFlight && h.out >= 0 {
			e.start(w, h, l, now)
		}
		rest = min(end, h.Timer, h.First)
	}
}

// nextEvent returns the time and kind of a host's next event before end where runHost's quick comparison does
// not decide: flows that start, timeouts, or events of one time.
func (e *engine) nextEvent(w *worker, h *host, l *link, come []frame, end int64) (t int64, what int) {
	t, what = end, nothing
	if own := min(h.Timer, h.First); own < end {
		if t, what = own, begins; h.First > own {
			what = expires
		}
	}
	if h.Wake > 0 && (h.Wake < t || h.Wake == t && what == begins && e.cfg.EventOrder) {
		t, what = h.Wake, wakes
	}
	if h.InFlight {
		if free := l.Free; free < t || free == t && what != nothing && (what != begins || e.cfg.EventOrder &&
			l.Start < free) {
			t, what = free, ends
		}
	}
	if next := frames.First(come); next <= t && (what != wakes && what != ends || next < t ||
		!e.ownFirst(w, h, l, &come[0], what == ends)) {
		return next, arrives
	}
	return t, what
}

// act handles the events that are neither arrival, end of transmission nor pacing: the start of a flow, or
// timeouts.
func (e *engine) act(w *worker, h *host, what int, now int64) {
	if what == expires {
		e.noteRoot(w, e.nodeRoot(h.node))
		e.timeouts(w, h, now)
		return
	}
	e.noteFlowStart(w, h.starts[0].Flow, now)
	e.openFlow(h, h.starts[0].Flow, now)
	if h.starts = h.starts[1:]; e.cfg.MessageGap > 0 {
		h.ready = now + int64(e.cfg.MessageGap)
	}
	h.First = h.starts.Next(h.ready)
}

// arrive handles a frame at its destination host. It returns true if the host may now be able to start a
// frame.
func (e *engine) arrive(w *worker, h *host, f *frame) bool {
	e.noteHostArrival(w, h, f)
	if f.Flow < 0 {
		return e.control(w, h, f)
	}
	if e.cfg.Buffer.Credits > 0 {
		e.links[h.in].Repay(f, f.At)
	}
	if f.Flags&flagAck == 0 {
		return e.answered(h, f)
	}
	return e.acknowledged(w, h, f) && !h.InFlight && // else pacing still holds every queue pair
		(h.Paced <= f.At || h.Over > 0 || e.noFastPath || f.Flags&(flagNack|flagSack|flagTrim) != 0 ||
			!h.acks.Empty())
}

// answered queues the acknowledgement of a data frame, and a CNP where congestion control uses CNPs. It
// returns true if the host has a frame to send.
func (e *engine) answered(h *host, f *frame) bool {
	if e.cfg.CC.CNPBytes > 0 {
		qp.SendCNP(&e.rcv[f.Flow], f, &e.cfg.CC, &h.acks)
	}
	if h.acks.Full() {
		h.acks.Grow()
	}
	if !e.receive(f, h.acks.At(h.acks.Tail)) {
		return e.cfg.CC.CNPBytes > 0
	}
	h.acks.Tail++
	return true
}

// control handles a PFC frame or returned credits at a host. It returns true if the host may be able to start
// a frame.
func (e *engine) control(w *worker, h *host, f *frame) bool {
	l := &e.links[h.out]
	if f.Flow == port.Report {
		w.By = tiebreak.Root(int32(e.nodeRoot(h.node)))
		l.Credit[f.Class] += int64(f.Size)
		e.gate(l, f.At)
		return true
	}
	before := l.Asked
	e.pause(w, l, f)
	l.Note(before, f)
	if before != 0 && l.Asked == 0 && e.tables == nil {
		e.heldBack(h, l)
	}
	return f.Flags&flagPause == 0
}

// start starts the next frame of an idle NIC: an acknowledgement unless PFC holds it, else the next queue
// pair that may send. With none, it sets Wake to when pacing allows the first.
func (e *engine) start(w *worker, h *host, l *link, now int64) {
	if !h.acks.Empty() {
		if f := h.acks.Front(); l.Paused>>port.AckHold(e.cfg, f, &e.classOf)&1 == 0 {
			h.acks.Head++
			h.InFlight = true
			if !l.Ahead && !l.Odd { // no ECN mark or telemetry on this link
				g := e.beginFrame(w, l, f.Size, flagAck, now)
				g.Set(f, g.At, g.Tag)
				return
			}
			e.sendAck(w, l, f, now)
			if l.Credit != nil {
				e.gate(l, now)
			}
			return
		}
	}
	if s := h.Only; s != nil && !s.Gapped && s.Una < s.Frames {
		e.startOnly(w, h, s, l, now)
		return
	}
	if e.rules.Timed {
		h.Age = e.leadTime(w, now)
	}
	i, soon := -1, int64(0)
	if h.Tabled {
		i, soon = h.table.Choose(&h.RoundRobin, e.snd, &e.rules, l.Paused, now)
	} else if i, soon = h.Choose(e.snd, &e.rules, l.Paused, now); i < 0 {
		h.table.Fill(&h.RoundRobin, e.snd, &e.rules)
	}
	if i < 0 {
		if h.Paced = soon; soon < never && soon > now && h.Wake <= now {
			h.Wake = soon // when pacing allows the first of them
			e.notePacing(w, h, now)
		}
		return
	}
	h.Last, h.InFlight = int32(i), true
	id := h.Pairs[i]
	e.sendData(w, h, &e.snd[id], l, id, now)
	h.table.Note(&h.RoundRobin, id, &e.snd[id])
}

// startOnly is start for a host with a single queue pair that has nothing to retransmit.
func (e *engine) startOnly(w *worker, h *host, s *sender, l *link, now int64) {
	if e.rules.Timed {
		h.Age = e.leadTime(w, now)
	}
	switch {
	case s.Nxt >= s.Frames:
		h.Paced = never
	case s.NextAvail > now:
		if h.Paced = s.NextAvail; h.Wake <= now {
			h.Wake = s.NextAvail
			e.notePacing(w, h, now)
		}
	case l.Paused>>s.Class&1 == 0 && !e.rules.Bound(s, now, h.Age):
		h.Last, h.InFlight = 0, true
		e.sendData(w, h, s, l, h.Pairs[0], now)
	default:
		h.Paced = now
	}
}
