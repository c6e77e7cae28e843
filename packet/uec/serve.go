package uec

import "github.com/simccl/simccl/packet/internal/arrivals"

// serve simulates a window of a port from two sorted lists of arrivals, data (low) and control frames (hi):
//
//	low ──▶ data ring ────┐
//	                      ├──▶ control first, then data ──▶ link
//	hi ───▶ control ring ─┘
//
// As long as every frame has room, all arrivals are queued first and then sent in the order of service
// (inOrder). The length of the queue is computed only when a transmission ends, and only where the frame may
// be marked or the queue be the deepest of all. Where a frame may find no room, the queue at its arrival
// decides whether it is trimmed or dropped: serveEach takes arrivals one by one.
func (e *engine) serve(x *port, low, hi []uint64, end int64) {
	l := x.out
	if l.lowBytes+int64(len(low))*e.mtu > e.queue || int64(int(l.hi.tail-l.hi.sent)+len(hi)+1)*control >
		2*e.queue {
		e.merged = arrivals.Merge(e.merged[:0], low, hi)
		e.untie(e.merged)
		x.free = e.serveEach(l, x.free, e.arrived, e.merged, end)
	} else {
		e.untie(low)
		e.untie(hi)
		x.free = e.inOrder(l, x.free, low, hi, end)
	}
	e.updateWaits(x)
}

// deepest records l's queue as the deepest so far (of equal queues the one with the lowest link id), and sets
// from it how many queued frames harmlessLag allows.
func (e *engine) deepest(l *link) {
	e.peak, e.deep = l.peak, l.id
	frames := int64(l.peak) / e.mtu
	e.lag = uint32(min(e.ecnLow/e.mtu, max(frames, 1)-1))
	if int64(l.peak)%e.mtu == 0 {
		frames--
	}
	e.lagEqual = uint32(min(e.ecnLow/e.mtu, max(frames, 1)-1))
}

// harmlessLag returns how many frames may be queued when a transmission ends without reaching the ECN
// threshold or a new peak: no queue length is computed then.
func (e *engine) harmlessLag(l *link) uint32 {
	if l.peak < e.peak && l.id < e.deep {
		return e.lagEqual
	}
	return e.lag
}

// inOrder queues a window's arrivals and transmits them up to end in the order of service. free is the end of
// the transmission in progress, as argument and as result.
func (e *engine) inOrder(l *link, free int64, low, hi []uint64, end int64) int64 {
	sent, next, nextHi := l.low.sent, l.low.tail, l.hi.tail
	come := l.low.add(e.arrived, low)
	l.hi.add(e.arrived, hi)
	b := backlog{all: l.lowBytes + come, yet: come, next: next}
	tail, tailHi, lag := l.low.tail, l.hi.tail, e.harmlessLag(l)
	buf, bufHi, sentHi := l.low.buf, l.hi.buf, l.hi.sent
	looks, size, peak := tail-sent > lag, l.size, l.peak
	for free < end {
		at, which := never, sentHi // no control frame is next
		if sent != tail {
			at = buf[sent&uint32(len(buf)-1)].at
		}
		if sentHi != tailHi {
			if t := bufHi[sentHi&uint32(len(bufHi)-1)].at; t < free || t < at || t == at &&
				!e.later(hi[sentHi-nextHi]&arrivals.Place, low[sent-next]&arrivals.Place) {
				at = t
				which++
			}
		} else if at == never {
			break
		}
		if looks && size != 0 {
			if i := sent + lag; int32(tail-i) > 0 && buf[i&uint32(len(buf)-1)].at < free {
				peak = max(peak, e.queueAtEnd(l, &b, sent, size, free))
			}
		}
		b.all -= int64(size)
		free = max(free, at)
		if which != sentHi {
			free += l.small
			bufHi[sentHi&uint32(len(bufHi)-1)].at = free + l.delay
			sentHi, size = which, 0
			continue
		}
		g := &buf[sent&uint32(len(buf)-1)]
		if size = g.size(); size != l.bytes {
			l.measure(size)
		}
		free += l.full
		g.at = free + l.delay
		peak = max(peak, int32(size))
		sent++
	}
	l.hops += int64(sent - l.low.sent)
	l.low.sent, l.hi.sent, l.size, l.lowBytes = sent, sentHi, size, b.all
	if l.peak = max(peak, int32(b.all)); l.peak > e.peak || l.peak == e.peak && l.id < e.deep {
		e.deepest(l)
	}
	return free
}

// backlog computes a port's queue length in hindsight: all arrivals of a window are queued at once; yet
// counts those of them that had not arrived at the time in question.
type backlog struct {
	all  int64  // bytes queued or to come, less those sent
	yet  int64  // of them, those that had not come when last computed
	next uint32 // position of the first of these in the ring
}

// queueAtEnd returns the queue's bytes at the end of the transmission of the frame before position sent, and
// marks that frame by the bytes that remain.
func (e *engine) queueAtEnd(l *link, b *backlog, sent uint32, size uint16, free int64) int32 {
	q := &l.low
	for ; b.next != q.tail; b.next++ {
		f := q.at(b.next)
		if int32(b.next-sent) >= 0 && f.at >= free {
			break
		}
		b.yet -= int64(f.size())
	}
	here := b.all - b.yet
	if stay := here - int64(size); stay > e.ecnLow {
		e.mark(l, q.at(sent-1), stay)
	}
	return int32(here)
}
