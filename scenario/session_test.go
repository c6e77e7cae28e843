package scenario

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/simccl/simccl/config"
	"github.com/simccl/simccl/dev/golden"
)

const twoStreams = `workload 1
ranks 4
comm world *
comm pair 0-1 kind=TP
comm other 2-3 kind=TP
work 1 gemm blocks=132 persm=1 bytes=100000000
list a 0-1
  compute 0 175000000 work=1
  call 1 world all_reduce half sum 1048576
  call 2 pair all_gather half sum 65536
list b 2-3
  compute 0 175000000 work=1
  call 1 world all_reduce half sum 1048576
  call 2 other all_gather half sum 65536
`

// buffer is an output file in memory.
type buffer struct{ bytes.Buffer }

func (b *buffer) Finish(err error) error { return err }

// TestRunJob: a scenario file that names a job runs it, in every fidelity, and
// writes its timeline; faults of the file have places.
func TestRunJob(t *testing.T) {
	topo, err := os.ReadFile(filepath.Join(golden.Root(t, "testdata", "topos"), "h200x4-4.xml"))
	if err != nil {
		t.Fatal(err)
	}
	files := fstest.MapFS{"m.xml": {Data: topo}, "job.txt": {Data: []byte(twoStreams)},
		"bad.txt": {Data: []byte("workload 1\nranks 4\ncomm a 0-4\n")},
		"many.txt": {
			Data: []byte("workload 1\nranks 9\ncomm a *\nlist x 0-8\n  call 0 a all_reduce float sum 8\n")}}
	out := &buffer{}
	opt := Options{Files: files, Settings: config.Sources{NoEnv: true}, Create: func(string) (File, error) {
		return out, nil
	}}
	for _, fidelity := range []string{"", "share", "step", "alpha"} {
		spec, err := Parse(
			[]byte(`{"scenario": 1, "machine": {"nodes": [{"topo": "m.xml"}], "multicast": "off"}, "workload": {"job": "job.txt"}, "engine": {"fidelity": "`+fidelity+`"}}`), "s.json")
		if err != nil {
			t.Fatal(err)
		}
		if fidelity == "" {
			spec.Outputs.Trace = "t.json"
		}
		r, err := RunJob(context.Background(), spec, opt)
		if err != nil {
			t.Fatalf("%q: %v", fidelity, err)
		}
		if us := r.Elapsed().Micros(); us < 175 || us > 400 || r.Operations != 3 {
			t.Errorf("%q: %g us, %d operations", fidelity, us, r.Operations)
		}
	}
	if s := out.String(); !strings.Contains(s, "gemm") || !strings.Contains(s, "AllGather") ||
		!strings.Contains(s, "rank 3") {
		t.Errorf("the timeline lacks a step: %.300s", s)
	}
	for _, x := range []struct{ job, want string }{{"bad.txt", "bad.txt:3:8: 0-4: ranks are from 0 to 3"},
		{"many.txt", "the workload has 9 ranks and the machine 4 GPUs"}, {"none.txt", "none.txt"}} {
		spec := Spec{Machine: Machine{Nodes: []Nodes{{Topo: "m.xml"}}}, Workload: Workload{Job: x.job}}
		if _, err := RunJob(context.Background(), spec, opt); err == nil || !strings.Contains(err.Error(),
			x.want) {
			t.Errorf("%s: %v, want %s", x.job, err, x.want)
		}
	}
	var field *FieldError
	if _, err := Prepare(Spec{Workload: Workload{Job: "job.txt"}}, opt); !errors.As(err, &field) {
		t.Error(err)
	}
}
