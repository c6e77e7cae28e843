package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
)

// TestCutBoundsThePlateauAlone: times of a cut table follow a part of the best bandwidth, sizes below
// that keep theirs, and a table of one node has no cut.
func TestCutBoundsThePlateauAlone(t *testing.T) {
	d := document{
		"system": map[string]any{"nodes": 2.0},
		"rows": []judgePoint{{8, 10, 0.001, 0}, {1 << 20, 100, 10, 0},
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
	if err := runJudge(t.Context(), args, &out); err != nil {
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

// TestCausesAreWhatTheReporterPasted: each labelled bandwidth is a table of its own, pairs of nodes are
// tables of nccl-tests with their hosts, other tools' figures are words; neither the cause nor the name of
// the case, which names it, nor what was better after the repair is given.
func TestCausesAreWhatTheReporterPasted(t *testing.T) {
	trials, err := causes(fstest.MapFS{"reference/causes.json": {Data: []byte(`[
		{"name": "acs_on", "kind": "acs", "topology": "2 nodes of 4 x A100", "cause": "ACS was on",
			"after_fix": {"off": 21.75}, "table": {"collective": "all_reduce", "avg_busbw": {"2 NICs": 12, "1 NIC": 10}}},
		{"name": "slow", "kind": "slow_node", "table": {"collective": "all_reduce",
			"busbw_by_pair": {"17-18": 40, "17-19": 80}}},
		{"name": "copy", "kind": "host_memory", "table": {"tool": "own", "GBps": 64}}]`)}})
	if err != nil || len(trials) != 3 {
		t.Fatal(len(trials), err)
	}
	for i, want := range [][]string{{"report.txt: 2 nodes of 4 x A100", `"busbw":10`, `"gpus_per_node":4`,
		`"nics_per_node":"1"`, `"busbw":12`}, {"on 17 device 0", "on 18 device 7", "on 19 device 0"},
		{"GBps: 64", "tool: own"}} {
		req, err := trials[i].make()
		if err != nil {
			t.Fatal(err)
		}
		text := ""
		for _, f := range req.Files {
			text += f.Name + ": " + string(f.Data)
		}
		for _, w := range want {
			if !strings.Contains(text, w) {
				t.Errorf("%s: no %q in %s", trials[i].name, w, text)
			}
		}
		if strings.Contains(text, "acs") || strings.Contains(text, "ACS") || strings.Contains(text, "21.75") {
			t.Errorf("the answer is given: %s", text)
		}
	}
}

// TestRankCountsNotThePlace: a kind that shares the first rank is first; as it is listed it is second.
func TestRankCountsNotThePlace(t *testing.T) {
	a := &answer{Kinds: []string{"b"}, Suspects: []string{"a", "b", "c"}, Ranks: []int{1, 1, 2}}
	sum := new(tally)
	sum.add(a)
	if sum.first != 1 || sum.listed1 != 0 || sum.listed3 != 1 || sum.kinds1 != 2 || sum.kinds3 != 3 {
		t.Errorf("%+v", sum)
	}
	if s := a.list(); s != "a=b c" {
		t.Errorf("listed as %q", s)
	}
}

// TestCutOfADomainAsksForNoNICs: a plateau between nodes that NVLink joins says nothing of their NICs; one of
// more than a rack, or without MNNVL, does.
func TestCutOfADomainAsksForNoNICs(t *testing.T) {
	for _, x := range []struct {
		intra string
		nodes float64
		env   map[string]any
		want  bool
	}{
		{"NVLink5 NVL72 over IMEX", 4, nil, true},
		{"NVLink5 NVL72 over IMEX", 18, nil, true},
		{"NVLink5 NVL72; two racks", 32, nil, false},
		{"NVLink5 NVL72", 4, map[string]any{"NCCL_MNNVL_ENABLE": "0"}, false},
		{"NVLink4, NVSwitch", 4, nil, false},
	} {
		d := document{"env": x.env, "system": map[string]any{"intra": x.intra, "nodes": x.nodes,
			"gpus_per_node": 4.0}}
		if got := d.joined(); got != x.want {
			t.Errorf("%s, %g nodes, %v: %v", x.intra, x.nodes, x.env, got)
		}
	}
}
