package check

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/simccl/simccl/internal/fail"
	"github.com/simccl/simccl/internal/terminal"
)

// TestRun: a decision that is stored is OK until it changes, and the difference
// has its name, from a summary as from a whole document.
func TestRun(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "two.args"), []byte("--nodes 2 # hosts\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	cases, err := Cases(dir)
	if err != nil || len(cases) != 1 || cases[0].document() != filepath.Join(dir, "two.json") {
		t.Fatal(cases, err)
	}
	algorithm := "Tree"
	r := Run{Update: true, ReadOptions: os.ReadFile, ReadDocument: os.ReadFile, Write: write,
		Decide: func(options []string, at string) ([]byte, error) {
			if len(options) != 2 || at != dir {
				t.Errorf("options %q in %s", options, at)
			}
			return []byte(`{"nRanks":16,"system":{},"selection":[{"func":"AllReduce","size":8,"algo":"` +
				algorithm + `","proto":"LL","nChannels":1}]}`), nil
		}}
	for _, whole := range []bool{false, true} {
		algorithm, r.Update, r.Whole = "Tree", true, whole
		if v, err := r.Check(cases[0]); err != nil || v.Outcome != Wrote {
			t.Fatal(v, err)
		}
		r.Update = false
		if v, err := r.Check(cases[0]); err != nil || v.Outcome != OK || v.Text(terminal.Palette{}) !=
			"ok   "+filepath.Join(dir, "two")+"\n" {
			t.Error(v, err)
		}
		algorithm = "Ring"
		v, err := r.Check(cases[0])
		var e *fail.Error
		if !errors.As(err, &e) || e.Kind != fail.No || v.Outcome != Failed || v.Count != 1 {
			t.Error(v, err)
		}
		if text, err := json.Marshal(v.Differences); err != nil ||
			string(text) != `["AllReduce 8 B: Tree LL → Ring LL"]` {
			t.Errorf("%s %v", text, err)
		}
	}
}

func write(name string, data []byte) error { return os.WriteFile(name, data, 0o600) }

// TestDir: the JUnit report has a case a stored decision: equal, different, and
// without a document; an annotation is of the file of options.
func TestDir(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"a.args": "", "a.json": `{"nRanks":16}`, "b.args": "",
		"b.json": `{"nRanks":8}`, "c.args": ""} {
		if err := write(filepath.Join(dir, name), []byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	var junit string
	r := Run{JUnit: "out.xml", ReadOptions: os.ReadFile, ReadDocument: os.ReadFile,
		Decide: func([]string, string) ([]byte, error) { return []byte(`{"nRanks":16}`), nil },
		Write: func(name string, data []byte) error {
			if name != "out.xml" {
				t.Error(name)
			}
			junit = string(data)
			return nil
		}}
	verdicts, err := r.Dir(dir)
	if err == nil || len(verdicts) != 3 {
		t.Fatal(verdicts, err)
	}
	for _, want := range []string{`tests="3" failures="1" errors="1" skipped="0"`,
		`<failure message="1 difference">ranks: 8 → 16&#xA;on purpose: simccl check ` + dir +
			` --update; else`, "make it with --update"} {
		if !strings.Contains(junit, want) {
			t.Errorf("no %s in\n%s", want, junit)
		}
	}
	notes := Report("ci", []Verdict{verdicts[1]}).Annotations()
	if !strings.HasPrefix(notes, "::error file=") ||
		!strings.Contains(notes, "::1 difference; ranks: 8 → 16%0Aon purpose: simccl check ") {
		t.Error(notes)
	}
	r.Whole = true
	var e *fail.Error
	if _, err := r.Dir(dir); !errors.As(err, &e) || e.Kind != fail.BadArgument {
		t.Error("--whole without --update:", err)
	}
}

// TestNoCases: a directory without cases, and none at all, are errors of the input.
func TestNoCases(t *testing.T) {
	for _, dir := range []string{t.TempDir(), filepath.Join(t.TempDir(), "none")} {
		_, err := Cases(dir)
		var e *fail.Error
		if !errors.As(err, &e) || e.Kind != fail.BadInput {
			t.Errorf("%s: %v", dir, err)
		}
	}
}
