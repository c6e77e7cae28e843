package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/simccl/simccl/study/diagnose"
)

// TestCutBoundsThePlateauAlone: times of a cut table follow a part of the best bandwidth, sizes below
// that keep theirs, and a table of one node has no cut.
func TestCutBoundsThePlateauAlone(t *testing.T) {
	d := document{
		"system": map[string]any{"nodes": 2.0},
		"rows": []point{{8, 10, 0.001, 0}, {1 << 20, 100, 10, 0},
			{1 << 30, 1000, 100, 0}},
	}
	var us []float64
	for _, r := range d.with(d.cut(2)).rows() {
		us = append(us, r.Us)
	}
	if us[0] != 10 || us[1] != 100 || us[2] != 2000 {
		t.Errorf("times %v", us)
	}
	d["system"] = map[string]any{"nodes": 1.0}
	if d.cut(2) != nil {
		t.Error("a node alone has a cut")
	}
}

// TestRunGoesOnFromItsLog: cases that a log answers are not asked again, a line that was cut short is.
func TestRunGoesOnFromItsLog(t *testing.T) {
	shared := t.TempDir()
	for name, text := range map[string]string{"reference/causes.json": `[{"name": "cause"}]`,
		"reference/tables.json": `[{"name": "cause", "collective": "all_reduce"},
			{"name": "a", "system": {"gpu": "H100"}}, {"name": "b", "system": {"gpu": "none"}},
			{"name": "c", "system": {"gpu": "MI300X"}}]`} {
		if err := os.MkdirAll(filepath.Join(shared, "reference"), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(shared, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	log := filepath.Join(shared, "log")
	if err := os.WriteFile(log, []byte(`{"name":"a","group":"H100","right":"slower",`+
		`"verdict":"slower"}`+
		"\n"+`{"name":"b","gro`+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	args := []string{"tables", "-half", "all", "-shared", shared, "-log", log}
	if err := run(t.Context(), args, &out); err != nil {
		t.Fatal(err)
	}
	if s := out.String(); !strings.Contains(s, "left out b: ") ||
		!strings.Contains(s, "verdict 1 of 1 (100 %)") ||
		strings.Contains(s, "cause") {
		t.Errorf("%s", s)
	}
}

// TestEveryFaultIsMade: each kind of fault is felt on a machine that is drawn for it. One kind is
// tried, in the interest of time; the others are those of the table.
func TestEveryFaultIsMade(t *testing.T) {
	names := map[string]bool{}
	for _, f := range among {
		if names[f.kind] {
			t.Errorf("%s is there twice", f.kind)
		}
		names[f.kind] = true
	}
	req, err := request("shm/0", &among[11])
	if err != nil || len(req.Files) != 1 || len(req.Spec.NCCL.Env) != 0 {
		t.Errorf("%+v %v", req.Spec, err)
	}
}

// TestCausesAreMadeOfTheirWords: a bandwidth in words is a point, and a cause of no table is left out.
func TestCausesAreMadeOfTheirWords(t *testing.T) {
	trials, err := causes(fstest.MapFS{"reference/causes.json": {Data: []byte(`[
		{"name": "own", "kind": "acs", "topology": "2 nodes A100",
			"table": {"collective": "all_reduce", "avg_busbw": 10}},
		{"name": "copy", "kind": "host_memory", "table": {"tool": "own"}}]`)}})
	if err != nil || len(trials) != 2 {
		t.Fatal(len(trials), err)
	}
	req, err := trials[0].make()
	if err != nil || !strings.Contains(string(req.Files[0].Data), `"busbw":10`) ||
		trials[0].verdict != diagnose.Slower {
		t.Errorf("%s %v", req.Files, err)
	}
	if _, err := trials[1].make(); err == nil {
		t.Error("a copy in host memory is a collective")
	}
}
