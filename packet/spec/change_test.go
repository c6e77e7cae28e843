package spec

import (
	"slices"
	"testing"
)

// TestFaultsOfOneCableOverlap: the condition of a cable follows from all faults that it has at a time, in
// whatever order they are given, and one that begins as another ends is not undone by that end.
func TestFaultsOfOneCableOverlap(t *testing.T) {
	n := &Network{Nodes: 2, Switch: []bool{false, true},
		Cables: []Cable{{A: 0, B: 1, Rate: 100e9, Loss: 0.5}}}
	faults := []Fault{{From: 0, To: 50, Slow: 0.5}, {From: 50, To: 90, Slow: 0.1},
		{From: 60, To: 70, Loss: 0.5}, {From: 65, To: 67, Storm: true}, {From: 66, To: 80, Storm: true},
		{From: 68, Storm: true, Back: true}, {From: 85, To: 95, Down: true}}
	nominal := Condition{Rate: 100e9, Loss: 0.5, Storm: [2]bool{false, true}}
	want := map[int64]Condition{
		0: {Rate: 50e9, Loss: 0.5}, 50: {Rate: 10e9, Loss: 0.5}, 60: {Rate: 10e9, Loss: 0.75},
		65: {Rate: 10e9, Loss: 0.75, Storm: [2]bool{true}},
		67: {Rate: 10e9, Loss: 0.75, Storm: [2]bool{true}},
		70: {Rate: 10e9, Loss: 0.5, Storm: [2]bool{true, true}},
		80: {Rate: 10e9, Loss: 0.5, Storm: [2]bool{false, true}},
		85: {Rate: 10e9, Loss: 1, Down: true, Storm: [2]bool{false, true}},
		90: {Rate: 100e9, Loss: 1, Down: true, Storm: [2]bool{false, true}}, 95: nominal,
	}
	for range 2 {
		slices.Reverse(faults)
		last := map[int64]Condition{}
		for _, c := range Changes(faults, n) {
			last[c.At] = c.Now
		}
		for at, x := range want {
			if last[at] != x {
				t.Errorf("at %d: %+v, want %+v", at, last[at], x)
			}
		}
	}
}
