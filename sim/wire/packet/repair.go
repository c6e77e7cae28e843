package packet

import "github.com/simccl/simccl/units"

// Repair is how senders find and fill gaps. The zero value is go-back-N without
// a timeout, as in the HPCC simulator.
type Repair struct {
	// Selective: receivers keep what comes out of order and report it, senders send
	// only the frames that are missing; otherwise they go back to the first of them.
	Selective bool
	// Timeout sends again what has not been acknowledged, once no acknowledgement
	// has helped for so long; 0: never.
	Timeout units.Time
	// Retries is after how many timeouts without progress a flow fails; 0: never.
	Retries int32
	// Reorder is by how many frames one may be overtaken before it counts as lost,
	// with Selective: paths of different lengths of queues need it.
	Reorder uint32
}

// bitmap is a ring of bits by frame number, of a window that grows.
type bitmap []uint64

func (b bitmap) has(psn uint32) bool {
	return len(b) > 0 && b[psn/64%uint32(len(b))]>>(psn%64)&1 != 0
}

// set sets a bit; first is the lowest frame that is still of interest.
func (b *bitmap) set(psn, first uint32) {
	for psn-first >= uint32(len(*b))*64-min(64, uint32(len(*b))*64) {
		n := make(bitmap, max(4, 2*len(*b)))
		for p := first; p < first+uint32(len(*b))*64; p++ {
			if b.has(p) {
				n[p/64%uint32(len(n))] |= 1 << (p % 64)
			}
		}
		*b = n
	}
	(*b)[psn/64%uint32(len(*b))] |= 1 << (psn % 64)
}

func (b bitmap) clear(psn uint32) {
	if len(b) > 0 {
		b[psn/64%uint32(len(b))] &^= 1 << (psn % 64)
	}
}

// gaps is what a sender with selective repeat knows of its window.
type gaps struct {
	came  bitmap // frames above una that the receiver has
	again bitmap // frames that were sent again
	next  uint32 // no frame below is missing and not sent again
	high  uint32 // frames below this are missing unless they came
}

// missing returns the next frame to be sent again.
func (s *sender) missing() (uint32, bool) {
	g := &s.gaps
	g.next = max(g.next, s.una)
	for ; g.next < g.high; g.next++ {
		if !g.came.has(g.next) && !g.again.has(g.next) {
			return g.next, true
		}
	}
	return 0, false
}

// advance moves una; bits below it are cleared, so that the rings can turn.
func (s *sender) advance(to uint32) {
	if len(s.gaps.came) > 0 || len(s.gaps.again) > 0 {
		for p := s.una; p < to; p++ {
			s.gaps.came.clear(p)
			s.gaps.again.clear(p)
		}
	}
	s.una = to
}

// reported handles a report that a frame came out of order.
func (s *sender) reported(psn, reorder uint32) {
	if psn < s.una || psn >= s.nxt {
		return
	}
	s.gaps.came.set(psn, s.una)
	if psn >= reorder {
		s.gaps.high = max(s.gaps.high, psn-reorder)
	}
}

// take handles a data frame at a receiver with selective repeat.
func (r *receiver) take(psn uint32) {
	if psn != r.expected {
		r.came.set(psn, r.expected)
		return
	}
	r.expected++
	for r.came.has(r.expected) {
		r.came.clear(r.expected)
		r.expected++
	}
}

// overdue returns when the timeout of a host's flows may next end; never if
// none runs.
func (e *engine) overdue(h *host) int64 {
	t := never
	for _, id := range h.qps {
		if s := &e.snd[id]; s.una < s.nxt {
			t = min(t, s.moved+int64(e.cfg.Repair.Timeout))
		}
	}
	return t
}

// timeouts sends again what is overdue at a host.
func (e *engine) timeouts(w *worker, h *host, now int64) {
	c := &e.cfg.Repair
	for _, id := range h.qps {
		s := &e.snd[id]
		if s.una >= s.nxt || s.moved+int64(c.Timeout) > now {
			continue
		}
		w.timeouts++
		s.moved = now
		s.nextAvail = min(s.nextAvail, now)
		if s.retries++; c.Retries > 0 && s.retries > c.Retries {
			s.una, s.nxt, s.ended, s.ending = s.frames, s.frames, true, true // it sends no more
			e.result[id].Failed = true
			continue
		}
		if e.cfg.CC.Kind == Swift {
			e.swiftLoss(id, s, now, true)
		}
		if c.Selective {
			clear(s.gaps.again)
			s.gaps.next, s.gaps.high = s.una, s.nxt
			continue
		}
		w.retx += int64(s.nxt - s.una)
		s.nxt = s.una
	}
	h.timer = e.overdue(h)
}
