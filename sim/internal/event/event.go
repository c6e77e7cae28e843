// Package event is the virtual clock of the simulator: a queue of events in a
// total order (time, class, sequence number), so that equal input always
// replays in the same order. It allocates only to grow.
package event

import (
	"cmp"
	"math/bits"
	"slices"

	"github.com/simccl/simccl/units"
)

// Classes of the simulator's events at one instant: completions precede attempts
// to start, and proxy threads close the instant.
const (
	Done uint8 = iota
	Try
	Round
)

// Event is one entry of the queue. ID and Arg belong to the caller.
type Event struct {
	At    units.Time
	order uint64 // class, sequence number and kind, in 8, 48 and 8 bits
	ID    int32
	Arg   int32
}

// Kind returns the kind that the event was pushed with, which is the caller's own.
func (e *Event) Kind() uint8 { return uint8(e.order) }

// Class returns the class that the event was pushed with: of two events at
// one instant the lower class comes first.
func (e *Event) Class() uint8 { return uint8(e.order >> 56) }

// A slot is a stretch of time whose events lie together: 2^slotBits ps, about 1 ns.
// The wheel holds the slots up to 4 us from now.
const (
	slotBits = 10
	slots    = 4096
)

// Queue holds events that are due within the current slot in order, those of the
// next slots by slot, unordered, and those after them in a heap. Few events share
// a slot, or nearly all of those that do are due at one instant and were pushed in
// order: either way there is little to sort. The zero Queue is empty and ready.
type Queue struct {
	// Now is the virtual time, which the caller sets as it handles what is next.
	Now units.Time

	seq  uint64
	done int64
	len  int

	due    []Event // of the current slot, in order, those from head on
	head   int
	soon   heap       // pushed since, before the end of that slot
	slot   units.Time // the current one
	wheel  wheel      // the slots after it
	beyond heap       // the time after the wheel
}

// Len returns the number of events that wait.
func (q *Queue) Len() int { return q.len }

// Handled returns how many events were popped since Reset.
func (q *Queue) Handled() int64 { return q.done }

// Reset empties the queue, sets the clock to zero and keeps the memory.
func (q *Queue) Reset() {
	q.wheel.reset()
	*q = Queue{due: q.due[:0], soon: q.soon[:0], wheel: q.wheel, beyond: q.beyond[:0]}
}

// Next returns the time of the earliest event; ok is false on an empty queue.
func (q *Queue) Next() (at units.Time, ok bool) {
	if q.head == len(q.due) && len(q.soon) == 0 && !q.turn() {
		return 0, false
	}
	return q.first().At, true
}

// first is the earliest event of the current slot, which has one.
func (q *Queue) first() *Event {
	if q.head == len(q.due) || len(q.soon) > 0 && q.soon[0].before(&q.due[q.head]) {
		return &q.soon[0]
	}
	return &q.due[q.head]
}

func (e *Event) before(o *Event) bool {
	if e.At != o.At {
		return e.At < o.At
	}
	return e.order < o.order
}

// Push adds an event. Among events of equal time and class the one pushed
// first comes first.
func (q *Queue) Push(at units.Time, class, kind uint8, id, arg int32) {
	q.seq++
	q.len++
	e := Event{At: at, order: uint64(class)<<56 | q.seq<<8 | uint64(kind), ID: id, Arg: arg}
	switch slot := at >> slotBits; {
	case slot > q.slot+slots:
		q.beyond.push(&e)
	case slot > q.slot:
		q.wheel.put(&e)
	case q.head < len(q.due) && q.due[len(q.due)-1].before(&e):
		q.due = append(q.due, e)
	default:
		q.soon.push(&e)
	}
}

// Pop removes the earliest event into e; it returns false on an empty queue.
func (q *Queue) Pop(e *Event) bool {
	if q.head == len(q.due) && len(q.soon) == 0 && !q.turn() {
		return false
	}
	q.take(e)
	return true
}

// take removes the earliest event of the current slot, which has one.
func (q *Queue) take(e *Event) {
	q.len--
	q.done++
	if q.head < len(q.due) && (len(q.soon) == 0 || q.due[q.head].before(&q.soon[0])) {
		*e = q.due[q.head]
		q.head++
		return
	}
	*e = q.soon[0]
	q.soon.pop()
}

// PopNow removes the earliest event into e if it is due now.
func (q *Queue) PopNow(e *Event) bool {
	if q.head < len(q.due) && q.due[q.head].At == q.Now || len(q.soon) > 0 && q.soon[0].At == q.Now {
		q.take(e)
		return true
	}
	return false
}

// Skip counts an event as handled that would have been the next one to be popped, had
// it been pushed.
func (q *Queue) Skip() { q.done++ }

// turn goes on to the next slot that has events, and reports whether one has.
func (q *Queue) turn() bool {
	if q.len == 0 {
		return false
	}
	slot, ok := q.wheel.next(q.slot)
	if !ok {
		slot = q.beyond[0].At >> slotBits
	}
	q.slot, q.head = slot, 0
	q.due = q.wheel.take(slot, q.due[:0]) // before its place is another slot's
	for len(q.beyond) > 0 && q.beyond[0].At>>slotBits <= slot+slots {
		e := q.beyond[0]
		q.beyond.pop()
		if e.At>>slotBits == slot {
			q.due = append(q.due, e)
		} else {
			q.wheel.put(&e)
		}
	}
	order(q.due)
	return true
}

// order sorts events, of which many mostly are in order.
func order(events []Event) {
	for i := 1; i < len(events); i++ {
		if events[i].before(&events[i-1]) {
			if len(events) > 16 {
				slices.SortFunc(events, func(a, b Event) int { return cmp.Or(cmp.Compare(a.At, b.At), cmp.Compare(a.order, b.order)) })
				return
			}
			e, k := events[i], i
			for ; k > 0 && e.before(&events[k-1]); k-- {
				events[k] = events[k-1]
			}
			events[k] = e
		}
	}
}

// AppendAll appends the events that wait, in the order in which Pop would
// return them.
func (q *Queue) AppendAll(dst []Event) []Event {
	first := len(dst)
	dst = append(dst, q.due[q.head:]...)
	dst = append(dst, q.soon...)
	dst = append(dst, q.beyond...)
	for i, word := range q.wheel.full {
		for ; word != 0; word &= word - 1 {
			for n := q.wheel.heads[64*i+bits.TrailingZeros64(word)]; n != 0; n = q.wheel.chunks[n-1].next {
				c := &q.wheel.chunks[n-1]
				dst = append(dst, c.events[:c.n]...)
			}
		}
	}
	slices.SortFunc(dst[first:], func(a, b Event) int { return cmp.Or(cmp.Compare(a.At, b.At), cmp.Compare(a.order, b.order)) })
	return dst
}
