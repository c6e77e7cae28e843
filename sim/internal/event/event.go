// Package event is the virtual clock of the simulator: a queue of events in a
// total order (time, class, place), so that equal input always
// replays in the same order. It allocates only to grow.
package event

import (
	"cmp"
	"math"
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
	order uint64 // class, place and kind, in 8, 48 and 8 bits
	ID    int32
	Arg   int32
}

// Kind returns the kind that the event was pushed with, which is the caller's own.
func (e *Event) Kind() uint8 { return uint8(e.order) }

// Class returns the class that the event was pushed with: of two events at
// one instant the lower class comes first.
func (e *Event) Class() uint8 { return uint8(e.order >> 56) }

// A slot is a stretch of time whose events lie together: 2^slotBits ps, about 1 ns.
// A span of time has half as many slots as the wheel, which holds those of this span and
// of the next one, so at least of the next 2 us. The spans after those, up to 134 us from
// now, lie by span.
const (
	slotBits = 10
	slots    = 4096
	spanBits = slotBits + 11
	spans    = 64
)

// Queue holds events that are due within the current slot in order, those of the
// next slots by slot and then by span, unordered, and those after them in a heap. Few events share
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
	span   units.Time // its span
	wheel  wheel      // the slots after it
	beyond heap       // the time after the wheel's spans
	next   units.Time // of those after the current slot, where it was looked for
	looked bool
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
	switch {
	case q.head < len(q.due) || len(q.soon) > 0:
		return q.first().At, true
	case q.len == 0:
		return 0, false
	case !q.looked:
		q.next, q.looked = q.look(), true
	}
	return q.next, true
}

// look finds the time of the earliest event after the current slot, which stays: the
// clock may get to earlier ones, as where a flow ends first.
func (q *Queue) look() units.Time {
	at := units.Time(math.MaxInt64)
	if len(q.beyond) > 0 {
		at = q.beyond[0].At
	}
	if slot, ok := q.wheel.next(q.slot); ok {
		return min(at, q.wheel.earliest(q.wheel.heads[uint(slot)%slots]))
	}
	if span, ok := q.wheel.nextFar(q.span + 2); ok {
		return min(at, q.wheel.earliest(q.wheel.far[uint(span)%spans]))
	}
	return at
}

// First returns the earliest event, nil of an empty queue. It is good until the next call.
func (q *Queue) First() *Event {
	if q.head == len(q.due) && len(q.soon) == 0 && !q.turn() {
		return nil
	}
	return q.first()
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

// byPush is the place of events that come in the order in which they were pushed.
const byPush = 1 << 47

// Push adds an event. Among events of equal time and class the one pushed
// first comes first.
func (q *Queue) Push(at units.Time, class, kind uint8, id, arg int32) {
	q.seq++
	q.add(&Event{At: at, order: uint64(class)<<56 | byPush<<8 | q.seq<<8 | uint64(kind), ID: id, Arg: arg})
}

// PushNamed adds an event whose place does not depend on when it is pushed: among events of
// equal time and class it comes before those of Push, by arg and then by id. arg is from 0
// and below 1<<15.
func (q *Queue) PushNamed(at units.Time, class, kind uint8, id, arg int32) {
	q.add(&Event{At: at, order: uint64(class)<<56 | uint64(arg)<<40 | uint64(uint32(id))<<8 | uint64(kind),
		ID: id, Arg: arg})
}

// Continue has an empty queue go on from another one's time, with the places of what is
// pushed from now on after those of that one's.
func (q *Queue) Continue(of *Queue) { q.Now, q.seq = of.Now, of.seq }

// Put adds an event of another queue, whose place it keeps.
func (q *Queue) Put(e *Event) { q.add(e) }

// add puts an event in.
func (q *Queue) add(e *Event) {
	q.len++
	switch at := e.At; {
	case at>>slotBits > q.slot:
		q.wait(e)
	case q.head < len(q.due) && q.due[len(q.due)-1].before(e):
		q.due = append(q.due, *e)
	default:
		q.soon.push(e)
	}
}

// wait holds an event that comes after the current slot.
func (q *Queue) wait(e *Event) {
	q.next = min(q.next, e.At)
	if e.At>>spanBits > q.span+1 {
		q.catchUp()
	}
	switch span := e.At >> spanBits; {
	case span >= q.span+spans:
		q.beyond.push(e)
	case span > q.span+1:
		q.wheel.putFar(e)
	default:
		q.wheel.put(e)
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

// Ahead is the event that comes n events after the one popped last, as far as that is known; nil where not.
func (q *Queue) Ahead(n int) *Event {
	if q.head+n < len(q.due) {
		return &q.due[q.head+n]
	}
	return nil
}

// Skip counts an event as handled that would have been the next one to be popped, had
// it been pushed.
func (q *Queue) Skip() { q.done++ }

// catchUp has the wheel begin at the clock, which goes on without events too: as where
// flows end. No slot before that has events.
func (q *Queue) catchUp() {
	if q.head == len(q.due) && len(q.soon) == 0 && q.slot+1 < q.Now>>slotBits {
		q.goOn(q.Now>>slotBits - 1)
	}
}

// goOn makes a slot the current one: no earlier one has events.
func (q *Queue) goOn(slot units.Time) {
	q.slot = slot
	span := slot >> (spanBits - slotBits)
	if span == q.span {
		return
	}
	from := max(span, q.span+2) // whose events are not in slots
	q.span = span
	for s := from; s <= span+1; s++ {
		q.wheel.near(s)
	}
	for len(q.beyond) > 0 && q.beyond[0].At>>spanBits <= span+1 {
		e := q.beyond[0]
		q.beyond.pop()
		q.wheel.put(&e)
	}
}

// turn goes on to the next slot that has events, and reports whether one has.
func (q *Queue) turn() bool {
	if q.len == 0 {
		return false
	}
	slot, ok := q.wheel.next(q.slot)
	for !ok {
		span, some := q.wheel.nextFar(q.span + 2)
		if len(q.beyond) > 0 && (!some || q.beyond[0].At>>spanBits < span) {
			span = q.beyond[0].At >> spanBits
		}
		q.goOn(span<<(spanBits-slotBits) - 1) // the next one is in a slot then
		slot, ok = q.wheel.next(q.slot)
	}
	q.goOn(slot)
	q.head, q.looked = 0, false
	q.due = q.wheel.take(slot, q.due[:0])
	order(q.due)
	return true
}

// order sorts events, of which many mostly are in order.
func order(events []Event) {
	for i := 1; i < len(events); i++ {
		if events[i].before(&events[i-1]) {
			if len(events) > 16 {
				slices.SortFunc(events, func(a, b Event) int {
					return cmp.Or(cmp.Compare(a.At, b.At), cmp.Compare(a.order, b.order))
				})
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
	for _, head := range q.wheel.far {
		for n := head; n != 0; n = q.wheel.chunks[n-1].next {
			c := &q.wheel.chunks[n-1]
			dst = append(dst, c.events[:c.n]...)
		}
	}
	slices.SortFunc(dst[first:], func(a, b Event) int {
		return cmp.Or(cmp.Compare(a.At, b.At), cmp.Compare(a.order, b.order))
	})
	return dst
}
