package compare

import (
	"fmt"
	"strings"
	"testing"

	"github.com/simccl/simccl/trace"
)

// example is what NCCL 2.28.9's example profiler writes of one rank, quotes
// missing as they are: a collective, its kernel, a proxy operation with a step.
func example(pid, rank int, sendWait float64) string {
	var b strings.Builder
	pair := func(name, cat string, id int, from, to float64, args, inside string) {
		fmt.Fprintf(&b,
			`{"name": "%s", "cat": "%s", "ph": "b", "id": %d, "pid": %d, "tid": 1, "ts": %f, "args": {%s}},`+
				"\n", name, cat, id, pid, from, args)
		b.WriteString(inside)
		fmt.Fprintf(&b, `{"name": "%s", "cat": "%s", "ph": "e", "id": %d, "pid": %d, "tid": 1, "ts": %f},`+
			"\n", name, cat, id, pid, to)
	}
	b.WriteString("[\n")
	pair("AllReduce", "COLL_API", 0, 1, 2,
		`"count": 1024, "datatype": ncclFloat32, "root": 0, "GraphCaptured":0, "Stream": 0x7f00`, "")
	pair("AllReduce", "COLL", 0, 2, 90,
		fmt.Sprintf(
			`"SeqNum": 1, "CommHash": 17, "Rank": %d, "Count": 1024, "Datatype": "ncclFloat32", "Algorithm": "RING", "Protocol": "SIMPLE", "nChannels": 2`, rank), "")
	for ch := range 2 {
		pair("KernelCh", "GPU", ch, 10, 80+float64(ch),
			fmt.Sprintf(`"Channel": %d, "StartGpuClk": 1, "StopGpuClk": 2`, ch), "")
		op := fmt.Sprintf(`"Channel": %d, "Peer": 1, "Steps": 1, "ChunkSize": 4096, "transSize": 4096`, ch)
		pair("ScheduleSend", "PROXY", ch, 2, 11, op, "")
		fmt.Fprintf(&b,
			`{"name": "ProgressSend", "cat": "PROXY", "ph": "b", "id": %d, "pid": %d, "tid": 1, "ts": 11.0, "args": {%s}},`+"\n", ch, pid, op)
		pair("SendGpuWait", "NET", ch, 11, 20, `"Step": 0`, "")
		pair("SendWait", "NET", ch, 20, 20+sendWait+float64(ch), `"Step": 0`, "")
		fmt.Fprintf(&b,
			`{"name": "ProgressSend", "cat": "PROXY", "ph": "e", "id": %d, "pid": %d, "tid": 1, "ts": 70.0},`+
				"\n", ch, pid)
	}
	b.WriteString("{}]\n")
	return b.String()
}

// Two runs of NCCL meet rank by rank and channel by channel, though their
// processes have other numbers and everything lies on thread 1.
func TestExampleProfilersMeet(t *testing.T) {
	d, err := Diff(strings.NewReader(example(4711, 3, 5)), strings.NewReader(example(815, 3, 9)), 0,
		new(trace.Budget))
	if err != nil {
		t.Fatal(err)
	}
	if d.OnlyIn != [2]int{} || d.Matched != 12 || d.First == nil || d.First.Name != "SendWait" ||
		d.First.PID != 1000003 ||
		d.First.Thread != "ch 00 send" || d.First.Process != "rank 3" {
		t.Errorf("%d meet, only in one %v, first %+v", d.Matched, d.OnlyIn, d.First)
	}
	other, err := Diff(strings.NewReader(example(1, 0, 5)), strings.NewReader(example(1, 1, 5)), 0,
		new(trace.Budget))
	if err != nil || other.Matched != 0 {
		t.Errorf("rank 0 meets rank 1 in %d slices: %v", other.Matched, err)
	}
}
