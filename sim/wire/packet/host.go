package packet

import (
	"math/bits"

	"github.com/simccl/simccl/sim/wire/packet/internal/after"
	"github.com/simccl/simccl/sim/wire/packet/internal/frames"
	"github.com/simccl/simccl/sim/wire/packet/internal/instant"
	"github.com/simccl/simccl/sim/wire/packet/internal/parted"
	"github.com/simccl/simccl/sim/wire/packet/internal/turn"
)

// host is a node with one NIC: queue pairs served in turn, acknowledgements
// before them.
type host struct {
	out, in  int32   // links; -1: none
	qps      []int32 // flows that send, in the order they began
	wake     int64   // when a queue pair may send again; 0: not awaited
	paced    int64   // when none could send: until when pacing alone holds all queue pairs up, or earlier
	timer    int64   // no timeout ends before then
	turn     int32   // served last
	over     int32   // queue pairs of qps that have ended
	inFlight bool    // a frame is in transmission and its end is to come
	node     int32
	ready    int64 // the next flow may begin, with MessageGap

	planned planned // when wake was set
	starts  after.Starts
	first   int64 // when the first of them is; never without one

	acks    fifo
	come    []frame          // what arrived in this window
	arrived []frame          // memory for it
	sports  map[int32]uint16 // next source port by destination
	riding  bool             // what arrived was copied: trains may be among it
	single  uint8            // windows in which it sends no trains
	_       [30]byte         // whole lines of a cache
}

// firstPort is the source port of the first flow between two hosts.
const firstPort = 10000

// begin plans a flow's start.
func (e *engine) begin(flow int32, at int64) {
	id := e.hostOf[e.flows[flow].Src]
	h := &e.hosts[id]
	e.acts[id] = min(e.acts[id], at)
	h.starts.Add(flow, at)
	h.first = h.starts.Next(h.ready)
}

// nextEvent returns when a host does something of its own.
func (h *host) nextEvent(e *engine) int64 {
	t := h.own(e)
	if h.timer < t && e.overdue(h) < never {
		t = h.timer
	}
	return t
}

// own is the same but for timeouts.
func (h *host) own(e *engine) int64 {
	t := h.first
	if h.inFlight {
		t = min(t, e.links[h.out].free)
	}
	if h.wake > 0 {
		t = min(t, h.wake)
	}
	return t
}

// pullHosts takes what arrives before end at a range of hosts off their links, and returns
// how many frames that are.
func (e *engine) pullHosts(w *worker, from, to int, end int64) int {
	busy := 0
	for ; from < to; from += 64 {
		some := parted.BeforeOf(e.due, e.doors[from:min(from+64, to)], end)
		if e.cfg.Buffer.Credits > 0 {
			some = ^uint64(0) >> (64 - min(64, to-from))
		}
		for ; some != 0; some &= some - 1 {
			if i := from + bits.TrailingZeros64(some); e.doors[i] >= 0 {
				busy += e.pullHost(w, &e.hosts[i], end)
				if e.acts[i] = 0; !e.stays {
					e.due[e.doors[i]] = e.links[e.doors[i]].wire.First()
				}
			}
		}
	}
	return busy
}

// runHosts simulates those of a range of hosts up to end that have something to do.
func (e *engine) runHosts(w *worker, from, to int, end int64) {
	for ; from < to; from += 64 {
		for some := parted.Before(e.acts[from:min(from+64, to)], end); some != 0; some &= some - 1 {
			i := from + bits.TrailingZeros64(some)
			h := &e.hosts[i]
			e.runHost(w, h, end)
			if len(h.come) > 0 {
				e.went(h)
			}
			e.acts[i] = h.quiet(e)
		}
	}
}

// went takes away what had arrived at a host.
func (e *engine) went(h *host) {
	if e.stays {
		l := &e.links[h.in]
		l.wire.Head += uint32(len(h.come))
		e.due[l.id] = l.wire.First()
	}
	h.arrived, h.come = h.arrived[:0], nil
}

// quiet is until when a host does nothing of its own.
func (h *host) quiet(e *engine) int64 { return min(h.timer, h.own(e)) }

