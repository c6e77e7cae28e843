package sweep

import (
	"syscall"
	"time"
)

// cpu is the processor time of this thread so far (getrusage(2), RUSAGE_THREAD). What the
// collector does on other threads is not in it.
func cpu() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_THREAD, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
