package process

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"testing"
)

// TestHeapGrowsByRoomBetweenCollections: the collector's goal is above heapRoom, what inputs hold does not
// count the ballast, and GOGC of the environment takes precedence.
func TestHeapGrowsByRoomBetweenCollections(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(100))
	defer func() { ballast = nil }()
	goal := func() int64 {
		runtime.GC()
		m := []metrics.Sample{{Name: "/gc/heap/goal:bytes"}}
		metrics.Read(m)
		return int64(m[0].Value.Uint64())
	}
	t.Setenv("GOGC", "50")
	if LateCollection(); goal() > heapRoom {
		t.Errorf("with GOGC the heap grows to %d bytes", goal())
	}
	before := heldNow(true)
	t.Setenv("GOGC", "")
	if LateCollection(); goal() < 2*heapRoom {
		t.Errorf("the heap is collected at %d bytes, less than %d beyond the ballast", goal(), heapRoom)
	}
	if now := heldNow(true); now > before+heapRoom/2 {
		t.Errorf("inputs hold %d bytes, and %d before the ballast", now, before)
	}
}
