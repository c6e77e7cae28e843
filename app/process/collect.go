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

// LateCollection delays the first garbage collection until the heap has 32 MB, which short commands never
// reach. After that the heap grows between two collections by at least heapRoom, and by GOGC (Go's 100 %
// unless a lower value was set). A sweep of 64 ranks, which uses some megabytes at a time, takes a tenth less
// CPU. GOGC of the environment takes precedence.
func LateCollection() {
	for _, kv := range os.Environ() {
		if strings.HasPrefix(kv, "GOGC=") {
			return
		}
	}
	debug.SetGCPercent(mostPercent / 2)
	(&collections{set: mostPercent / 2, base: 100, limit: debug.SetMemoryLimit(-1)}).await()
}

// collections adjusts GOGC after each collection to the live heap.
//
// A value set after one collection may come while the next one is already marking, which then does not use
// it: a heap of 1 MB that has grown to 47 MB would grow to 17 times that. Therefore it also sets a memory
// limit of twice the desired growth, unless one was set.
type collections struct {
	set, base int   // GOGC as set last; GOGC to apply besides heapRoom
	limit     int64 // of memory, that was set last
	guards    bool  // it is collections' own
}

// await runs adjust after the next collection.
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

// limitFor returns the memory limit for the held memory and the live heap.
func limitFor(held, live uint64, base int) int64 {
	return int64(held + 2*(live*uint64(base)/100+heapRoom))
}

// percentFor returns the GOGC that lets a live heap of a number of bytes grow by base percent and heapRoom.
func percentFor(live uint64, base int) int {
	return int(min(mostPercent, uint64(base)+100*heapRoom/max(1, live)))
}
