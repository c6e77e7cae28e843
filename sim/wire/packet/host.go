package packet

import (
	"cmp"
	"math/bits"
	"slices"

	"github.com/simccl/simccl/sim/wire/packet/internal/instant"
	"github.com/simccl/simccl/sim/wire/packet/internal/parted"
)

// host is a node with one NIC: queue pairs served in turn, acknowledgements
// before them.
type host struct {
	node     int32
	out, in  int32 // links; -1: none
	acks     fifo
	qps      []int32          // flows that send, in the order they began
	turn     int              // served last
	over     int              // queue pairs of qps that have ended
	inFlight bool             // a frame is in transmission and its end is to come
	paced    int64            // when none could send: until when pacing alone holds all queue pairs up, or earlier
	wake     int64            // when a queue pair may send again; 0: not awaited
	planned  planned          // when wake was set
	timer    int64            // no timeout ends before then
	starts   []begin          // sorted
	ready    int64            // the next may begin, with MessageGap
	arrived  []frame          // memory for
	come     []frame          // what arrived in this window
	sports   map[int32]uint16 // next source port by destination
	_        [24]byte         // whole lines of a cache
}

// begin is a flow that starts.
type begin struct {
	at   int64
	flow int32
}

// firstPort is the source port of the first flow between two hosts.
const firstPort = 10000

// begin plans a flow's start.
func (e *engine) begin(flow int32, at int64) {
	id := e.hostOf[e.flows[flow].Src]
	h := &e.hosts[id]
	e.acts[id] = min(e.acts[id], at)
	i, _ := slices.BinarySearchFunc(h.starts, at, func(b begin, t int64) int {
		if b.at <= t {
			return -1
		}
		return 1
	})
	h.starts = slices.Insert(h.starts, i, begin{at, flow})
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
	t := never
	if len(h.starts) > 0 {
		t = max(h.starts[0].at, h.ready)
	}
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
				e.due[e.doors[i]], e.acts[i] = e.links[e.doors[i]].wire.first(), 0
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
			h.arrived, h.come = h.arrived[:0], nil
			e.acts[i] = h.quiet(e)
		}
	}
}

// quiet is until when a host does nothing of its own.
func (h *host) quiet(e *engine) int64 { return min(h.timer, h.own(e)) }

// pullHost takes what arrives before end off the link, and notes which flows
// end with it.
func (e *engine) pullHost(w *worker, h *host, end int64) int {
	l := &e.links[h.in]
	q, from := &l.wire, l.wire.head
	stays := len(e.workers) == 1 && l.feeder < 0 && !l.lossy && e.cfg.Buffer.Credits == 0 // until the host has run
	for !q.empty() {
		f := q.front()
		if f.at >= end {
			break
		}
		q.head++
		if l.lossy && e.lose(w, l, f) {
			continue
		}
		if !stays {
			h.arrived = extend(h.arrived)
			h.arrived[len(h.arrived)-1] = *f
		}
		if f.flags&flagAck != 0 {
			if s := &e.snd[f.flow]; f.psn >= s.frames && !s.ending && (e.cfg.Repair.BackTo == 0 || e.backTo(f.psn, s.bytes) >= s.frames) {
				s.ending = true
				w.ended = append(w.ended, ending{f.flow, f.at})
			}
		} else if e.given != nil && f.flow >= 0 && f.flags&flagTrim == 0 {
			e.given.take(f)
		}
	}
	if e.cfg.Buffer.Credits > 0 {
		h.arrived = pullCredits(&e.links[h.out], uint32(instant.None), end, h.arrived)
		slices.SortStableFunc(h.arrived, func(a, b frame) int { return cmp.Compare(a.at, b.at) })
	}
	if stays {
		h.come = q.between(from, q.head, &h.arrived)
	} else {
		h.come = h.arrived
	}
	return len(h.come)
}

// runHost simulates a host up to end: arrivals, starts, ends of transmissions
// and pacing, in this order where times are equal.
func (e *engine) runHost(w *worker, h *host, end int64) {
	l := &e.links[max(0, h.out)]
	i := 0
	if len(h.qps) == 0 && h.wake == 0 && h.timer >= end && l.paused == 0 && e.cfg.Buffer.Credits == 0 && (len(h.starts) == 0 || h.starts[0].at >= end) {
		if i = e.answer(w, h, l, end); i == len(h.come) {
			return
		}
	}
	for {
		t, what := end, 0
		if h.timer < t {
			t, what = h.timer, 4
		}
		if h.wake > 0 && h.wake < t {
			t, what = h.wake, 1
		}
		if h.inFlight {
			if free := l.free; free < end && free <= t {
				t, what = free, 2
			}
		}
		if len(h.starts) > 0 {
			if at := max(h.starts[0].at, h.ready); at < end && at <= t {
				t, what = at, 3
			}
		}
		if i < len(h.come) && h.come[i].at <= t && (what != 1 || h.come[i].at < t || !e.wakesFirst(h, &h.come[i])) {
			e.arrive(w, h, &h.come[i])
			i++
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
			e.started(w, int(h.starts[0].flow))
			e.open(h, h.starts[0].flow, t)
			if h.starts = h.starts[1:]; e.cfg.MessageGap > 0 {
				h.ready = t + int64(e.cfg.MessageGap)
			}
		case 4:
			e.started(w, e.itself(h.node))
			e.timeouts(w, h, t)
		}
		e.send(w, h, t)
	}
}

