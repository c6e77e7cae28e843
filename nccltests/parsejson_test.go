package nccltests

import (
	"bytes"
	"errors"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestJSONIsReadBack: what WriteJSON writes, ParseJSON reads, number for number.
func TestJSONIsReadBack(t *testing.T) {
	want := &Report{Start: "2026-11-21 10:00:00", End: "2026-11-21 10:00:09",
		Args: []string{"simccl", "--no-env", "bench", "--backend", "nccl", "AllReduce", "-g", "2"},
		Env:  []string{"NCCL_ALGO=Ring"},
		Config: Config{Program: "all_reduce_perf", NCCLLibrary: 22809, Threads: 1, GPUs: 2, MinBytes: 8,
			MaxBytes: 16, StepFactor: 2, Warmup: 5, Iters: 20, AggIters: 1, Check: 1, Graph: 3},
		Devices: []Device{{Rank: 0, PID: 7, Host: "vm", BusID: "0000:00:06", Name: "NVIDIA H200"},
			{Rank: 1, PID: 7, Host: "vm", Device: 1, BusID: "0000:00:07", Name: "NVIDIA H200"}},
		Rows: []Row{{Size: 8, Count: 2, Type: "float", RedOp: "sum", Root: -1,
			Out: Measure{TimeUs: 8.25, AlgBW: 1.5, BusBW: 2.25, Wrong: 3, Checked: true},
			In:  Measure{TimeUs: 7.5}},
			{Size: 16, Count: 4, Type: "half", RedOp: "none", Root: 1, Out: Measure{TimeUs: 9}}},
		Own: []string{`{"shape":"nccl"}`, ""}, Summary: Summary{MinBW: -1}}
	var b bytes.Buffer
	if err := WriteJSON(&b, want); err != nil {
		t.Fatal(err)
	}
	got, err := ParseJSON(b.Bytes(), "")
	if err != nil {
		t.Fatal(err)
	}
	got.Summary = want.Summary // not read
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

func TestParseJSONOfOtherThings(t *testing.T) {
	if r, err := ParseJSON([]byte(`{"version":0}`), ""); r != nil || err != nil {
		t.Errorf("another kind of JSON: %v, %v; want neither", r, err)
	}
	var bad *ParseError
	if _, err := ParseJSON([]byte("{\n\n]"), ""); !errors.As(err, &bad) || bad.Line != 3 {
		t.Errorf("no JSON: %v, want line 3", err)
	}
	r, err := ParseJSON(
		[]byte(`{"version":3,"results":[{"root":"0","out_of_place":{"time":1,"bus_bw":"nan"},"in_place":{}}]}`), "")
	if err != nil || !math.IsNaN(r.Rows[0].Out.BusBW) {
		t.Errorf("a rate that is no number: %+v, %v", r, err)
	}
	if _, err := ParseJSON([]byte(`{"version":3,"results":[{"root":"x"}]}`), ""); err == nil {
		t.Error("a root that is no rank is read")
	}
}

func FuzzParseJSON(f *testing.F) {
	f.Add([]byte(
		`{"version":3,"args":["all_reduce_perf"],"results":[{"root":"     0","out_of_place":{"time":1.5,"nwrong":0}}]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		if r, err := ParseJSON(text, ""); err == nil && r != nil && len(r.Rows) != len(r.Own) {
			t.Errorf("%d rows, %d values of our own", len(r.Rows), len(r.Own))
		}
	})
}
