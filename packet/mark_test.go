package packet

import (
	"testing"

	"github.com/simccl/simccl/units"
)

// TestMarkAtEnqueue: with one threshold, and no sender that acts on marks, a queue that grows and
// shrinks by itself marks as many frames as they come as when they leave, to a frame or two; but the
// first of them leaves later by the time that it waits, so that with DCQCN the queue becomes deeper.
func TestMarkAtEnqueue(t *testing.T) {
	run := func(kind CCKind, enqueue bool) *Result {
		c := settings(kind)
		c.MarkAtEnqueue, c.Buffer.Bytes = enqueue, 64<<20
		c.Marking = []Marking{{Rate: 100e9, KMin: 200e3, KMax: 200e3, PMax: 1}}
		var flows []Flow
		for i := range 4 {
			flows = append(flows, Flow{Src: int32(i), Dst: 4, Bytes: 2_000_000, Priority: 3, DstPort: 100})
		}
		r, err := Run(star(5, 100e9, 0), flows, c)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	out, in := run(NoCC, false), run(NoCC, true)
	if d := in.Marks - out.Marks; out.Marks < 7000 || d > 2 || d < -2 || in.PeakQueue != out.PeakQueue {
		t.Errorf("%d marks at enqueue, %d at dequeue; queues up to %d and %d", in.Marks, out.Marks,
			in.PeakQueue, out.PeakQueue)
	}
	if out, in := run(DCQCN, false), run(DCQCN, true); in.PeakQueue <= out.PeakQueue {
		t.Errorf("with DCQCN queues grow to %d with marks at enqueue, to %d at dequeue", in.PeakQueue,
			out.PeakQueue)
	}
}

// TestMessageRate: flows of a host begin as far apart as its NIC needs for each.
func TestMessageRate(t *testing.T) {
	c := settings(NoCC)
	c.MessageGap = 3 * units.Microsecond
	flows := []Flow{{Src: 0, Dst: 1, Bytes: 100, Priority: 3}, {Src: 0, Dst: 1, Bytes: 100, Priority: 3},
		{Src: 2, Dst: 1, Bytes: 100, Priority: 3}, {Src: 0, Dst: 1, Bytes: 100, Priority: 3,
			Start: 20 * units.Microsecond}}
	r, err := Run(star(3, 100e9, 0), flows, c)
	if err != nil {
		t.Fatal(err)
	}
	for i, us := range []units.Time{0, 3, 0, 20} {
		if r.Flows[i].Start != us*units.Microsecond || !r.Flows[i].Done {
			t.Errorf("flow %d began at %v, want %d us", i, r.Flows[i].Start, us)
		}
	}
}
