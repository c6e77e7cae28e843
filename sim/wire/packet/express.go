package packet

import (
	"github.com/simccl/simccl/sim/wire/packet/internal/instant"
	"github.com/simccl/simccl/sim/wire/packet/internal/parted"
)

// express simulates a window of a port that nothing pauses, with one class of frames, as
// quick does, but only what waits in the end goes through the queue: what arrives is
// known, so the frames that have come are those before a place of the keys.
func (e *engine) express(w *worker, s *swtch, l *link, keys []uint64, end int64) {
	q, come, begun := &l.q[1], 0, 0 // keys of frames that have come, and have started
	if most := q.bytes + int64(len(keys))*e.most; (!l.marks || most <= l.alert) && (most <= l.peak || most < w.peak) {
		e.rapid(w, s, l, keys, end)
		return
	}
	for {
		if q.empty() && come == begun {
			if come == len(keys) {
				break
			}
			if f := &s.arrived[keys[come]&parted.Place]; l.free < f.at {
				come++
				begun++
				e.through(w, l, f)
				continue
			}
		}
		come = e.gather(s, l, q, keys, begun, come)
		if l.free >= end {
			break
		}
		e.completed(w, l)
		if q.empty() {
			f := &s.arrived[keys[begun]&parted.Place]
			begun++
			q.bytes -= int64(f.size)
			e.transmit(w, l, f, l.free, q.bytes)
		} else {
			e.shorten(w, s, l, q)
		}
	}
	if e.vague {
		w.peak = max(w.peak, l.peak)
	}
	for _, key := range keys[begun:come] { // gather has counted their bytes
		q.bytes -= int64(s.arrived[key&parted.Place].size)
	}
	e.keep(s, l, q, keys[begun:come])
}

// rapid is express where the length of the queue changes nothing: no frame can be marked, and
// none deeper was seen before.
func (e *engine) rapid(w *worker, s *swtch, l *link, keys []uint64, end int64) {
	q := &l.q[1]
	for !q.empty() && l.free < end {
		e.completed(w, l)
		e.shorten(w, s, l, q)
	}
	end = e.stream(w, s, l, keys, end)
	e.keep(s, l, q, keys[end:])
}

// stream sends frames that come to an empty queue, but only those that start before end, and
// returns how many those are. It is transmit for each.
func (e *engine) stream(w *worker, s *swtch, l *link, keys []uint64, end int64) (n int64) {
	q, free, hops, bytes, data := &l.wire, l.free, int64(0), int64(0), int64(0)
	for int(q.tail-q.head)+len(keys) > len(q.buf) {
		q.grow()
	}
	buf, tail, ordered := q.buf, q.tail, e.ordered
	for _, key := range keys {
		f := &s.arrived[key&parted.Place]
		at := free
		if at < f.at {
			at = f.at
			e.arrived(w, instant.Number(f.tag))
		} else {
			if at >= end {
				break
			}
			e.completed(w, l)
		}
		what, size := f.flags&flagAck, int64(f.size)
		if what == 0 {
			hops++
			data += size
		}
		if ordered {
			l.start, l.begun = at, w.Sent(at, l.id, tail)
		}
		if l.sizes[what] != f.size {
			e.measure(l, what, f.size)
		}
		bytes += size
		free = at + l.lasts[what]
		buf[tail&uint32(len(buf)-1)].set(f, free+l.delay, uint32(l.begun))
		tail++
		n++
	}
	if q.empty() && n > 0 {
		e.due[l.id] = buf[q.tail&uint32(len(buf)-1)].at
	}
	w.dataHops += hops
	if e.given != nil {
		l.data += data
	}
	l.sent += uint64(n)
	l.txBytes += bytes
	q.tail, l.free = tail, free
	return n
}

// keep puts frames that have come and have not started into the queue.
func (e *engine) keep(s *swtch, l *link, q *queue, keys []uint64) {
	for _, key := range keys {
		i := int(key & parted.Place)
		f, port := &s.arrived[i], s.entry(e, i)
		q.pass(f, f.at, port, &s.spare)
		q.bytes += int64(f.size)
		s.Add(port, 1, int64(f.size))
	}
	p := l.fromPort
	if s.busy[p/64] &^= 1 << (p % 64); q.empty() {
		l.waiting = 0
		return
	}
	l.waiting = 1 << 1
	s.busy[p/64] |= 1 << (p % 64)
}

// through sends a frame over a port that is idle.
func (e *engine) through(w *worker, l *link, f *frame) {
	if e.ordered {
		e.arrived(w, instant.Number(f.tag))
	}
	l.peak = max(l.peak, int64(f.size))
	e.transmit(w, l, f, f.at, 0)
}

// lone is through for the only frame of a window, if it finds the port idle.
func (e *engine) lone(w *worker, s *swtch, l *link, key uint64) bool {
	f := &s.arrived[key&parted.Place]
	if f.flow < 0 || l.free >= f.at || l.paused>>f.class&1 != 0 {
		return false
	}
	if f.class != 0 {
		l.turn = f.class
	}
	if e.ordered {
		n := instant.Number(f.tag)
		f.tag = uint32(s.from[key&parted.Place])
		w.Happens(n)
	}
	l.peak = max(l.peak, int64(f.size))
	e.transmit(w, l, f, f.at, 0)
	return true
}

// gather takes what comes until a port is free: of frames for which keys are from begun
// on, those before come have come. It returns how many have then.
func (e *engine) gather(s *swtch, l *link, q *queue, keys []uint64, begun, come int) int {
	for ; come < len(keys); come++ {
		i := keys[come] & parted.Place
		f := &s.arrived[i]
		if f.at >= l.free {
			if f.at > l.free || e.ordered && (come > begun || !q.empty()) && l.free-l.start > e.travel(s.in[s.from[i]], f.size) {
				break
			}
		}
		q.bytes += int64(f.size)
		l.peak = max(l.peak, q.bytes)
	}
	return come
}

// shorten starts the first frame of a queue.
func (e *engine) shorten(w *worker, s *swtch, l *link, q *queue) {
	f := q.front()
	q.pop(&s.spare)
	q.bytes -= int64(f.size)
	s.Add(f.tag, 1, -int64(f.size))
	e.transmit(w, l, f, l.free, q.bytes)
}
