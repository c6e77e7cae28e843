package collector

import (
	"testing"
)

// TestBeside: compute that runs beside kernels of communicators takes longer while they
// do, and they take longer as well once all their ranks are there.
func TestBeside(t *testing.T) {
	const compute, calls = 1.25, 1.5
	for _, c := range []struct {
		at, took int64
		busy     []busySpan
		want     int64
	}{
		{100, 1000, nil, 1100},
		{100, 0, []busySpan{{0, 0, 500}}, 100},
		{100, 1000, []busySpan{{0, 0, 100}, {1100, 1100, 2000}}, 1100}, // before and behind
		{0, 1000, []busySpan{{200, 200, 400}}, 1060},                   // 300 long beside it: 240 done
		{0, 1000, []busySpan{{200, 300, 400}}, 1050},                   // waits for 100, then 150
		{0, 100, []busySpan{{0, 0, 1000}}, 125},                        // all of it beside
		{300, 1000, []busySpan{{200, 200, 400}}, 1330},                 // begins in the middle: 150 beside
		{0, 1000, []busySpan{{500, 500, 600}, {100, 100, 200}}, 1030},  // in any order, once past
		{0, 1000, []busySpan{{100, 100, 200}, {500, 500, 600}}, 1060},  // both
		{0, 1000, []busySpan{{2000, 2000, 3000}, {0, 0, 0}}, 1000},     // none
	} {
		if got := besideEnd(c.at, c.took, c.busy, compute, calls); got != c.want {
			t.Errorf("%d at %d beside %v ends at %d and not %d", c.took, c.at, c.busy, got, c.want)
		}
	}
}
