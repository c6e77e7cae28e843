package streams

import (
	"github.com/simccl/simccl/internal/heap"
	"github.com/simccl/simccl/units"
)

// timers are the next events of tasks. A task knows its place among them.
type timers = heap.Heap[timer]

// timer is a task's next event.
type timer struct {
	due  units.Time
	task int32
}

// Before implements heap.Ordered: equal times are ordered by task.
func (a timer) Before(b timer) bool { return a.due < b.due || a.due == b.due && a.task < b.task }

// moved notes where a task lies in timers.
func (r *run) moved(t timer, i int) { r.tasks[t.task].place = int32(i) }

// schedule sets when a task's next event is.
func (r *run) schedule(t int32, at units.Time) {
	if i := r.tasks[t].place; i >= 0 {
		r.timers.Fix(int(i), timer{at, t})
	} else {
		r.timers.Push(timer{at, t})
	}
}

// unschedule takes a task out of timers.
func (r *run) unschedule(t int32) {
	x := &r.tasks[t]
	if x.place >= 0 {
		r.timers.Remove(int(x.place))
		x.place = -1
	}
}
