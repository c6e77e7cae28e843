package uec

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"testing"
)

// TestTimers: timers are due by time, those of one time in the order in which they were added, also after they were moved.
func TestTimers(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 2))
	var h timers
	var list []timer
	for now, added := int64(0), int32(0); now < 3000; now++ {
		for range r.IntN(3) {
			at := now + 1 + r.Int64N(40)
			h.add(added, at)
			list = append(list, timer{at, added, added})
			added++
		}
		for h.first() <= now {
			k := slices.Index(list, slices.MinFunc(list, func(x, y timer) int { return cmp.Or(cmp.Compare(x.at, y.at), cmp.Compare(x.order, y.order)) }))
			if want := list[k]; h.first() != want.at || h.flow() != want.flow {
				t.Fatalf("flow %d is due at %d, want %d at %d", h.flow(), h.first(), want.flow, want.at)
			}
			if r.IntN(3) > 0 {
				h.drop()
				list = slices.Delete(list, k, k+1)
				continue
			}
			list[k].at = now + 1 + r.Int64N(20)
			h.move(list[k].at)
		}
	}
	if len(h.heap) != len(list) || h.added < 1000 {
		t.Errorf("%d timers are left of %d, want %d", len(h.heap), h.added, len(list))
	}
}