// pullHost takes what arrives before end off the link, and notes which flows
// end with it.
func (e *engine) pullHost(w *worker, h *host, end int64) int {
	l := &e.links[h.in]
	if l.trains > 0 {
		return e.pullTrains(w, h, l, end)
	}
	q := &l.wire
	buf, head, tail, mask := q.Buf, q.Head, q.Tail, uint32(len(q.Buf)-1)
	for ; head != tail; head++ {
		f := &buf[head&mask]
		if f.At >= end {
			break
		}
		if !e.stays {
			if l.lossy && e.lose(w, l, f) {
				continue
			}
			h.arrived = frames.Extend(h.arrived)
			h.arrived[len(h.arrived)-1] = *f
		}
		if f.Flags&flagAck != 0 {
			if s := &e.snd[f.Flow]; f.Psn >= s.Frames && !s.Ending && (e.cfg.Repair.BackTo == 0 || e.backTo(f.Psn, s.Bytes) >= s.Frames) {
				s.Ending = true
				w.ended = append(w.ended, ending{f.Flow, f.At})
			}
		} else if e.given != nil && f.Flow >= 0 && f.Flags&flagTrim == 0 {
			e.given.take(f)
		}
	}
	if e.stays {
		h.come = q.Between(q.Head, head, &h.arrived)
		return int(head - q.Head)
	}
	q.Head = head
	if e.cfg.Buffer.Credits > 0 {
		h.arrived = e.links[h.out].returns.Take(uint32(instant.None), end, h.arrived)
		frames.Sort(h.arrived)
	}
	h.come = h.arrived
	return len(h.come)
}

// runHost simulates a host up to end: arrivals, starts, ends of transmissions and pacing, in this
// order where times are equal; with EventOrder starts come last, as they are planned last.
func (e *engine) runHost(w *worker, h *host, end int64) {
	l := &e.links[max(0, h.out)]
	come := h.come
	if len(h.qps) == 0 && h.wake == 0 && h.timer >= end && l.paused == 0 && e.cfg.Buffer.Credits == 0 && h.first >= end {
		if come = come[e.answer(w, h, l, end):]; len(come) == 0 {
			return
		}
	}
	for next := frames.First(come); ; {
		t, what := end, 0
		if own := min(h.timer, h.first); own < end {
			if t, what = own, 3; h.first > own {
				what = 4
			}
		}
		if h.wake > 0 && (h.wake < t || h.wake == t && what == 3 && e.cfg.EventOrder) {
			t, what = h.wake, 1
		}
		if h.inFlight {
			if free := l.free; free < t || free == t && what != 0 && (what != 3 || e.cfg.EventOrder) {
				t, what = free, 2
			}
		}
		if next <= t && (what != 1 || next < t || !e.wakesFirst(h, &come[0])) && len(come) > 0 {
			f := &come[0]
			come = come[1:]
			next = frames.First(come)
			e.arrive(w, h, f)
			continue
		}
		switch what {
		case 0:
			return
		case 1:
			h.wake = 0
			e.woken(w, h)
		case 2:
			h.inFlight = false
			e.completed(w, l)
		case 3:
			e.begins(w, h.starts[0].Flow, t)
			e.open(h, h.starts[0].Flow, t)
			if h.starts = h.starts[1:]; e.cfg.MessageGap > 0 {
				h.ready = t + int64(e.cfg.MessageGap)
			}
			h.first = h.starts.Next(h.ready)
		case 4:
			e.started(w, e.itself(h.node))
			e.timeouts(w, h, t)
		}
		if !h.inFlight && h.out >= 0 {
			e.start(w, h, l, t)
		}
		for h.inFlight && l.free < next && l.free < end && l.free < min(h.timer, h.first) && (h.wake == 0 || l.free <= h.wake) {
			h.inFlight = false // nothing happens before
			e.completed(w, l)
			e.start(w, h, l, l.free)
		}
	}
}

