package process

import (
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"strings"
)

// heapRoom is by how much the heap grows at least between two collections, mostPercent what
// GOGC is at most for that: the runtime multiplies it by 4 MB to find the least heap.
const (
	heapRoom    = 64 << 20
	mostPercent = 100 * heapRoom / (4 << 20)
)

// LateCollection puts off the first collection until the heap has 32 MB, which short
// commands never reach. From then on the heap grows by heapRoom at least between two
// collections, and by what is set beside that, which is Go's 100 % unless less was asked
// for. A sweep of 64 ranks, which holds some megabytes at a time, takes a tenth less CPU.
// GOGC of the environment stays as it is.
func LateCollection() {
	for _, kv := range os.Environ() {
		if strings.HasPrefix(kv, "GOGC=") {
			return
		}
	}
	debug.SetGCPercent(mostPercent / 2)
	(&collections{set: mostPercent / 2, base: 100}).await()
}

// collections sets GOGC after each collection to what the live heap asks for.
type collections struct {
	set, base int // what was set last; what is asked for beside heapRoom
}

// await has adjust run after the next collection.
func (c *collections) await() { runtime.AddCleanup(new([16]byte), (*collections).adjust, c) }

func (c *collections) adjust() {
	live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(live)
	before := debug.SetGCPercent(c.set)
	if before < 0 { // collection is off
		debug.SetGCPercent(before)
		return
	}
	if before != c.set { // set by a caller for a while, or put back by it
		c.base = min(100, before)
	}
	c.set = percentFor(live[0].Value.Uint64(), c.base)
	debug.SetGCPercent(c.set)
	c.await()
}

// percentFor is GOGC for a live heap in bytes: by base percent and heapRoom more it is to grow.
func percentFor(live uint64, base int) int {
	return int(min(mostPercent, uint64(base)+100*heapRoom/max(1, live)))
}
