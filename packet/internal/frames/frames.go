// Package frames stores frames: in ring buffers for links, in chained pieces for queues.
//
// In: frames. Out: the same frames, in FIFO order. It must not know links, hosts or the content of frames.
package frames

import (
	"cmp"
	"slices"
)

const never = int64(1<<63 - 1)

// Frame is a frame in a queue or on a cable: 32 bytes, two to a cache line.
type Frame struct {
	At    int64  // ps: arrival of its last bit at the end of the cable
	Flow  int32  // negative: belongs to no flow (PFC, credits, timers; see package port)
	Psn   uint32 // sequence number of a data frame
	Route uint32 // index into the engine's hops: the link that it travels on
	Aux   uint32 // congestion control: a send time or a telemetry row
	Size  uint16 // bytes on the wire
	Flags uint8
	Class uint8 // 0: control, never paused; else the index of its priority
	// in a switch the ingress port; on a cable, with EventOrder, the tiebreak.Number of its transmission
	Tag uint32
}

// Flags of a frame.
const (
	Ack    uint8 = 1 << iota // an acknowledgement; psn is the next expected
	Nack                     // with Ack: the receiver lacks psn
	CE                       // congestion experienced, echoed on the acknowledgement
	Pause                    // PFC: stop class psn
	Resume                   // PFC: resume class psn
	Sack                     // with Ack: frame aux came out of order
	Lost                     // the frame will be lost at the end of the cable
	Trim                     // cut to its headers; with Ack: frame aux arrived trimmed
)

// Extend lengthens a by one frame that the caller fills in place; append would copy the frame twice.
func Extend(a []Frame) []Frame {
	n := len(a)
	if n == cap(a) {
		a = slices.Grow(a, max(16, n))
	}
	return a[:n+1]
}

// Sort sorts by arrival, stably.
func Sort(a []Frame) {
	slices.SortStableFunc(a, func(x, y Frame) int { return cmp.Compare(x.At, y.At) })
}

// Ring is a FIFO in a ring buffer whose size is a power of two: Head and Tail only grow, and index Buf modulo
// its size.
type Ring struct {
	Buf        []Frame
	Head, Tail uint32
}

func (q *Ring) Empty() bool { return q.Head == q.Tail }

func (q *Ring) Front() *Frame { return &q.Buf[q.Head&uint32(len(q.Buf)-1)] }

// At returns the frame at position i, Head <= i < Tail.
func (q *Ring) At(i uint32) *Frame { return &q.Buf[i&uint32(len(q.Buf)-1)] }

// Rewind moves an empty ring back to the start of its memory, which is likely in the cache.
func (q *Ring) Rewind() {
	q.Head = (q.Head + uint32(len(q.Buf)-1)) &^ uint32(len(q.Buf)-1)
	q.Tail = q.Head
}

// First returns the arrival of the first frame, or never; an empty ring is rewound.
func (q *Ring) First() int64 {
	if q.Head == q.Tail {
		q.Rewind()
		return never
	}
	return q.Front().At
}

// Soon is First without rewinding. It is written so that the compiler emits a conditional move: whether a
// ring is empty cannot be predicted.
func (q *Ring) Soon() int64 {
	if len(q.Buf) == 0 {
		return never
	}
	at := q.Front().At
	if q.Head == q.Tail {
		at = never
	}
	return at
}

// Reset is Rewind for a ring that may hold frames, without a branch.
func (q *Ring) Reset() {
	shift, m := uint32(0), uint32(len(q.Buf)-1)
	if q.Head == q.Tail {
		shift = -q.Head & m
	}
	q.Head, q.Tail = q.Head+shift, q.Tail+shift
}

// Before returns the position of the first frame that arrives at end or later.
func (q *Ring) Before(end int64) uint32 {
	to, m := q.Head, uint32(len(q.Buf)-1)
	for to != q.Tail && q.Buf[to&m].At < end {
		to++
	}
	return to
}

// Between returns the frames of positions [from, to) in one slice. If they wrap around, they are copied to
// memory.
func (q *Ring) Between(from, to uint32, memory *[]Frame) []Frame {
	m := uint32(len(q.Buf) - 1)
	if from == to {
		return nil
	}
	if i, j := from&m, (to-1)&m; i <= j {
		return q.Buf[i : j+1]
	}
	*memory = append(append((*memory)[:0], q.Buf[from&m:]...), q.Buf[:to&m]...)
	return *memory
}

