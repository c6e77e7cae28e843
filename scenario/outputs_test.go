package scenario

import (
	"bytes"
	"context"
	"errors"
	"reflect"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/simccl/simccl/exec"
	"github.com/simccl/simccl/topo/builtin"
	"github.com/simccl/simccl/trace/validate"
)

// memory keeps what is written, by name.
type memory map[string]*memoryFile

type memoryFile struct {
	bytes.Buffer
	done bool
}

func (f *memoryFile) Finish(err error) error {
	f.done = err == nil
	return err
}

func (m memory) create(name string) (File, error) {
	m[name] = &memoryFile{}
	return m[name], nil
}

// TestRunWritesItsOutputs: a run without an operating system writes a trace that is
// one, a profile and the list of operations, and NCCL's dump files.
func TestRunWritesItsOutputs(t *testing.T) {
	s := small("all_reduce", "64K")
	s.Machine.GPUs = 2
	s.NCCL.Env = map[string]string{"NCCL_TOPO_DUMP_FILE": "topo.xml", "NCCL_GRAPH_DUMP_FILE": "graph.xml"}
	s.Outputs = Outputs{Trace: "t.json", Profile: "p.pb.gz", Ops: "o.csv"}
	out := memory{}
	if _, err := Run(context.Background(), s, Options{Create: out.create, Program: "test"}); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"t.json", "p.pb.gz", "o.csv", "topo.xml", "graph.xml"} {
		if f := out[name]; f == nil || !f.done || f.Len() == 0 {
			t.Errorf("%s is not there or empty", name)
		}
	}
	if rep, err := validate.Check(bytes.NewReader(out["t.json"].Bytes())); err != nil || rep.Errors > 0 ||
		rep.Slices == 0 {
		t.Errorf("the trace: %+v, %v", rep, err)
	}
	if _, err := Run(context.Background(), s, Options{}); !errors.Is(err, errNowhere) {
		t.Errorf("nowhere to write: %v", err)
	}
	s.Workload.Sizes = []string{"1"}
	s.Outputs = Outputs{Ops: "o.goal"}
	var f *FieldError
	if _, err := Run(context.Background(), s, Options{Create: out.create}); !errors.As(err, &f) ||
		f.Path != "outputs.ops" {
		t.Errorf("no operations: %v", err)
	}
	s.Outputs = Outputs{Trace: "t.json", Ranks: "3-9"}
	if _, err := Prepare(s, Options{}); !errors.As(err, &f) || f.Path != "outputs.ranks" {
		t.Errorf("ranks: %v", err)
	}
}

