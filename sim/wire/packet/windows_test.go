package packet

import (
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/simccl/simccl/units"
)

// TestMarkAtEnqueueInAnyWindow: whether a frame is marked does not depend on whether its switch was near a threshold in that
// window, and so not on how long windows are.
func TestMarkAtEnqueueInAnyWindow(t *testing.T) {
	marks, pauses := int64(0), int64(0)
	for seed := range uint64(20) {
		r := rand.New(rand.NewPCG(seed, 14))
		n, c := leafSpine(2, 3, 1, 100e9, 0), settings([]CCKind{NoCC, DCQCN}[seed%2])
		c.Seed, c.MarkAtEnqueue, c.Buffer.Bytes, c.Buffer.Shift = seed, true, 1<<20, 5
		c.Marking[0].KMin = 3e3
		var flows []Flow
		for range 12 {
			f := Flow{Src: int32(r.IntN(6)), Dst: int32(r.IntN(2)), Bytes: 1 + r.Int64N(100_000), Priority: 3, DstPort: 100, Start: units.Time(r.IntN(20)) * units.Microsecond}
			if f.Src == f.Dst {
				f.Dst += 3
			}
			flows = append(flows, f)
		}
		got, want := either(t, n, flows, c, false), either(t, n, flows, c, true)
		if !got.turns || !reflect.DeepEqual(got.result, want.result) {
			t.Errorf("seed %d, in turns %v: %s\nplain: %s", seed, got.turns, brief(got.result), brief(want.result))
		}
		marks, pauses = marks+want.result.Marks, pauses+want.result.Pauses
	}
	if marks == 0 || pauses == 0 {
		t.Errorf("%d marks, %d pauses: each should occur", marks, pauses)
	}
}
