//go:build unix

package trace

import (
	"math"
	"syscall"
)

// addressSpace returns the limit on this process's address space, in bytes.
func addressSpace() uint64 {
	var limit syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_AS, &limit) != nil {
		return math.MaxUint64
	}
	return uint64(limit.Cur)
}
