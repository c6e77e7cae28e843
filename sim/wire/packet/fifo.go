package packet

import "slices"

// Flags of a frame.
const (
	flagAck    uint8 = 1 << iota // an acknowledgement; psn is the next expected
	flagNack                     // with flagAck: the receiver lacks psn
	flagCE                       // congestion experienced, echoed on the acknowledgement
	flagPause                    // PFC: stop class psn
	flagResume                   // PFC: go on with class psn
	flagSack                     // with flagAck: frame aux came out of order
	flagLost                     // it will be lost at the end of the cable
	flagTrim                     // cut to its headers; with flagAck: frame aux came so
)

// frame is a frame that waits or travels: 32 bytes.
type frame struct {
	at    int64  // ps: its last bit at the end of the cable
	flow  int32  // -1: PFC
	psn   uint32 // number of the data frame
	route uint32 // index in engine.hops of its link
	aux   uint32 // of congestion control: a time or a record
	size  uint16 // bytes on the wire
	flags uint8
	class uint8  // 0 control, else the index of its priority
	tag   uint32 // in a switch the port by which it came; on a cable, with EventOrder, its instant.Number
}

// extend makes room for one more frame, which is written next: append would copy it twice.
func extend(a []frame) []frame {
	n := len(a)
	if n == cap(a) {
		a = slices.Grow(a, max(16, n))
	}
	return a[:n+1]
}

// fifo is a ring of frames that grows: its length is a power of two.
type fifo struct {
	buf        []frame
	head, tail uint32
}

func (q *fifo) empty() bool   { return q.head == q.tail }
func (q *fifo) front() *frame { return &q.buf[q.head&uint32(len(q.buf)-1)] }

// rewind leads back to the begin of an empty ring's memory, which is in the cache.
func (q *fifo) rewind() {
	q.head = (q.head + uint32(len(q.buf)-1)) &^ uint32(len(q.buf)-1)
	q.tail = q.head
}

// first is when the first frame is at the end of the cable; never without one, and then the next
// goes to the begin.
func (q *fifo) first() int64 {
	if q.head == q.tail {
		q.rewind()
		return never
	}
	return q.front().at
}

// between is a part of a ring; one that lies apart is copied into memory.
func (q *fifo) between(from, to uint32, memory *[]frame) []frame {
	m := uint32(len(q.buf) - 1)
	if from == to {
		return nil
	}
	if i, j := from&m, (to-1)&m; i <= j {
		return q.buf[i : j+1]
	}
	*memory = append(append((*memory)[:0], q.buf[from&m:]...), q.buf[:to&m]...)
	return *memory
}

// insert puts a frame before those that arrive later.
func (q *fifo) insert(f *frame) {
	q.push(f)
	m := uint32(len(q.buf) - 1)
	for i := q.tail - 1; i != q.head && q.buf[(i-1)&m].at > f.at; i-- {
		q.buf[i&m], q.buf[(i-1)&m] = q.buf[(i-1)&m], q.buf[i&m]
	}
}

// push appends a copy of f.
func (q *fifo) push(f *frame) { q.pass(f, f.at, f.tag) }

// pass appends a frame with another time and tag.
func (q *fifo) pass(f *frame, at int64, tag uint32) {
	if q.full() {
		q.grow()
	}
	q.next().set(f, at, tag)
}

func (q *fifo) full() bool { return q.tail-q.head == uint32(len(q.buf)) }

// next is the place after the last frame of a ring that is not full, to be written.
func (q *fifo) next() *frame {
	q.tail++
	return &q.buf[(q.tail-1)&uint32(len(q.buf)-1)]
}

// set copies a frame but for its time and tag. It copies field by field: fields of f were
// written just now, and wider loads would wait until those stores are done.
func (g *frame) set(f *frame, at int64, tag uint32) {
	g.at, g.flow, g.psn, g.route, g.aux = at, f.flow, f.psn, f.route, f.aux
	g.size, g.flags, g.class, g.tag = f.size, f.flags, f.class, tag
}

func (q *fifo) grow() {
	n := make([]frame, max(16, 2*len(q.buf)))
	for i := q.head; i != q.tail; i++ {
		n[i&uint32(len(n)-1)] = q.buf[i&uint32(len(q.buf)-1)]
	}
	q.buf = n
}
