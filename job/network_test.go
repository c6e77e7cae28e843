package job

import (
	"slices"
	"testing"

	"github.com/simccl/simccl/sim"
)

// TestStatesOfPorts are given back as they came, over the ends of chunks; what is beyond the most is counted.
func TestStatesOfPorts(t *testing.T) {
	var n Network
	var want []sim.PortState
	for i := range 3 * chunk / 8 {
		s := sim.PortState{At: n.last + 1000, Link: int32(i % 300), Queue: -1, Queued: 70_000,
			Marks:  int64(i),
			Paused: i%2 == 1, Credits: i%3 == 1}
		if i%5 == 4 {
			s = sim.PortState{At: n.last, Link: -1, Queue: int32(i), Rate: 50_000_000}
		}
		want = append(want, s)
		n.add(s)
	}
	var got []sim.PortState
	n.Each(func(s *PortState) { got = append(got, *s) })
	if len(n.chunks) < 2 || n.Left != 0 || !slices.Equal(got, want) {
		t.Errorf("%d states of %d in %d chunks, %d left out", len(got), len(want), len(n.chunks), n.Left)
	}
	for _, b := range n.chunks {
		if cap(b) != chunk {
			t.Errorf("a chunk grew to %d bytes of %d", cap(b), chunk)
		}
	}
	n.count = mostStates - 1
	for range 3 {
		n.add(sim.PortState{At: n.last, Queue: 1})
	}
	if n.Left != 2 {
		t.Errorf("%d are left out, want 2", n.Left)
	}
}
