package streams

import "github.com/simccl/simccl/units"

// timers is a binary min-heap of the tasks' next events. It does not use internal/heap: with a comparison
// through a type parameter jobs take 5 % longer (BenchmarkJobs).
type timers struct {
	list []timer
	at   []int32 // by task: its index in list; -1: none
}

// timer is the time of a task's next event.
type timer struct {
	due  units.Time
	task int32
}

// before orders by time, equal times by task, so that the order does not depend on the history of the heap.
func (a timer) before(b timer) bool { return a.due < b.due || a.due == b.due && a.task < b.task }

// schedule sets the time of a task's next event.
func (h *timers) schedule(t int32, due units.Time) {
	i := h.at[t]
	if i < 0 {
		i = int32(len(h.list))
		h.list = append(h.list, timer{})
	}
	h.sift(i, timer{due, t})
}

// drop removes a task's event, if it has one.
func (h *timers) drop(t int32) {
	i, n := h.at[t], int32(len(h.list)-1)
	if i < 0 {
		return
	}
	last := h.list[n]
	h.list, h.at[t] = h.list[:n], -1
	if i < n {
		h.sift(i, last)
	}
}

// sift places x in the heap, starting from the free index i, upwards or downwards.
func (h *timers) sift(i int32, x timer) {
	list := h.list
	for i > 0 && x.before(list[(i-1)/2]) {
		list[i] = list[(i-1)/2]
		h.at[list[i].task] = i
		i = (i - 1) / 2
	}
	for {
		c := 2*i + 1
		if c >= int32(len(list)) {
			break
		}
		if c+1 < int32(len(list)) && list[c+1].before(list[c]) {
			c++
		}
		if !list[c].before(x) {
			break
		}
		list[i] = list[c]
		h.at[list[i].task] = i
		i = c
	}
	list[i], h.at[x.task] = x, i
}
