package check

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/simccl/simccl/internal/fail"
	"github.com/simccl/simccl/internal/terminal"
)

// TestRun: a decision that is stored is OK until it changes, and the difference
// has its path.
func TestRun(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "two.args"), []byte("--nodes 2 # hosts\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	cases, err := Cases(dir)
	if err != nil || len(cases) != 1 || cases[0].Document() != filepath.Join(dir, "two.json") {
		t.Fatal(cases, err)
	}
	channels := "8"
	r := Run{Update: true, ReadOptions: os.ReadFile, ReadDocument: os.ReadFile, Decide: func(options []string, at string) ([]byte, error) {
		if len(options) != 2 || at != dir {
			t.Errorf("options %q in %s", options, at)
		}
		return []byte(`{"graphs":[{"nchannels":` + channels + `}]}`), nil
	}}
	if v, err := r.Check(cases[0]); err != nil || v.Outcome != Wrote {
		t.Fatal(v, err)
	}
	r.Update = false
	if v, err := r.Check(cases[0]); err != nil || v.Outcome != OK || v.Text(terminal.Palette{}) != "ok   "+filepath.Join(dir, "two")+"\n" {
		t.Error(v, err)
	}
	channels = "16"
	v, err := r.Check(cases[0])
	var e *fail.Error
	if !errors.As(err, &e) || e.Kind != fail.No || v.Outcome != Failed || v.Count != 1 {
		t.Error(v, err)
	}
	if text, err := json.Marshal(v.Differences); err != nil || string(text) != `["graphs[0].nchannels: was 8, is 16"]` {
		t.Errorf("%s %v", text, err)
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
