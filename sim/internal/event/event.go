// Package event is the virtual clock of the simulator: a queue of events in a
// total order (time, class, sequence number), so that equal input always
// replays in the same order. It allocates only to grow.
package event

import (
	"cmp"
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

// Event is one entry of the queue. Kind, ID and Arg belong to the caller.
type Event struct {
	At    units.Time
	order uint64 // class in the upper 8 bits, sequence number below
	ID    int32
	Arg   int32
	Kind  uint8
}

// Class returns the class that the event was pushed with: of two events at
// one instant the lower class comes first.
func (e *Event) Class() uint8 { return uint8(e.order >> 56) }

// Queue is a 4-ary min-heap of events. The zero Queue is empty and ready.
type Queue struct {
	// Now is the virtual time, which the caller sets as it handles what is next.
	Now units.Time

	heap []Event
	seq  uint64
	done int64
}

// Len returns the number of events that wait.
func (q *Queue) Len() int { return len(q.heap) }

// Handled returns how many events were popped since Reset.
func (q *Queue) Handled() int64 { return q.done }

// Reset empties the queue, sets the clock to zero and keeps the memory.
func (q *Queue) Reset() { q.heap, q.seq, q.done, q.Now = q.heap[:0], 0, 0, 0 }

// Next returns the time of the earliest event; ok is false on an empty queue.
func (q *Queue) Next() (at units.Time, ok bool) {
	if len(q.heap) == 0 {
		return 0, false
	}
	return q.heap[0].At, true
}

func less(a, b *Event) bool {
	if a.At != b.At {
		return a.At < b.At
	}
	return a.order < b.order
}

// Push adds an event. Among events of equal time and class the one pushed
// first comes first.
func (q *Queue) Push(at units.Time, class, kind uint8, id, arg int32) {
	q.seq++
	e := Event{At: at, order: uint64(class)<<56 | q.seq, ID: id, Arg: arg, Kind: kind}
	q.heap = append(q.heap, e)
	i := len(q.heap) - 1
	for i > 0 {
		up := (i - 1) / 4
		if !less(&e, &q.heap[up]) {
			break
		}
		q.heap[i] = q.heap[up]
		i = up
	}
	q.heap[i] = e
}

// Pop removes the earliest event into e; it returns false on an empty queue.
func (q *Queue) Pop(e *Event) bool {
	n := len(q.heap)
	if n == 0 {
		return false
	}
	*e = q.heap[0]
	q.done++
	last := q.heap[n-1]
	q.heap = q.heap[:n-1]
	if n--; n > 0 {
		q.sink(last, n)
	}
	return true
}

// sink places e, taken from the end, downwards from the root of n events.
func (q *Queue) sink(e Event, n int) {
	h := q.heap
	i := 0
	for {
		first := 4*i + 1
		if first >= n {
			break
		}
		best := first
		for c, end := first+1, min(first+4, n); c < end; c++ {
			if less(&h[c], &h[best]) {
				best = c
			}
		}
		if !less(&h[best], &e) {
			break
		}
		h[i] = h[best]
		i = best
	}
	h[i] = e
}

// AppendAll appends the events that wait, in the order in which Pop would
// return them.
func (q *Queue) AppendAll(dst []Event) []Event {
	first := len(dst)
	dst = append(dst, q.heap...)
	slices.SortFunc(dst[first:], func(a, b Event) int { return cmp.Or(cmp.Compare(a.At, b.At), cmp.Compare(a.order, b.order)) })
	return dst
}
