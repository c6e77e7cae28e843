package uec

import "github.com/simccl/simccl/packet/internal/arrivals"

// link is an egress port with its two queues and the cable behind it. A frame
// in transmission travels, and counts in its queue until it ends. NICs put all their frames into the
// low queue.
//
// What each frame touches is in the first two lines of a cache.
type link struct {
	low   fifo
	delay int64
	small int64 // ps of a control frame
	full  int64 // ps of the frame size seen last

	hi       fifo
	lowBytes int64  // with the frame in transmission
	hops     int64  // data frames whose transmission began
	size     uint16 // of the frame in transmission, if it is data; else 0
	bytes    uint16 // the frame size seen last
	peak     int32

	rate     int64
	draws    uint64
	id       int32
	from, to int32 // nodes
	toHost   bool
	_        [24]byte
}

// first is when the first frame of a link arrives.
func (l *link) first() int64 { return min(l.low.first(), l.hi.first()) }

// onto lets a port work up to end, and notes what becomes of its link. Where no frame waits, that one
// ends changes nothing until another comes.
func (e *engine) onto(x *port, arrived []frame, keys []uint64, end int64) {
	x.free = e.work(x.out, x.free, arrived, keys, end)
	e.ran(x)
}

// ran notes what became of a port.
func (e *engine) ran(x *port) {
	if x.peer.due == never {
		e.await(x)
	}
	l := x.out
	if waits := l.hi.waits() || l.low.waits(); waits != x.waits {
		x.waits = waits
		e.goes[x.bit/64] ^= 1 << (x.bit % 64)
	}
}

// work lets a port work up to end: frames come in the order of keys; a frame in transmission that
// ends no longer counts in its queue, and is marked by what stays there; the next one
// starts, control first. In and out: when the frame in transmission ends.
func (e *engine) work(l *link, free int64, arrived []frame, keys []uint64, end int64) int64 {
	for n := 0; ; n++ {
		f, at := (*frame)(nil), end-1
		if n < len(keys) {
			f = &arrived[keys[n]&arrivals.Place]
			at = f.at
		}
		for free <= at {
			if l.size != 0 {
				if l.lowBytes -= int64(l.size); l.lowBytes > e.ecnLow {
					e.mark(l, l.low.at(l.low.sent-1), l.lowBytes)
				}
			}
			var g *frame
			if i := l.hi.sent; i != l.hi.tail {
				g = l.hi.at(i)
				l.hi.sent = i + 1
				free += l.begin(0)
			} else if i := l.low.sent; i != l.low.tail {
				g = l.low.at(i)
				l.low.sent = i + 1
				free += l.begin(g.size())
			} else {
				l.size = 0
				break
			}
			g.at = free + l.delay
		}
		if f == nil {
			break
		}
		q, size := &l.low, f.size()
		if f.has(flagsAhead) {
			if e.full(l, free > at) {
				e.res.Drops++
				continue
			}
			q, size = &l.hi, 0
		} else {
			bytes := l.lowBytes + int64(size)
			if bytes > e.queue {
				free = e.overflow(l, f, free)
				continue
			}
			l.lowBytes = bytes
			l.peak = max(l.peak, int32(bytes))
		}
		i := q.tail
		if i-q.head == uint32(len(q.buf)) {
			q.grow()
		}
		q.tail = i + 1
		if free <= at {
			q.sent = i + 1
			free = at + l.begin(size)
			at = free + l.delay
		}
		g := q.at(i)
		g.at, g.who, g.what = at, f.who, f.what
	}
	return free
}

// begin begins the transmission of a data frame of a size, or of a control frame: 0. It returns how
// long it lasts, in ps.
func (l *link) begin(size uint16) int64 {
	l.size = size
	if size == 0 {
		return l.small
	}
	l.hops++
	if l.bytes != size {
		l.measure(size)
	}
	return l.full
}

// measure takes the time of frames of a size.
func (l *link) measure(size uint16) { l.bytes, l.full = size, spell(int64(size), l.rate) }

// full reports whether the queue of control frames has no room.
func (e *engine) full(l *link, transmits bool) bool {
	n := int64(l.hi.tail - l.hi.sent)
	if transmits && l.size == 0 {
		n++
	}
	return (n+1)*control > 2*e.queue
}

// mark marks a frame whose transmission ended, or not, as is drawn: by how many bytes stay.
func (e *engine) mark(l *link, g *frame, stay int64) {
	if stay <= e.ecnHigh {
		l.draws++
		d := uint64(draw(e.cfg.Seed, uint64(l.id), l.draws)>>1) + 1
		if d*uint64(e.ecnHigh-e.ecnLow) > uint64(0x7fffffff*(stay-e.ecnLow)) {
			return
		}
	}
	g.what |= flagCE
	e.res.Marks++
}

// spell is how long bytes take at a rate, in ps. The peer multiplies bytes by
// whole picoseconds a byte (sim/queue.cpp).
func spell(bytes, rate int64) int64 { return bytes * (8_000_000_000_000 / rate) }

// overflow puts a data frame into a queue that has no room for it: it or the frame that came last is
// trimmed. In and out, here and below: when the frame in transmission ends.
func (e *engine) overflow(l *link, f *frame, free int64) int64 {
	l.draws++
	switch {
	case draw(e.cfg.Seed, uint64(l.id), l.draws)&1 != 0:
		return e.trim(l, f, free)
	case !l.low.waits():
		return e.instead(l, f, free)
	default:
		l.low.tail--
		last := *l.low.at(l.low.tail)
		l.lowBytes -= int64(last.size())
		free = e.trim(l, &last, free)
		l.lowBytes += int64(f.size())
		l.peak = max(l.peak, int32(l.lowBytes))
		l.low.push(f.who, f.what, f.at)
		return free
	}
}

// instead puts a frame in the place of that in transmission, if there is one, which is trimmed:
// the queue has room for one.
func (e *engine) instead(l *link, f *frame, free int64) int64 {
	if l.size == 0 {
		return e.trim(l, f, free)
	}
	g := l.low.at(l.low.sent - 1)
	last := frame{f.at, g.who, g.what}
	g.who, g.what = f.who, f.what
	l.lowBytes += int64(f.size()) - int64(last.size())
	l.size = f.size()
	l.peak = max(l.peak, int32(l.lowBytes))
	return e.trim(l, &last, free)
}

// trim cuts the payload off and queues the header before data.
func (e *engine) trim(l *link, f *frame, free int64) int64 {
	e.res.Trims++
	f.what = f.what&^sizeBits | control<<sizeAt | flagTrimmed
	if l.toHost {
		f.what |= flagLast
	}
	return e.control(l, f, free)
}

// control puts a control frame into its queue.
func (e *engine) control(l *link, f *frame, free int64) int64 {
	at := f.at
	if e.full(l, free > at) {
		e.res.Drops++
		return free
	}
	if free <= at {
		l.hi.sent++
		free = at + l.begin(0)
		at = free + l.delay
	}
	l.hi.push(f.who, f.what, at)
	return free
}
