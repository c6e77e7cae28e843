package event

import (
	"math/bits"

	"github.com/simccl/simccl/units"
)

// wheel holds the events of a number of slots, by slot: that of time t is t's slot
// modulo their number. Events of a slot are a list, the last one put first.
type wheel struct {
	nodes []node
	free  int32        // list of nodes
	heads [slots]int32 // node + 1, 0 without one
	full  [slots / 64]uint64
	any   uint64 // words of full that are not zero
}

type node struct {
	Event
	next int32 // node + 1
}

func (w *wheel) reset() {
	w.nodes, w.free, w.any = w.nodes[:0], 0, 0
	clear(w.heads[:])
	clear(w.full[:])
}

func (w *wheel) put(e *Event) {
	i := w.free
	if i == 0 {
		w.nodes = append(w.nodes, node{})
		i = int32(len(w.nodes))
	} else {
		w.free = w.nodes[i-1].next
	}
	at := uint(e.At>>slotBits) % slots
	n := &w.nodes[i-1]
	n.Event, n.next = *e, w.heads[at]
	w.heads[at] = i
	w.full[at/64] |= 1 << (at % 64)
	w.any |= 1 << (at / 64)
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
	first := len(to)
	for i := w.heads[at]; i != 0; {
		n := &w.nodes[i-1]
		to = append(to, n.Event)
		next := n.next
		n.next = w.free
		w.free = i
		i = next
	}
	for i, k := first, len(to)-1; i < k; i, k = i+1, k-1 {
		to[i], to[k] = to[k], to[i]
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
