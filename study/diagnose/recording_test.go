package diagnose

import (
	"fmt"
	"strings"
	"testing"

	"github.com/simccl/simccl/scenario"
)

// trace is a Kineto trace of one rank of 8 with kernels of all_reduce, microseconds for each.
func trace(name string, elements int, us ...float64) File {
	var events []string
	for i, t := range us {
		events = append(events,
			fmt.Sprintf(`{"ph": "X", "cat": "kernel", "name": "ncclDevKernel_AllReduce_Sum_bf16_RING_LL",
			"ts": %d, "dur": %g, "pid": 0, "tid": 7, "args": {"device": 0, "stream": 7, "correlation": %d,
			"Collective name": "allreduce", "In msg nelems": %d, "Out msg nelems": %d, "Group size": 8,
			"dtype": "BFloat16"}}`, 1000000*(i+1), t, i+1, elements, elements))
	}
	return File{
		name, []byte(`{"schemaVersion": 1, "deviceProperties": [{"id": 0, "name": "NVIDIA H100 80GB HBM3"}],
		"distributedInfo": {"rank": 0, "world_size": 8}, "traceEvents": [` + strings.Join(events, ",\n") + `]}`)}
}

// TestRecordingsAreTables: of the kernels of an operation the shortest is judged, over the traces of all
// ranks: the others waited. Where traces of ranks are missing a time is an upper bound: it shows no slow
// machine.
func TestRecordingsAreTables(t *testing.T) {
	m, err := read([]File{trace("a.json", 1<<25, 900, 300, 700), trace("b.json", 1<<25, 400, 280),
		trace("c.json", 1<<20, 50)})
	if err != nil || len(m.tables) != 1 {
		t.Fatalf("%d tables (%v), notes %q", len(m.tables), err, m.notes)
	}
	tb := m.tables[0]
	if len(tb.rows) != 2 || tb.rows[0].bytes != 2<<20 || tb.rows[0].us != 50 || tb.rows[1].us != 280 ||
		tb.run.Ranks != 8 || tb.run.Nodes != 1 {
		t.Errorf("rows %+v of %+v", tb.rows, tb.run)
	}
	for _, c := range []struct {
		traces int
		us     float64
		want   Verdict
	}{{1, 300, AsExpected}, {1, 2000, Unknown}, {8, 2000, Slower}} {
		var files []File
		for i := range c.traces {
			files = append(files, trace(fmt.Sprint(i), 1<<25, c.us))
		}
		r, err := New(t.Context(), Request{Files: files, Options: options(), NoSuspects: true})
		if err != nil || r.Verdict != c.want || len(r.Notes) == 0 ||
			(c.want == Unknown) != strings.Contains(strings.Join(r.Missing, "\n"),
				"the traces of all 8 ranks") {
			t.Errorf("%+v: %v %+v", c, err, r)
		}
	}
}

// TestRecordingsAreBounded: an operation that no memory holds and a communicator that no cluster has are no
// row; of many sizes some are judged, the least and the largest among them.
func TestRecordingsAreBounded(t *testing.T) {
	files := []File{trace("huge.json", 1<<62, 10)}
	for i := range 3 * sizes {
		files = append(files, trace(fmt.Sprint(i), 1<<12+i, 10))
	}
	m, err := read(files)
	if err != nil || len(m.tables) != 1 {
		t.Fatalf("%d tables (%v)", len(m.tables), err)
	}
	rows := m.tables[0].rows
	if len(rows) != sizes || rows[0].bytes != 2<<12 || rows[sizes-1].bytes != 2*(1<<12+3*sizes-1) {
		t.Errorf("%d rows, %d to %d B", len(rows), rows[0].bytes, rows[len(rows)-1].bytes)
	}
	r, err := New(t.Context(), Request{Files: []File{trace("huge.json", 1<<62, 10)}, Spec: scenario.Spec{},
		Options: options()})
	if err == nil && r.Verdict != Unknown {
		t.Errorf("of no row: %s", r.Verdict)
	}
}
