package process

import "testing"

// A small heap grows to 64 MB, a large one by what is asked for and little more.
func TestHeapGrowsByRoomAndShare(t *testing.T) {
	const mb = 1 << 20
	for _, c := range []struct {
		live uint64
		base int
		goal uint64 // in MB
	}{{1 * mb, 100, 64}, {64 * mb, 100, 192}, {64 * mb, 30, 147}, {1024 * mb, 100, 2109}, {1024 * mb, 30, 1392}} {
		percent := percentFor(c.live, c.base)
		goal := max(4*mb*uint64(percent)/100, c.live+c.live*uint64(percent)/100)
		if got := goal / mb; got != c.goal {
			t.Errorf("a live heap of %d MB with %d %% grows to %d MB, want %d", c.live/mb, c.base, got, c.goal)
		}
	}
	if n := testing.AllocsPerRun(10, func() { percentFor(0, 100) }); n != 0 || percentFor(0, 100) != mostPercent {
		t.Errorf("an empty heap gets %d %%", percentFor(0, 100))
	}
}