// arrive handles a frame that came to a host.
func (e *engine) arrive(w *worker, h *host, f *frame) {
	if e.cfg.Buffer.Credits > 0 && f.Flow >= 0 {
		e.links[h.in].repay(f, f.At)
	}
	e.came(w, h, f)
	switch {
	case f.Flow == report:
		l := &e.links[h.out]
		l.credit[f.Class] += int64(f.Size)
		e.gate(l, f.At)
	case f.Flow < 0:
		l := &e.links[h.out]
		before := l.paused
		e.pfc(w, l, f)
		l.note(before, f)
		if before != 0 && l.paused == 0 && e.tables == nil {
			e.heldBack(h, l)
		}
		if f.Flags&flagPause != 0 {
			return
		}
	case f.Flags&flagAck != 0:
		if !e.acknowledged(w, h, f) || h.inFlight || !e.plain && h.paced > f.At && h.over == 0 && f.Flags&(flagNack|flagSack|flagTrim) == 0 && h.acks.Empty() {
			return // pacing still holds up every queue pair
		}
	default:
		var ack frame
		if !e.receive(f, &ack) {
			return
		}
		h.acks.Push(&ack)
	}
	if !h.inFlight && h.out >= 0 {
		e.start(w, h, &e.links[h.out], f.At)
	}
}

// start starts the next frame of a host whose link is idle.
func (e *engine) start(w *worker, h *host, l *link, now int64) {
	if !h.acks.Empty() {
		if f := h.acks.Front(); l.paused>>e.ackHold(f)&1 == 0 {
			h.acks.Head++
			h.inFlight = true
			e.sendAck(w, l, f, now)
			if l.credit != nil {
				e.gate(l, now)
			}
			return
		}
	}
	if len(h.qps) == 1 && e.only(w, h, l, now) {
		return
	}
	i, soon := e.choose(h, l, now)
	if i < 0 {
		if h.paced = soon; soon < never && soon > now && h.wake <= now {
			h.wake = soon // when the first of them may send
			e.await(w, h, now)
		}
		return
	}
	h.turn = int32(i)
	h.inFlight = true
	e.sendData(w, h, l, h.qps[i], now)
}

// only is start for the only queue pair of a host that has frames to send; false: it has none, or
// some to send again.
func (e *engine) only(w *worker, h *host, l *link, now int64) bool {
	s := &e.snd[h.qps[0]]
	switch {
	case s.Nxt >= s.Frames || s.Gapped:
		return false
	case s.NextAvail > now:
		if h.paced = s.NextAvail; h.wake <= now {
			h.wake = s.NextAvail
			e.await(w, h, now)
		}
	case l.paused>>s.Class&1 == 0 && !e.bound(s, now):
		h.turn, h.inFlight = 0, true
		e.sendData(w, h, l, h.qps[0], now)
	default:
		h.paced = now
	}
	return true
}

// ackHold is the class whose pause holds an acknowledgement back.
func (e *engine) ackHold(f *frame) uint8 {
	switch p := e.cfg.AckHold; {
	case p < 0:
		return 0
	case p > 0:
		return e.classOf[p]
	}
	return f.Class
}

// choose returns the next queue pair in turn that may send; or -1, and when pacing lets the
// first of them send. It drops those that have ended from the list when it meets one.
func (e *engine) choose(h *host, l *link, now int64) (found int, soon int64) {
	n, ended, soon := len(h.qps), -1, never
	at := int(h.turn)
	for range n {
		if at++; at >= n {
			if at -= n; at >= n { // others have left the list
				at %= n
			}
		}
		s := &e.snd[h.qps[at]]
		if gap := s.Gapped && s.HasGap(); gap || s.Nxt < s.Frames {
			if s.NextAvail > now {
				soon = min(soon, s.NextAvail)
			} else if soon = now; l.paused>>s.Class&1 == 0 && (gap && e.cfg.Buffer.Trim == 0 || !e.bound(s, now)) {
				return e.strike(h, at, ended), now
			}
		} else if s.Una >= s.Frames && (ended < 0 || at < ended) {
			ended = at
		}
	}
	return e.strike(h, -1, ended), soon
}

// strike drops those of a host's queue pairs that have ended, beginning with one of them, and returns where
// the one that was found is then.
func (e *engine) strike(h *host, found, ended int) int {
	if n := len(h.qps); ended >= 0 {
		h.qps, found = turn.Strike(h.qps, e.snd, ended, found)
		h.over -= int32(n - len(h.qps))
	}
	return found
}
