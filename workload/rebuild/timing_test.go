package rebuild

import (
	"slices"
	"testing"

	"github.com/simccl/simccl/workload/kineto"
)

// TestGapsAndLatencies: the median gap of ten or more kernels that were launched more than 20 µs before their
// turn and began less than 5 µs after it, and the median from launch to begin of ten or more whose turn was
// before their launch; else the usual ones. Calls and kernels of graphs count for neither.
func TestGapsAndLatencies(t *testing.T) {
	const ready = 1_000_000 // of each kernel, from the begin of the rank
	for _, c := range []struct {
		name                 string
		n                    int
		launched, began      int64 // ns before and after its turn
		graph, call          bool
		wantGap, wantLatency int64
	}{
		{"queued", 10, 20_001, 700, false, false, 700, firstWork},
		{"nine are too few", 9, 20_001, 700, false, false, gapless, firstWork},
		{"at once", 10, 20_001, 0, false, false, 0, firstWork},
		{"not long enough", 10, 20_000, 700, false, false, gapless, firstWork},
		{"almost too late for a gap", 10, 20_001, 4_999, false, false, 4_999, firstWork},
		{"too late for a gap", 10, 20_001, 5_000, false, false, gapless, firstWork},
		{"before its turn", 10, 20_001, -1, false, false, gapless, firstWork},
		{"of a graph", 10, 20_001, 700, true, false, gapless, firstWork},
		{"a call", 10, 20_001, 700, false, true, gapless, firstWork},
		{"idle", 10, -1, 3_000, false, false, gapless, 2_999},
		{"launched in time", 10, 0, 3_000, false, false, gapless, firstWork},
		{"nine launches are too few", 9, -1, 3_000, false, false, gapless, firstWork},
	} {
		r := &rank{begin: ready}
		for range c.n {
			op := &kineto.Op{Start: ready + c.began}
			if c.call {
				op.Class = kineto.NCCL
			}
			r.ops = append(r.ops, gpuOp{op: op, call: &kineto.Call{Start: ready - c.launched}, before: -1,
				graph: c.graph})
		}
		r.timing()
		if r.gap != c.wantGap || r.latency != c.wantLatency {
			t.Errorf("%s: gap %d, latency %d, want %d and %d", c.name, r.gap, r.latency, c.wantGap,
				c.wantLatency)
		}
	}
}

// TestLaunchExecutesTheCallsBeforeIt: all since the launch before, where it comes after them, and the last
// alone where it is inside of that one.
func TestLaunchExecutesTheCallsBeforeIt(t *testing.T) {
	comm := func(start, dur, count int64) kineto.Comm {
		return kineto.Comm{Start: start, Dur: dur, Name: "allreduce", Type: "Float", In: count, Out: count,
			Group: -1}
	}
	for _, x := range []struct {
		launched int64
		want     []int64
	}{{99, nil}, {100, []int64{1}}, {130, []int64{2}}, {169, []int64{2}}, {170, []int64{1, 2}},
		{180, []int64{1, 2}}} {
		r := &rank{streams: map[int32]*stream{}, threads: map[int32]*thread{}, t: &kineto.Trace{World: 2,
			Names: []string{"k"}, Comms: []kineto.Comm{comm(100, 10, 1), comm(120, 50, 2), comm(200, 10, 3)}}}
		r.ops = []gpuOp{{op: &kineto.Op{Class: kineto.NCCL}, call: &kineto.Call{Start: x.launched}}}
		r.assign(nil)
		var got []int64
		for _, c := range r.ops[0].comms {
			got = append(got, c.call.Count)
		}
		if !slices.Equal(got, x.want) {
			t.Errorf("launched at %d: calls of %v elements, want %v", x.launched, got, x.want)
		}
	}
}
