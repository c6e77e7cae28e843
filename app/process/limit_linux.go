package process

import (
	"math"
	"syscall"
)

// addressLimit is RLIMIT_AS (setrlimit(2)) in bytes, where there is one.
func addressLimit() (int64, bool) {
	var r syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_AS, &r); err != nil || r.Cur > math.MaxInt64 {
		return 0, false
	}
	return int64(r.Cur), true
}
