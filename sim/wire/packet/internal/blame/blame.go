// Package blame keeps what a port waited for, by how long.
//
// What it must not know: what waits.
package blame

// List is the first few causes with their times.
type List [4]struct {
	cause int32 // and two: 0 is free
	time  int64
}

// Add counts a time for a cause; there is no room for more than the first four.
func (l *List) Add(cause int32, time int64) {
	for i := range l {
		if x := &l[i]; x.cause == cause+2 || x.cause == 0 {
			x.cause = cause + 2
			x.time += time
			return
		}
	}
}

// Worst is the cause with the most time; without any, present.
func (l *List) Worst(present int32) int32 {
	best := 0
	for i := range l {
		if l[i].time > l[best].time {
			best = i
		}
	}
	if l[best].cause == 0 {
		return present
	}
	return l[best].cause - 2
}

// Wait is how long one waited for a cause.
type Wait struct {
	Who, Cause int32
	Time       int64
	until      int64 // end of the wait that was added last
}

// Waits are the first four that waited.
type Waits struct {
	list [4]Wait
	n    int
}

// Add counts a wait that ended at until, each end once.
func (w *Waits) Add(who, cause int32, until, time int64) {
	for i := range w.list[:w.n] {
		if v := &w.list[i]; v.Who == who && v.Cause == cause {
			if v.until != until {
				v.until = until
				v.Time += time
			}
			return
		}
	}
	if w.n < len(w.list) {
		w.list[w.n] = Wait{who, cause, time, until}
		w.n++
	}
}

// All lists the waits in the order in which they began.
func (w *Waits) All() []Wait { return w.list[:w.n] }
