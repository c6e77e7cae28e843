package process

import (
	"math"
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
	(&collections{set: mostPercent / 2, base: 100, limit: debug.SetMemoryLimit(-1)}).await()
}

// collections sets GOGC after each collection to what the live heap asks for.
//
// What is found after one collection may be set while the next one marks, and that one is not
// noticed then: a heap of 1 MB that has 47 MB by now would grow to 17 times that. So there is a
// limit of memory as well, at twice the growth that is asked for, where none was set.
type collections struct {
	set, base int   // what was set last; what is asked for beside heapRoom
	limit     int64 // of memory, that was set last
	guards    bool  // it is collections' own
}

// await has adjust run after the next collection.
func (c *collections) await() { runtime.AddCleanup(new([16]byte), (*collections).adjust, c) }

func (c *collections) adjust() {
	m := []metrics.Sample{{Name: "/gc/heap/live:bytes"}, {Name: "/memory/classes/total:bytes"},
		{Name: "/memory/classes/heap/released:bytes"}}
	metrics.Read(m)
	live, held := m[0].Value.Uint64(), m[1].Value.Uint64()-m[2].Value.Uint64()
	before := debug.SetGCPercent(c.set)
	if before < 0 { // collection is off
		debug.SetGCPercent(before)
		return
	}
	if before != c.set { // set by a caller for a while, or put back by it
		c.base = min(100, before)
	}
	c.set = percentFor(live, c.base)
	debug.SetGCPercent(c.set)
	if c.limit == math.MaxInt64 || c.guards {
		c.guard(limitFor(held, live, c.base))
	}
	c.await()
}

// guard sets the limit of memory, unless another one was set meanwhile.
func (c *collections) guard(limit int64) {
	if before := debug.SetMemoryLimit(limit); before != c.limit {
		debug.SetMemoryLimit(before)
		c.limit, c.guards = before, false
		return
	}
	c.limit, c.guards = limit, true
}

// limitFor is the limit of memory for what is held and a live heap.
func limitFor(held, live uint64, base int) int64 {
	return int64(held + 2*(live*uint64(base)/100+heapRoom))
}

// percentFor is GOGC for a live heap in bytes: by base percent and heapRoom more it is to grow.
func percentFor(live uint64, base int) int {
	return int(min(mostPercent, uint64(base)+100*heapRoom/max(1, live)))
}