// TestOneRank: a copy out of place takes time, in place nothing is launched, and
// there is no formula.
func TestOneRank(t *testing.T) {
	s := small("all_reduce", "64M")
	s.Machine = Machine{Nodes: []Nodes{{Count: 1}}, GPUs: 1}
	s.Engine.Launch = "graph"
	r, err := Run(context.Background(), s, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if row := r.Rows[0]; row.Out.Time <= row.In.Time || row.Facts.Algo != "-" {
		t.Errorf("%+v", row)
	}
	s.Engine.Fidelity = "alpha"
	if _, err := Run(context.Background(), s, Options{}); err == nil || !strings.Contains(err.Error(),
		"alpha of one rank") {
		t.Error(err)
	}
}

// TestLargeProofsAreLeftOut: a plan that is too large for its proof is simulated,
// and says so.
func TestLargeProofsAreLeftOut(t *testing.T) {
	s := small("reduce_scatter", "1G")
	s.Machine.Nodes = []Nodes{{"gh200", 2048}}
	s.NCCL.Env = map[string]string{"NCCL_ALGO": "PAT"}
	r, err := Run(context.Background(), s, Options{})
	if err != nil {
		t.Fatal(err)
	}
	row := r.Rows[0]
	if row.Out.Checked || !strings.Contains(row.Facts.NotProved,
		"ops, more than 200000; a channel alone has ") || !strings.Contains(strings.Join(r.Notes, "\n"),
		"1073741824 bytes: the plan is not proved") {
		t.Errorf("%+v, notes %q", row, r.Notes)
	}
}

// TestTreesOfMoreNVLSChannelsThanRingsAreProved: 16 channels have rings, and 32 NVLS.
func TestTreesOfMoreNVLSChannelsThanRingsAreProved(t *testing.T) {
	s := small("all_reduce", "64M")
	s.Machine.Nodes = []Nodes{{"dgx-b200", 2}}
	r, err := Run(context.Background(), s, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if row := r.Rows[0]; row.Facts.Algo != "NVLS_TREE" || row.Facts.Channels <= 16 || !row.Out.Checked {
		t.Errorf("%+v", row)
	}
}

// TestWarnings: faults of topology files and filters that match nothing.
func TestWarnings(t *testing.T) {
	files := fstest.MapFS{"a.xml": {Data: bytes.Replace(builtin.DGXH100(), []byte(`link_width="16"`),
		[]byte(`link_width="0"`), 1)}}
	s := small("all_reduce", "8")
	s.Machine.Nodes = []Nodes{{"a.xml", 1}}
	s.NCCL.Env = map[string]string{"NCCL_IB_HCA": "mlx5_0,mlx5_99"}
	var warned []error
	if _, err := Layout(&s, Options{Files: files, Warn: func(w error) { warned = append(warned, w) }}); err !=
		nil {
		t.Fatal(err)
	}
	text := errors.Join(warned...).Error()
	var lint *LintWarning
	if !errors.As(errors.Join(warned...), &lint) || lint.File != "a.xml" || lint.Warnings+lint.Errors == 0 ||
		!strings.Contains(text, "mlx5_99 matches nothing") {
		t.Errorf("warnings %q", text)
	}
}

// TestRowsRecordWhatIsWritten: where a row's own simulation has the events that the files
// show, result and files are those of two simulations; a run that ends before leaves no
// file.
func TestRowsRecordWhatIsWritten(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: the outputs of many runs")
	}
	for name, change := range map[string]func(*Spec){
		"all": func(*Spec) {}, "ranks": func(s *Spec) { s.Outputs.Ranks = "1" }, "packet": func(s *Spec) {
			s.Outputs.Detail = "packet"
		},
		"two sizes": func(s *Spec) { s.Workload.Sizes = []string{"64K", "1M"} }, "periods": func(s *Spec) {
			s.Outputs.Detail = "period"
		},
	} {
		s := small("all_reduce", "1M")
		s.Engine.Fold, s.Engine.Skip = "off", "off"
		s.Outputs = Outputs{Trace: "t.json", Profile: "p.pb.gz"}
		change(&s)
		var files [2]memory
		var results [2]*Result
		var parts [2]int
		for i := range 2 {
			files[i] = memory{}
			r, err := Prepare(s, Options{Create: files[i].create, Program: "test"})
			if err != nil {
				t.Fatal(err)
			}
			r.Records = i == 1
			for _, err := range r.Rows(t.Context()) {
				if err != nil {
					t.Fatal(err)
				}
			}
			if err := r.Write(t.Context(), Listener{Phase: func(Phase) { parts[i]++ }}); err != nil {
				t.Fatal(err)
			}
			results[i] = r.Result()
		}
		once := name == "all" || name == "ranks" || name == "packet"
		if again := parts[0] - parts[1]; once != (again == 1) {
			t.Errorf("%s: %d parts of writing, %d with records", name, parts[0], parts[1])
		}
		for _, r := range results { // a row with records is simulated whole, for its trace
			for i := range r.Rows {
				r.Rows[i].Facts.Account.Reduction = exec.Reduction{}
			}
		}
		if !reflect.DeepEqual(results[0], results[1]) {
			t.Errorf("%s: the results differ", name)
		}
		for _, f := range []string{"t.json", "p.pb.gz"} {
			if a, b := files[0][f], files[1][f]; !a.done || !b.done || !bytes.Equal(a.Bytes(), b.Bytes()) {
				t.Errorf("%s: %s differs", name, f)
			}
		}
	}
	s := small("all_reduce", "1M")
	s.Engine.Fold, s.Engine.Skip = "off", "off"
	s.Outputs = Outputs{Trace: "t.json"}
	out := memory{}
	r, err := Prepare(s, Options{Create: out.create, Program: "test"})
	if err != nil {
		t.Fatal(err)
	}
	r.Records = true
	for range r.Rows(t.Context()) {
		break
	}
	if f := out["t.json"]; r.recorded.Load() != nil || f == nil || f.done {
		t.Errorf("after a run that ended before its files were written: %+v", f)
	}
}
