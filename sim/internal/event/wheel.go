package event

import (
	"math/bits"

	"github.com/simccl/simccl/units"
)

// wheel holds the events of a number of slots, by slot: that of time t is t's slot
// modulo their number. Events of a slot lie in chunks, the newest chunk first. Events
// of later spans lie by span.
type wheel struct {
	chunks []chunk
	free   int32        // list of chunks
	heads  [slots]int32 // chunk + 1, 0 without one
	full   [slots / 64]uint64
	any    uint64       // words of full that are not zero
	far    [spans]int32 // as heads, of the spans after those of the slots
	later  uint64       // spans that have events
}

// chunk is some events of a slot in the order in which they were put: two lines of a
// cache, of which up to two events need the first.
type chunk struct {
	n      int32
	next   int32 // chunk + 1
	events [5]Event
}

func (w *wheel) reset() {
	*w = wheel{chunks: w.chunks[:0]}
}

func (w *wheel) put(e *Event) {
	at := uint(e.At>>slotBits) % slots
	w.add(&w.heads[at], e)
	w.full[at/64] |= 1 << (at % 64)
	w.any |= 1 << (at / 64)
}

// putFar holds an event by its span.
func (w *wheel) putFar(e *Event) {
	at := uint(e.At>>spanBits) % spans
	w.add(&w.far[at], e)
	w.later |= 1 << at
}

// add puts an event into the chunks of a list.
func (w *wheel) add(head *int32, e *Event) {
	i := *head
	if i == 0 || w.chunks[i-1].n == int32(len(w.chunks[i-1].events)) {
		i = w.grow(i)
		*head = i
	}
	c := &w.chunks[i-1]
	c.events[c.n] = *e
	c.n++
}

// grow is a new chunk before others.
func (w *wheel) grow(next int32) int32 {
	i := w.free
	if i == 0 {
		w.chunks = append(w.chunks, chunk{})
		i = int32(len(w.chunks))
	} else {
		w.free = w.chunks[i-1].next
	}
	w.chunks[i-1].n, w.chunks[i-1].next = 0, next
	return i
}

// earliest is the time of the earliest event of a list.
func (w *wheel) earliest(head int32) units.Time {
	at := w.chunks[head-1].events[0].At
	for i := head; i != 0; i = w.chunks[i-1].next {
		c := &w.chunks[i-1]
		for k := range c.events[:c.n] {
			at = min(at, c.events[k].At)
		}
	}
	return at
}

// near moves the events of a span to their slots.
func (w *wheel) near(span units.Time) {
	at := uint(span) % spans
	for i := w.far[at]; i != 0; {
		c := w.chunks[i-1]
		w.chunks[i-1].next, w.free = w.free, i
		for k := range c.events[:c.n] {
			w.put(&c.events[k])
		}
		i = c.next
	}
	w.far[at] = 0
	w.later &^= 1 << at
}

// nextFar is the first span, not before the given one, that has events beyond the slots;
// ok is false where none has.
func (w *wheel) nextFar(span units.Time) (next units.Time, ok bool) {
	if w.later == 0 {
		return 0, false
	}
	return span + units.Time(bits.TrailingZeros64(bits.RotateLeft64(w.later, -int(uint(span)%spans)))), true
}

// next is the first slot after one that has events; ok is false where none has.
func (w *wheel) next(slot units.Time) (next units.Time, ok bool) {
	if w.any == 0 {
		return 0, false
	}
	from := uint(slot+1) % slots
	at := from
	if word := w.full[from/64] >> (from % 64); word != 0 {
		at += uint(bits.TrailingZeros64(word))
	} else {
		// The words after it, around, and that one's lower bits last.
		k := from/64 + 1
		k += uint(bits.TrailingZeros64(bits.RotateLeft64(w.any, -int(k%64))))
		at = k%64*64 + uint(bits.TrailingZeros64(w.full[k%64]))
	}
	return slot + 1 + units.Time((at-from)%slots), true
}

// take appends the events of a slot in the order in which they were put.
func (w *wheel) take(slot units.Time, to []Event) []Event {
	at := uint(slot) % slots
	first := int32(0) // the chunks in the order in which they were begun
	for i := w.heads[at]; i != 0; {
		c := &w.chunks[i-1]
		i, c.next, first = c.next, first, i
	}
	for i := first; i != 0; {
		c := &w.chunks[i-1]
		to = append(to, c.events[:c.n]...)
		i, c.next, w.free = c.next, w.free, i
	}
	w.heads[at] = 0
	if w.full[at/64] &^= 1 << (at % 64); w.full[at/64] == 0 {
		w.any &^= 1 << (at / 64)
	}
	return to
}

// heap is a 4-ary min-heap of events.
type heap []Event

func (h *heap) push(e *Event) {
	q := append(*h, *e)
	i := len(q) - 1
	for i > 0 {
		up := (i - 1) / 4
		if !e.before(&q[up]) {
			break
		}
		q[i] = q[up]
		i = up
	}
	q[i] = *e
	*h = q
}

// pop removes the earliest event.
func (h *heap) pop() {
	q := *h
	n := len(q) - 1
	e := q[n]
	q = q[:n]
	*h = q
	i := 0
	for {
		first := 4*i + 1
		if first >= n {
			break
		}
		best := first
		for c, end := first+1, min(first+4, n); c < end; c++ {
			if q[c].before(&q[best]) {
				best = c
			}
		}
		if !q[best].before(&e) {
			break
		}
		q[i] = q[best]
		i = best
	}
	if n > 0 {
		q[i] = e
	}
}
