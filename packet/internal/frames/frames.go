// Package frames stores frames: in ring buffers for links, in chained pieces for queues.
//
// In: frames. Out: the same frames, in FIFO order. It must not know links, hosts or what frames
// carry.
package frames

import (
	"cmp"
	"slices"
)

const never = int64(1<<63 - 1)

// Frame is a frame that waits or travels: 32 bytes.
type Frame struct {
	At    int64  // ps: its last bit at the end of the cable
	Flow  int32  // -1: PFC
	Psn   uint32 // number of the data frame
	Route uint32 // index in engine.hops of its link
	Aux   uint32 // of congestion control: a time or a record
	Size  uint16 // bytes on the wire
	Flags uint8
	Class uint8  // 0 control, else the index of its priority
	Tag   uint32 // in a switch the port by which it came; on a cable, with EventOrder, its tiebreak.Number
}

// Flags of a frame.
const (
	Ack    uint8 = 1 << iota // an acknowledgement; psn is the next expected
	Nack                     // with Ack: the receiver lacks psn
	CE                       // congestion experienced, echoed on the acknowledgement
	Pause                    // PFC: stop class psn
	Resume                   // PFC: go on with class psn
	Sack                     // with Ack: frame aux came out of order
	Lost                     // it will be lost at the end of the cable
	Trim                     // cut to its headers; with Ack: frame aux came so
)

// Extend makes room for one more frame, which is written next: append would copy it twice.
func Extend(a []Frame) []Frame {
	n := len(a)
	if n == cap(a) {
		a = slices.Grow(a, max(16, n))
	}
	return a[:n+1]
}

// Sort puts frames in the order in which they arrive; of equal times the first stays first.
func Sort(a []Frame) {
	slices.SortStableFunc(a, func(x, y Frame) int { return cmp.Compare(x.At, y.At) })
}

// Ring is a ring of frames that grows: its length is a power of two.
type Ring struct {
	Buf        []Frame
	Head, Tail uint32
}

// Empty reports whether no frame is in the ring.
func (q *Ring) Empty() bool { return q.Head == q.Tail }

// Front is the first frame.
func (q *Ring) Front() *Frame { return &q.Buf[q.Head&uint32(len(q.Buf)-1)] }

// At is the frame at a place from Head to Tail.
func (q *Ring) At(i uint32) *Frame { return &q.Buf[i&uint32(len(q.Buf)-1)] }

// Rewind leads back to the begin of an empty ring's memory, which is in the cache.
func (q *Ring) Rewind() {
	q.Head = (q.Head + uint32(len(q.Buf)-1)) &^ uint32(len(q.Buf)-1)
	q.Tail = q.Head
}

// First is when the first frame is at the end of the cable; never without one, and then the next
// goes to the begin.
func (q *Ring) First() int64 {
	if q.Head == q.Tail {
		q.Rewind()
		return never
	}
	return q.Front().At
}

// Soon is when the first frame is at the end of the cable; never without one. Whether there is one is no
// branch, as it could not be foreseen.
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

// Before is where in a ring the first frame is that is at the end of the cable at a time or later.
func (q *Ring) Before(end int64) uint32 {
	to, m := q.Head, uint32(len(q.Buf)-1)
	for to != q.Tail && q.Buf[to&m].At < end {
		to++
	}
	return to
}

// Between is a part of a ring; one that lies apart is copied into memory.
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

// Take moves what comes before end to other frames, with another tag.
func (q *Ring) Take(tag uint32, end int64, into []Frame) []Frame {
	for ; !q.Empty() && q.Front().At < end; q.Head++ {
		f := *q.Front()
		f.Tag = tag
		into = append(into, f)
	}
	return into
}

// Move appends what comes before end to other frames, each on the next link of its route, and returns
// how many bytes that are.
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

// Insert puts a frame before those that arrive later.
func (q *Ring) Insert(f *Frame) {
	q.Push(f)
	m := uint32(len(q.Buf) - 1)
	for i := q.Tail - 1; i != q.Head && q.Buf[(i-1)&m].At > f.At; i-- {
		q.Buf[i&m], q.Buf[(i-1)&m] = q.Buf[(i-1)&m], q.Buf[i&m]
	}
}

// Last is the last frame.
func (q *Ring) Last() *Frame { return &q.Buf[(q.Tail-1)&uint32(len(q.Buf)-1)] }

// Push appends a copy of f.
func (q *Ring) Push(f *Frame) { q.Pass(f, f.At, f.Tag) }

// Pass appends a frame with another time and tag.
func (q *Ring) Pass(f *Frame, at int64, tag uint32) {
	if q.Full() {
		q.Grow()
	}
	q.Next().Set(f, at, tag)
}

// Full reports whether the ring must grow first.
func (q *Ring) Full() bool { return q.Tail-q.Head == uint32(len(q.Buf)) }

// Next is the place after the last frame of a ring that is not full, to be written.
func (q *Ring) Next() *Frame {
	q.Tail++
	return &q.Buf[(q.Tail-1)&uint32(len(q.Buf)-1)]
}

// Set copies a frame but for its time and tag. It copies field by field: fields of f were
// written just now, and wider loads would wait until those stores are done.
func (g *Frame) Set(f *Frame, at int64, tag uint32) {
	g.At, g.Flow, g.Psn, g.Route, g.Aux = at, f.Flow, f.Psn, f.Route, f.Aux
	g.Size, g.Flags, g.Class, g.Tag = f.Size, f.Flags, f.Class, tag
}

// Grow doubles the ring.
func (q *Ring) Grow() {
	n := make([]Frame, max(16, 2*len(q.Buf)))
	for i := q.Head; i != q.Tail; i++ {
		n[i&uint32(len(n)-1)] = q.Buf[i&uint32(len(q.Buf)-1)]
	}
	q.Buf = n
}

// Upto is where in a ring the first frame is that is at the end of the cable at a time or later, how
// many bytes those before it are, and whether none of them is a control frame.
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

// First is when the first of some frames is at the end of the cable; never without any.
func First(a []Frame) int64 {
	if len(a) == 0 {
		return never
	}
	return a[0].At
}

// InTurn chooses which of the classes that can is served next: control first, then after the last.
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

// Onward lets frames that came by a port begin the next link of their routes: keys are their places,
// and the port is their tag or, if tags are kept, appended to from.
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
