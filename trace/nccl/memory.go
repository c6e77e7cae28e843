package nccl

import (
	"runtime/debug"
	"sync"
)

// While a trace is made, the heap holds hundreds of megabytes of live data, and little else is allocated:
// with a GC percentage of traceGC instead of 100 the additional time is negligible, and the process needs
// only two thirds of the memory.
const traceGC = 30

var collecting struct {
	sync.Mutex
	runs, percent int // number of runs that make a trace; GC percentage before them
}

// CollectOften lowers the garbage collector's percentage until the returned function is called. Runs may
// overlap.
func CollectOften() (done func()) {
	c := &collecting
	c.Lock()
	defer c.Unlock()
	if c.runs++; c.runs == 1 {
		// it was off, or lower already: restore it
		if c.percent = debug.SetGCPercent(traceGC); c.percent < traceGC {
			debug.SetGCPercent(c.percent)
		}
	}
	return func() {
		c.Lock()
		defer c.Unlock()
		if c.runs--; c.runs == 0 {
			debug.SetGCPercent(c.percent)
		}
	}
}
