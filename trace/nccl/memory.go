package nccl

import (
	"runtime/debug"
	"sync"
)

// While a trace is made, the heap holds hundreds of megabytes that stay, and little
// else is allocated: collecting at traceGC percent of garbage in place of 100 costs
// no time worth mention and keeps the process at two thirds of its size.
const traceGC = 30

var collecting struct {
	sync.Mutex
	runs, percent int // runs that make a trace; what was set before them
}

// CollectOften lets the garbage collector run more often until the returned function
// is called. Runs may overlap.
func CollectOften() (done func()) {
	c := &collecting
	c.Lock()
	defer c.Unlock()
	if c.runs++; c.runs == 1 {
		// off, or more often already: as it was
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
