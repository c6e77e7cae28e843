package rebuild

import (
	"testing"

	"github.com/simccl/simccl/workload/kineto"
)

// TestWindowsOfRecordings: the recorded steps from the begin of the first to the latest end, else everything,
// to one nanosecond after its end.
func TestWindowsOfRecordings(t *testing.T) {
	for _, c := range []struct {
		of         string
		t          kineto.Trace
		begin, end int64
	}{
		{"nothing", kineto.Trace{}, 0, 0},
		{"steps, whatever is beside", kineto.Trace{Steps: []kineto.Step{{Start: 100, Dur: 50},
			{Start: 150, Dur: 10},
			{Start: 160, Dur: 5}}, Ops: []kineto.Op{{Start: 1, Dur: 900}}}, 100, 165},
		{"an outer step", kineto.Trace{Steps: []kineto.Step{{Start: 100, Dur: 100}, {Start: 150, Dur: 10}}},
			100, 200},
		{"an operation", kineto.Trace{Ops: []kineto.Op{{Start: 70, Dur: 5}}}, 70, 76},
		{"calls and operations", kineto.Trace{Calls: []kineto.Call{{Start: 50, Dur: 30}, {Start: 60, Dur: 1}},
			Ops: []kineto.Op{{Start: 40, Dur: 3}}}, 40, 81},
		{"an operation after the calls", kineto.Trace{Calls: []kineto.Call{{Start: 50, Dur: 30}},
			Ops: []kineto.Op{{Start: 90, Dur: 3}}}, 50, 94},
	} {
		r := &rank{t: &c.t}
		if r.window(); r.begin != c.begin || r.end != c.end {
			t.Errorf("%s: %d to %d, want %d to %d", c.of, r.begin, r.end, c.begin, c.end)
		}
	}
}
