package sweep

import (
	"syscall"
	"time"
)

// moment is a reading of the clocks of a goroutine's thread.
type moment struct {
	thread int
	cpu    time.Duration // of the thread (getrusage(2), RUSAGE_THREAD)
	wall   time.Time
}

func now() moment {
	m := moment{thread: syscall.Gettid(), wall: time.Now()}
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_THREAD, &u) == nil {
		m.cpu = time.Duration(u.Utime.Nano() + u.Stime.Nano())
	}
	return m
}

// until returns the processor time that a goroutine used from m to end, without the garbage collector's on
// other threads. If the goroutine moved to another thread it returns the elapsed time, an upper bound.
func (m moment) until(end moment) time.Duration {
	if m.thread != end.thread {
		return end.wall.Sub(m.wall)
	}
	return end.cpu - m.cpu
}
