package sweep_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/simccl/simccl/app/report/sweep"
	"github.com/simccl/simccl/config"
	"github.com/simccl/simccl/dev/golden"
	"github.com/simccl/simccl/dev/site"
	"github.com/simccl/simccl/exec"
	"github.com/simccl/simccl/nccltests"
	"github.com/simccl/simccl/scenario"
	"github.com/simccl/simccl/units"
)

// TestTables simulates the scenario of each archive of testdata and compares the
// table with its columns (member "columns") and the notes below it, and the JSON
// where the archive has it ("want.json").
// The machine class is that of the stories of the timing model, of round numbers.
func TestTables(t *testing.T) {
	archives, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(archives) == 0 {
		t.Fatal("no archives")
	}
	for _, file := range archives {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			a, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			text, doc := render(t, member(a, "scenario.json"), strings.TrimSpace(member(a, "columns")))
			set(a, "want", text)
			if member(a, "want.json") != "" {
				set(a, "want.json", doc)
			}
			golden.Text(t, file, string(txtar.Format(a)))
		})
	}
}

func member(a *txtar.Archive, name string) string {
	for _, f := range a.Files {
		if f.Name == name {
			return string(f.Data)
		}
	}
	return ""
}

func set(a *txtar.Archive, name, text string) {
	for i := range a.Files {
		if a.Files[i].Name == name {
			a.Files[i].Data = []byte(text)
			return
		}
	}
	a.Files = append(a.Files, txtar.File{Name: name, Data: []byte(text)})
}

// render simulates a scenario, and prints as the command does.
func render(t *testing.T, text, columns string) (table, doc string) {
	t.Helper()
	spec, err := scenario.Parse([]byte(text), "scenario.json")
	if err != nil {
		t.Fatal(err)
	}
	r, err := scenario.Prepare(spec, scenario.Options{Files: site.Files(t), Settings: config.Sources{
		NoEnv: true}})
	if err != nil {
		t.Fatal(err)
	}
	s, err := sweep.New(r, nccltests.Config{Warmup: 1, Iters: 20, AggIters: 1, Check: 1}, 22809)
	if err != nil {
		t.Fatal(err)
	}
	if s.Columns, err = sweep.ParseColumns(columns); err != nil {
		t.Fatal(err)
	}
	s.Summary.MinBW = -1
	var b, j bytes.Buffer
	out := nccltests.NewTable(&b, sweep.Heads(s.Columns)...)
	for _, line := range sweep.Prefaces(r, "0.0") {
		out.Preface(line)
	}
	out.Start(&s.Config, sweep.Devices(r.Site))
	for row, err := range r.Rows(context.Background()) {
		if err != nil {
			t.Fatal(err)
		}
		out.Row(s.Add(row))
	}
	if err := out.Finish(&s.Config, &s.Summary); err != nil {
		t.Fatal(err)
	}
	for _, note := range s.Notes() {
		fmt.Fprintln(&b, "# "+note)
	}
	if err := nccltests.WriteJSON(&j, s.Report(r.Site, []string{"all_reduce_perf"})); err != nil {
		t.Fatal(err)
	}
	var indented bytes.Buffer
	if err := json.Indent(&indented, j.Bytes(), "", "  "); err != nil {
		t.Fatal(err)
	}
	return b.String(), indented.String()
}

// TestColumns: words in any order, with and without the plus of each; a word that
// names no column is refused with the list of those that do.
func TestColumns(t *testing.T) {
	for text, want := range map[string]string{"": "", "+algo": "algo", "nch,proto": "nch proto",
		"+use,+algo": "use algo"} {
		cols, err := sweep.ParseColumns(text)
		var names []string
		for _, h := range sweep.Heads(cols) {
			names = append(names, h.Name)
		}
		if got := strings.Join(names, " "); err != nil || got != want {
			t.Errorf("%q: %q, %v; want %q", text, got, err, want)
		}
	}
	for _, text := range []string{"algos", "+algo,", "+algo,x"} {
		_, err := sweep.ParseColumns(text)
		var unknown *sweep.UnknownColumnError
		if !errors.As(err, &unknown) || !strings.Contains(err.Error(),
			"+algo,proto,nch,model,expect,limit,use,queue,paused,marked,retx,regret") {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// TestMethodsAreNotedWhereAsked: for each size, with what was left out, in front of the other notes.
func TestMethodsAreNotedWhereAsked(t *testing.T) {
	var s sweep.Table
	row := scenario.Row{Bytes: 64, Facts: scenario.Facts{Near: "links as one", Margin: .02,
		Account: exec.Account{
			Method: exec.Window, Programs: 7, Margin: .02,
			Reduction: exec.Reduction{Ranks: exec.Folded, Iterations: exec.Part{Ran: 8, Of: 90},
				Draws: exec.SharedDraws, Why: "long"}}}}
	s.Add(&row)
	plain := len(s.Notes())
	s.ExplainMethod = true
	want := "64 B: window, ±2 %, folded, 7 thread groups, 8 of 90 iterations, shared draws, long"
	if got := s.Notes(); len(got) != plain+1 || got[0] != want {
		t.Errorf("got %q, want first %q", got, want)
	}
}

// TestNotes: equal notes of approximate rows appear once; rows whose plan is not
// proved are counted, with the largest as the example.
func TestNotes(t *testing.T) {
	var s sweep.Table
	add := func(bytes int64, f scenario.Facts) {
		row := scenario.Row{Facts: f}
		row.Bytes = units.Bytes(bytes)
		s.Add(&row)
	}
	add(8, scenario.Facts{Near: "links as one", Margin: .02})
	add(32, scenario.Facts{NotProved: "90 ops"})
	add(16, scenario.Facts{Near: "links as one", Margin: .02, NotProved: "45 ops"})
	add(16, scenario.Facts{Simulated: "window", Margin: .03})
	add(24, scenario.Facts{Simulated: "window", Margin: .08, ByCost: true})
	got := strings.Join(s.Notes(), "\n")
	want := "Near, not exact, within about 2 %: links as one; --fold exact leaves nothing out\n" +
		"Of the operation in 1 of 5 rows a window of iterations was simulated; the others take its mean " +
		"time, within about 3 %; --skip off simulates all\n" +
		"Of the operation in 1 of 5 rows a window of iterations was simulated; the others take its mean " +
		"time, within about 8 %; --fold exact simulates all\n" +
		"#wrong is N/A in 2 of 5 rows: the proof of the plan (-c 1) is too large; that of 32 B would have " +
		"90 ops"
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
