// Package heap is a binary min-heap of values that define their order (Before), and the topological order
// that one gives (Order).
//
// In: values. What it must not know: what they are.
package heap

// Ordered is a value with a total order.
type Ordered[T any] interface{ Before(T) bool }

// Heap is a binary min-heap. The zero value is ready.
type Heap[T Ordered[T]] struct {
	// Moved gets the place of each value that moves, for Fix and Remove.
	Moved func(v T, i int)
	list  []T
}

// Len returns the number of values.
func (h *Heap[T]) Len() int { return len(h.list) }

// First returns the least value; the heap must not be empty.
func (h *Heap[T]) First() T { return h.list[0] }

// Push adds a value.
func (h *Heap[T]) Push(v T) {
	h.list = append(h.list, v)
	h.up(len(h.list)-1, v)
}

// Pop removes and returns the least value.
func (h *Heap[T]) Pop() T {
	v := h.list[0]
	h.Remove(0)
	return v
}

// Remove removes the value at index i.
func (h *Heap[T]) Remove(i int) {
	n := len(h.list) - 1
	last := h.list[n]
	h.list = h.list[:n]
	if i < n {
		h.Fix(i, last)
	}
}

// Fix replaces the value at i, which may be the same with another place in the order.
func (h *Heap[T]) Fix(i int, v T) {
	if i > 0 && v.Before(h.list[(i-1)/2]) {
		h.up(i, v)
		return
	}
	for n := len(h.list); ; {
		c := 2*i + 1
		if c >= n {
			break
		}
		if c+1 < n && h.list[c+1].Before(h.list[c]) {
			c++
		}
		if !h.list[c].Before(v) {
			break
		}
		h.set(i, h.list[c])
		i = c
	}
	h.set(i, v)
}

// up moves v from index i towards the root until its parent is not greater.
func (h *Heap[T]) up(i int, v T) {
	for i > 0 {
		p := (i - 1) / 2
		if !v.Before(h.list[p]) {
			break
		}
		h.set(i, h.list[p])
		i = p
	}
	h.set(i, v)
}

func (h *Heap[T]) set(i int, v T) {
	h.list[i] = v
	if h.Moved != nil {
		h.Moved(v, i)
	}
}