// arrive handles a frame that came to a host.
func (e *engine) arrive(w *worker, h *host, f *frame) {
	if e.cfg.Buffer.Credits > 0 && f.flow >= 0 {
		e.links[h.in].repay(f, f.at)
	}
	e.came(w, h, f)
	switch {
	case f.flow == report:
		l := &e.links[h.out]
		l.credit[f.class] += int64(f.size)
		e.gate(l, f.at)
	case f.flow < 0:
		l := &e.links[h.out]
		before := l.paused
		e.pfc(w, l, f)
		l.note(before, f)
		if before != 0 && l.paused == 0 && e.tables == nil {
			e.heldBack(h, l)
		}
		if f.flags&flagPause != 0 {
			return
		}
	case f.flags&flagAck != 0:
		if !e.acknowledged(w, h, f) || h.inFlight || h.paced > f.at && h.over == 0 && f.flags&(flagNack|flagSack|flagTrim) == 0 && h.acks.empty() {
			return // pacing still holds up every queue pair
		}
	default:
		var ack frame
		if !e.receive(f, &ack) {
			return
		}
		h.acks.push(&ack)
	}
	e.send(w, h, f.at)
}

// send starts the next frame of a host if its link is idle.
func (e *engine) send(w *worker, h *host, now int64) {
	if h.inFlight || h.out < 0 {
		return
	}
	l := &e.links[h.out]
	if !h.acks.empty() {
		if f := h.acks.front(); l.paused>>e.ackHold(f)&1 == 0 {
			h.acks.head++
			h.inFlight = true
			e.sendAck(w, l, f, now)
			if l.credit != nil {
				e.gate(l, now)
			}
			return
		}
	}
	i, soon := e.choose(h, l, now)
	if i < 0 {
		if h.paced = soon; soon < never && soon > now && h.wake <= now {
			h.wake = soon // when the first of them may send
			e.await(w, h, now)
		}
		return
	}
	h.turn = i
	h.inFlight = true
	e.sendData(w, h, l, h.qps[i], now)
}

// ackHold is the class whose pause holds an acknowledgement back.
func (e *engine) ackHold(f *frame) uint8 {
	switch p := e.cfg.AckHold; {
	case p < 0:
		return 0
	case p > 0:
		return e.classOf[p]
	}
	return f.class
}

// choose returns the next queue pair in turn that may send; or -1, and when pacing lets the
// first of them send. It drops those that have ended from the list when it meets one.
func (e *engine) choose(h *host, l *link, now int64) (found int, soon int64) {
	n, ended, soon := len(h.qps), -1, never
	at := h.turn
	for range n {
		if at++; at >= n {
			if at -= n; at >= n { // others have left the list
				at %= n
			}
		}
		s := &e.snd[h.qps[at]]
		if gap := s.gapped && s.hasGap(); gap || s.nxt < s.frames {
			if s.nextAvail > now {
				soon = min(soon, s.nextAvail)
			} else if soon = now; l.paused>>s.class&1 == 0 && (gap && e.cfg.Buffer.Trim == 0 || !e.windowBound(s, now)) {
				return e.strike(h, at, ended), now
			}
		} else if s.una >= s.frames && (ended < 0 || at < ended) {
			ended = at
		}
	}
	return e.strike(h, -1, ended), soon
}

// strike drops those of a host's queue pairs that have ended, from one on, and returns where
// the one that was found is then.
func (e *engine) strike(h *host, found, ended int) int {
	if ended < 0 {
		return found
	}
	k := ended
	for i := ended; i < len(h.qps); i++ {
		if s := &e.snd[h.qps[i]]; s.una < s.frames {
			if i == found {
				found = k
			}
			h.qps[k] = h.qps[i]
			k++
		} else {
			s.listed = false
			h.over--
		}
	}
	h.qps = h.qps[:k]
	return found
}

// hasGap says that a flow has a frame to send again.
func (s *sender) hasGap() bool {
	_, ok := s.hole()
	return ok
}

// hole is the next frame to send again.
func (s *sender) hole() (uint32, bool) {
	if !s.gapped || !s.gaps.Any(s.una) {
		return 0, false
	}
	return s.gaps.Missing(s.una)
}
