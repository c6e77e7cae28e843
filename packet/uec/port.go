package uec

import "github.com/simccl/simccl/packet/internal/arrivals"

// link is an egress port with its two queues, and its cable. A data frame counts in its queue until its
// transmission ends. NICs use the low queue for all frames.
//
// Fields are in the order of use: each frame touches the first two cache lines.
type link struct {
	low   fifo
	delay int64
	small int64 // transmission time of a control frame (ps)
	full  int64 // transmission time of a data frame of bytes (ps)

	hi       fifo
	lowBytes int64  // queued data bytes, including the frame in transmission
	hops     int64  // data frames started
	size     uint16 // bytes of the data frame in transmission; 0: control, or none
	bytes    uint16 // size of the last data frame
	peak     int32

	rate     int64
	draws    uint64
	id       int32
	from, to int32 // nodes
	toHost   bool
	_        [24]byte
}

// first returns the arrival of the link's first frame.
func (l *link) first() int64 { return min(l.low.first(), l.hi.first()) }

// serveUntil runs a port up to end with the arrivals of keys.
func (e *engine) serveUntil(x *port, arrived []frame, keys []uint64, end int64) {
	x.free = e.serveEach(x.out, x.free, arrived, keys, end)
	e.updateWaits(x)
}

// updateWaits updates a port's bit of engine.goes and its peer's due.
func (e *engine) updateWaits(x *port) {
	if x.peer.due == never {
		e.await(x)
	}
	l := x.out
	if waits := l.hi.waits() || l.low.waits(); waits != x.waits {
		x.waits = waits
		e.goes[x.bit/64] ^= 1 << (x.bit % 64)
	}
}

// serveEach runs a port up to end, taking arrivals one by one: at the end of each transmission the frame is
// marked by the bytes that remain queued and the next frame starts, control first; arrivals that find no room
// are trimmed or dropped. free is the end of the transmission in progress, as argument and as result.
func (e *engine) serveEach(l *link, free int64, arrived []frame, keys []uint64, end int64) int64 {
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

// begin starts the transmission of size bytes of data, or of a control frame (size 0), and returns its
// duration in ps.
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

// measure sets the transmission time for data frames of a new size.
func (l *link) measure(size uint16) { l.bytes, l.full = size, transmission(int64(size), l.rate) }

// full reports whether the control queue, twice as large as the data queue, has no room.
func (e *engine) full(l *link, transmits bool) bool {
	n := int64(l.hi.tail - l.hi.sent)
	if transmits && l.size == 0 {
		n++
	}
	return (n+1)*control > 2*e.queue
}

// mark applies RED at the end of a transmission; stay is the number of bytes that remain queued.
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

// transmission returns the duration of bytes at a rate on a link in ps: htsim multiplies by whole picoseconds
// per byte (sim/queue.cpp).
func transmission(bytes, rate int64) int64 { return bytes * (8_000_000_000_000 / rate) }

// overflow handles a data frame that finds its queue full: at random, either this frame or the last one of
// the queue is trimmed. free is the end of the transmission in progress, as argument and as result, here and
// below.
func (e *engine) overflow(l *link, f *frame, free int64) int64 {
	l.draws++
	switch {
	case draw(e.cfg.Seed, uint64(l.id), l.draws)&1 != 0:
		return e.trim(l, f, free)
	case !l.low.waits():
		return e.replaceInFlight(l, f, free)
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

// replaceInFlight puts f in the place of the frame in transmission, which is trimmed: the queue has room for
// one frame only.
func (e *engine) replaceInFlight(l *link, f *frame, free int64) int64 {
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

// trim cuts a frame to its header and queues it as control.
func (e *engine) trim(l *link, f *frame, free int64) int64 {
	e.res.Trims++
	f.what = f.what&^sizeBits | control<<sizeAt | flagTrimmed
	if l.toHost {
		f.what |= flagLast
	}
	return e.control(l, f, free)
}

// control queues a control frame, or drops it if there is no room.
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
