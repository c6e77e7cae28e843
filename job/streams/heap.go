package streams

import "github.com/simccl/simccl/units"

// timers is a heap of tasks by the time of their next event; equal times are
// ordered by task. A task knows its place.
type timers struct {
	r    *run
	list []int32
}

func (h *timers) less(a, b int32) bool {
	x, y := &h.r.tasks[a], &h.r.tasks[b]
	return x.due < y.due || x.due == y.due && a < b
}

func (h *timers) set(i int, t int32) {
	h.list[i] = t
	h.r.tasks[t].place = int32(i)
}

// schedule sets when a task's next event is.
func (h *timers) schedule(t int32, at units.Time) {
	x := &h.r.tasks[t]
	x.due = at
	if x.place < 0 {
		h.list = append(h.list, t)
		x.place = int32(len(h.list) - 1)
	}
	h.up(int(x.place))
	h.down(int(x.place))
}

// drop takes a task out.
func (h *timers) drop(t int32) {
	x := &h.r.tasks[t]
	i := int(x.place)
	if i < 0 {
		return
	}
	x.place = -1
	last := len(h.list) - 1
	moved := h.list[last]
	h.list = h.list[:last]
	if i < last {
		h.set(i, moved)
		h.up(i)
		h.down(int(h.r.tasks[moved].place))
	}
}

func (h *timers) up(i int) {
	for t := h.list[i]; i > 0; {
		parent := (i - 1) / 2
		if !h.less(t, h.list[parent]) {
			break
		}
		h.set(i, h.list[parent])
		h.set(parent, t)
		i = parent
	}
}

func (h *timers) down(i int) {
	t := h.list[i]
	for {
		c := 2*i + 1
		if c >= len(h.list) {
			return
		}
		if c+1 < len(h.list) && h.less(h.list[c+1], h.list[c]) {
			c++
		}
		if !h.less(h.list[c], t) {
			return
		}
		h.set(i, h.list[c])
		h.set(c, t)
		i = c
	}
}
