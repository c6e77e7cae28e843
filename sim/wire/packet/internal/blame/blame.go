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
