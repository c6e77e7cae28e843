package trace

import (
	"fmt"
	"os"
	"runtime/debug"

	"github.com/simccl/simccl/trace"
	"github.com/simccl/simccl/units"
)

// affordable returns how many bytes a reader of traces may keep. Under a limit on the address space (ulimit
// -v) it is a quarter of the remaining space, and the garbage collector is limited to three quarters: growing
// lists exist twice while they are copied, and the collector needs room.
func affordable() units.Bytes {
	limit := addressSpace()
	if limit >= 1<<40 {
		return trace.DefaultMemory
	}
	var pages int64
	if text, err := os.ReadFile("/proc/self/statm"); err == nil {
		_, _ = fmt.Sscan(string(text), &pages) // 0 where it is not there
	}
	left := int64(limit) - pages*int64(os.Getpagesize())
	debug.SetMemoryLimit(max(64<<20, left*3/4))
	return max(16<<20, min(trace.DefaultMemory, units.Bytes(left/4)))
}
