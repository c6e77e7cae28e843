package nccllog

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/simccl/simccl/units"
)

// TestReadme: the examples of the Inspector's README.
func TestReadme(t *testing.T) {
	b, err := os.ReadFile(filepath.Join("..", "..", "..", "shared", "workloads", "samples", "inspector",
		"inspector_readme_examples.json"))
	if err != nil {
		t.Skip("the samples beside the checkout are not there: " + err.Error())
	}
	if !RecogniseInspector(b) {
		t.Error("is not recognised")
	}
	list, truncated, err := ReadInspector(bytes.NewReader(b), "f")
	if err != nil || truncated {
		t.Fatal(err)
	}
	if len(list) != 2 || list[0].Func != "AllReduce" || list[0].Bytes != 16<<30 ||
		list[0].Time != 61974*1_000_000 || list[0].Ranks != 8 ||
		list[1].Func != "ReduceScatter" || list[1].Bytes != 2<<30 || list[1].Time != 41057*1_000_000 ||
		list[1].Source != "kernel_gpu" || list[1].Rank != 4 {
		t.Errorf("%+v", list)
	}
	p, _, err := InspectorProgram(list)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Lint(); err != nil {
		t.Error(err)
	}
	if p.Ranks() != 8 || len(p.Lists) != 1 || p.Calls[0].Recorded != units.Time(61974)*1_000_000 {
		t.Errorf("%+v", p)
	}
	list, truncated, err = ReadInspector(bytes.NewReader(b[:len(b)-40]), "f")
	if err != nil || !truncated || len(list) != 1 {
		t.Errorf("%d records, %v %v", len(list), truncated, err)
	}
}

const inspectorSmall = `{"header": {"id": "0x1", "rank": 0, "n_ranks": 4}, "coll_perf": {"coll": "AllGather", "coll_sn": 2, "coll_msg_size_bytes": 4096, "coll_exec_time_us": 7}}
{"header": {"id": "0x2", "rank": 0, "n_ranks": 2}, "coll_perf": {"coll": "Broadcast", "coll_sn": 1,
	"coll_msg_size_bytes": 4096, "coll_exec_time_us": 7}}`

// TestInspectorSmall: a smaller communicator, and faults.
func TestInspectorSmall(t *testing.T) {
	list, _, err := ReadInspector(strings.NewReader(inspectorSmall), "f")
	if err != nil {
		t.Fatal(err)
	}
	p, notes, err := InspectorProgram(list)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Lint(); err != nil {
		t.Error(err)
	}
	if len(p.Lists) != 2 || p.Calls[0].Count != 1024 || len(notes) != 2 {
		t.Errorf("%+v %v", p, notes)
	}
	for text, want := range map[string]string{
		`[{}]`:          "f:1:1: this is no output of the Inspector",
		`{"header": 1}`: "f:1:14: the record before this place has no call",
		`{"header" 1}`:  "f:1:11: ':' is expected here",
	} {
		if _, _, err := ReadInspector(strings.NewReader(text), "f"); err == nil ||
			!strings.Contains(err.Error(),
				want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}

// FuzzReadInspector: an error, or a program that can be carried out.
func FuzzReadInspector(f *testing.F) {
	f.Add(inspectorSmall)
	f.Fuzz(func(t *testing.T, text string) {
		list, _, err := ReadInspector(strings.NewReader(text), "f")
		if err != nil {
			return
		}
		if p, _, err := InspectorProgram(list); err == nil && len(p.Of) < 1000 {
			if err := p.Lint(); err != nil {
				t.Fatal(err)
			}
		}
	})
}