// Take moves the frames that arrive before end to into and sets their tag.
func (q *Ring) Take(tag uint32, end int64, into []Frame) []Frame {
	for ; !q.Empty() && q.Front().At < end; q.Head++ {
		f := *q.Front()
		f.Tag = tag
		into = append(into, f)
	}
	return into
}

// Move is Take for frames that enter a switch: their Route advances to the next link. It also returns their
// bytes.
func (q *Ring) Move(end int64, into []Frame) (all []Frame, bytes int64) {
	n, buf, head := len(into), q.Buf, q.Head
	room := slices.Grow(into, int(q.Tail-head))[:n+int(q.Tail-head)]
	for ; n < len(room); n++ {
		f := &buf[head&uint32(len(buf)-1)]
		if f.At >= end {
			break
		}
		bytes += int64(f.Size)
		g := &room[n]
		*g = *f
		g.Route++
		head++
	}
	q.Head = head
	return room[:n], bytes
}

// Insert inserts a frame by its arrival.
func (q *Ring) Insert(f *Frame) {
	q.Push(f)
	m := uint32(len(q.Buf) - 1)
	for i := q.Tail - 1; i != q.Head && q.Buf[(i-1)&m].At > f.At; i-- {
		q.Buf[i&m], q.Buf[(i-1)&m] = q.Buf[(i-1)&m], q.Buf[i&m]
	}
}

func (q *Ring) Last() *Frame { return &q.Buf[(q.Tail-1)&uint32(len(q.Buf)-1)] }

func (q *Ring) Push(f *Frame) { q.Pass(f, f.At, f.Tag) }

// Pass appends a copy of a frame with a new time and tag.
func (q *Ring) Pass(f *Frame, at int64, tag uint32) {
	if q.Full() {
		q.Grow()
	}
	q.Next().Set(f, at, tag)
}

// Full reports whether the ring must Grow before Next.
func (q *Ring) Full() bool { return q.Tail-q.Head == uint32(len(q.Buf)) }

// Next appends a frame to a ring that is not full and returns it for the caller to fill.
func (q *Ring) Next() *Frame {
	q.Tail++
	return &q.Buf[(q.Tail-1)&uint32(len(q.Buf)-1)]
}

// Set copies a frame except for its time and tag, field by field: f was just written field by field, and a
// wider load would stall until those stores complete (store-to-load forwarding).
func (g *Frame) Set(f *Frame, at int64, tag uint32) {
	g.At, g.Flow, g.Psn, g.Route, g.Aux = at, f.Flow, f.Psn, f.Route, f.Aux
	g.Size, g.Flags, g.Class, g.Tag = f.Size, f.Flags, f.Class, tag
}

// Grow doubles the ring's memory (16 frames at first).
func (q *Ring) Grow() {
	n := make([]Frame, max(16, 2*len(q.Buf)))
	for i := q.Head; i != q.Tail; i++ {
		n[i&uint32(len(n)-1)] = q.Buf[i&uint32(len(q.Buf)-1)]
	}
	q.Buf = n
}

// Upto returns the position of the first frame that arrives at end or later, the bytes before it, and whether
// the frames before it are all data.
func (q *Ring) Upto(end int64) (to uint32, bytes int64, plain bool) {
	m := uint32(len(q.Buf) - 1)
	for to, plain = q.Head, true; to != q.Tail; to++ {
		f := &q.Buf[to&m]
		if f.At >= end {
			break
		}
		bytes += int64(f.Size)
		plain = plain && f.Class != 0
	}
	return to, bytes, plain
}

// First returns the arrival of the first frame, or never.
func First(a []Frame) int64 {
	if len(a) == 0 {
		return never
	}
	return a[0].At
}

// InTurn chooses the class to serve: control first, then round-robin after last. can has a bit for each class
// with a frame that may start.
func InTurn(can uint16, last *uint8, classes int) uint8 {
	if can&1 != 0 {
		return 0
	}
	if can&(can-1) == 0 && classes == 2 {
		return 1
	}
	c := *last
	for {
		if c++; int(c) >= classes {
			c = 1
		}
		if can>>c&1 != 0 {
			*last = c
			return c
		}
	}
}

// Onward moves frames that came in at a port to the next links of their routes and fills keys with their
// positions. The port becomes their tag or, with keep, is appended to from.
func Onward(a []Frame, keys []uint64, from []uint16, port uint16, keep bool) []uint16 {
	for i := range a {
		a[i].Route++
		if keys[i] = uint64(i); keep {
			from = append(from, port)
		} else {
			a[i].Tag = uint32(port)
		}
	}
	return from
}
