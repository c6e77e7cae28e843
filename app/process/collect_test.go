package process

import (
	"math"
	"runtime/debug"
	"testing"
)

// A limit of memory that others set stays; one of our own is moved.
func TestMemoryLimitOfOthersStays(t *testing.T) {
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(-1))
	debug.SetMemoryLimit(math.MaxInt64)
	c := collections{limit: math.MaxInt64}
	for _, limit := range []int64{4 << 30, 5 << 30} {
		if c.guard(limit); debug.SetMemoryLimit(-1) != limit || !c.guards {
			t.Errorf("the limit is %d, want %d", debug.SetMemoryLimit(-1), limit)
		}
	}
	debug.SetMemoryLimit(3 << 30)
	if c.guard(6 << 30); debug.SetMemoryLimit(-1) != 3<<30 || c.guards {
		t.Errorf("the limit of others is %d now", debug.SetMemoryLimit(-1))
	}
}

// A small heap grows to 64 MB, a large one by what is asked for and little more.
func TestHeapGrowsByRoomAndShare(t *testing.T) {
	const mb = 1 << 20
	for _, c := range []struct {
		live uint64
		base int
		goal uint64 // in MB
	}{{1 * mb, 100, 64}, {64 * mb, 100, 192}, {64 * mb, 30, 147}, {1024 * mb, 100, 2109},
		{1024 * mb, 30, 1392}} {
		percent := percentFor(c.live, c.base)
		goal := max(4*mb*uint64(percent)/100, c.live+c.live*uint64(percent)/100)
		if got := goal / mb; got != c.goal {
			t.Errorf("a live heap of %d MB with %d %% grows to %d MB, want %d", c.live/mb, c.base, got,
				c.goal)
		}
	}
	if got := limitFor(100*mb, 50*mb, 30) / mb; got != 100+2*(15+64) {
		t.Errorf("50 MB live and 100 held with 30 %% may grow to %d MB", got)
	}
	if n := testing.AllocsPerRun(10, func() { percentFor(0, 100) }); n != 0 ||
		percentFor(0, 100) != mostPercent {
		t.Errorf("an empty heap gets %d %%", percentFor(0, 100))
	}
}
