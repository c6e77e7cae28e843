package uec

import (
	"slices"

	"github.com/simccl/simccl/packet/internal/arrivals"
)

// fifo is a ring of frames: those on the cable, then those queued. A frame that starts its transmission is
// not copied; only the border between the two moves:
//
//	buf:  on the cable | queued |
//	      ^head        ^sent    ^tail
//
// (Overflow also takes queued frames from the tail.)
type fifo struct {
	buf              []frame
	head, sent, tail uint32 // frames before sent are on the cable
}

func (q *fifo) at(i uint32) *frame { return &q.buf[i&uint32(len(q.buf)-1)] }

// waits reports whether frames are queued.
func (q *fifo) waits() bool { return q.sent != q.tail }

func (q *fifo) push(who, what uint64, at int64) {
	i := q.tail
	if i-q.head == uint32(len(q.buf)) {
		q.grow()
	}
	q.tail = i + 1
	g := q.at(i)
	g.at, g.who, g.what = at, who, what
}

// add appends the arrivals with the given keys and returns their bytes.
func (q *fifo) add(arrived []frame, keys []uint64) (bytes int64) {
	for int(q.tail-q.head)+len(keys) > len(q.buf) {
		q.grow()
	}
	buf, tail := q.buf, q.tail
	for _, key := range keys {
		f, g := &arrived[key&arrivals.Place], &buf[tail&uint32(len(buf)-1)]
		what := f.what
		g.at, g.who, g.what = f.at, f.who, what
		bytes += int64(uint16(what >> sizeAt))
		tail++
	}
	q.tail = tail
	return bytes
}

// grow doubles the memory. It is not inlined, which leaves its callers more registers.
//
//go:noinline
func (q *fifo) grow() {
	n := make([]frame, max(8, 2*len(q.buf)))
	for i := q.head; i != q.tail; i++ {
		n[i&uint32(len(n)-1)] = *q.at(i)
	}
	q.buf = n
}

// first returns the arrival of the first frame on the cable, or never. An empty ring is rewound to the start
// of its memory, which is likely in the cache.
func (q *fifo) first() int64 {
	switch q.head {
	case q.tail:
		q.head, q.sent, q.tail = 0, 0, 0
		return never
	case q.sent:
		return never
	}
	return q.at(q.head).at
}

// pop removes the first frame of a ring without frames on the cable. It stays readable until the next push.
func (q *fifo) pop() *frame {
	f := q.at(q.sent)
	if q.sent++; q.sent == q.tail {
		q.sent, q.tail = 0, 0
	}
	q.head = q.sent
	return f
}

// comes is first without rewinding an empty ring.
func (q *fifo) comes() int64 {
	if q.head == q.sent {
		return never
	}
	return q.at(q.head).at
}

// take moves the frames that arrive before end to arrived, and returns the time of the next arrival, as first
// does.
func (q *fifo) take(arrived []frame, end int64) ([]frame, int64) {
	for n := q.sent - q.head; n > 0; n = q.sent - q.head {
		i := q.head & uint32(len(q.buf)-1)
		// up to the end of the ring's memory
		some := q.buf[i:min(uint64(i)+uint64(n), uint64(len(q.buf)))]
		k := len(arrived)
		if k+len(some) > cap(arrived) {
			arrived = slices.Grow(arrived, len(some))
		}
		to := arrived[k : k+len(some)]
		for m := range to {
			f := &some[m]
			at := f.at
			if at >= end {
				q.head += uint32(m)
				return arrived[:k+m], at
			}
			to[m] = frame{at, f.who, f.what}
		}
		arrived = arrived[:k+len(some)]
		q.head += uint32(len(some))
	}
	if q.head == q.tail {
		q.head, q.sent, q.tail = 0, 0, 0
	}
	return arrived, never
}

// ring is a growing FIFO of numbers.
type ring[T int32 | uint16] struct {
	buf        []T
	head, tail uint32
}

func (q *ring[T]) empty() bool { return q.head == q.tail }

func (q *ring[T]) push(v T) {
	if q.tail-q.head == uint32(len(q.buf)) {
		n := make([]T, max(8, 2*len(q.buf)))
		for i := q.head; i != q.tail; i++ {
			n[i&uint32(len(n)-1)] = q.buf[i&uint32(len(q.buf)-1)]
		}
		q.buf = n
	}
	q.buf[q.tail&uint32(len(q.buf)-1)] = v
	q.tail++
}

func (q *ring[T]) pop() T {
	q.head++
	return q.buf[(q.head-1)&uint32(len(q.buf)-1)]
}
