package sweep

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// sweepJob is a job of two ranks that was made for an H200.
const sweepJob = "workload 1\nranks 2\ngpu H200\ncomm dp0 0-1\n" +
	"work 1 gemm flops=1000000000000 bytes=1000000\nlist rank* 0-1\n  mark a\n" +
	"  compute 0 2000000000 work=1\n  call 1 dp* all_reduce float sum 1048576 after=0\n  mark b\n"

// TestJobs: a job is a point as an operation is, as base and as an axis; its time is that of an iteration on
// the machine's GPU, and its key has what is in its file.
func TestJobs(t *testing.T) {
	dir := t.TempDir()
	a, b := filepath.Join(dir, "a.txt"), filepath.Join(dir, "b.txt")
	for name, text := range map[string]string{a: sweepJob, b: strings.Replace(sweepJob, "2000000000",
		"5000000000", 1)} {
		if err := os.WriteFile(name, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	text := "base: {workload: {job: " + a + "}}\ngrid:\n  job: [" + a + ", " + b +
		"]\n  topo: [dgx-h200, h200x4, dgx-b200]\n"
	out, err := start(t, text, filepath.Join(dir, "out")).Do(t.Context())
	if err != nil || out.Ran != 6 || out.Failed != 0 {
		t.Fatalf("%+v, %v", out, err)
	}
	times := map[string]float64{}
	for line := range strings.Lines(jsonl(t, filepath.Join(dir, "out"))) {
		var l struct {
			Point struct{ Job, Topo string }
			Rows  []Row `json:"result"`
		}
		if err := json.Unmarshal([]byte(line), &l); err != nil || len(l.Rows) != 1 {
			t.Fatalf("%v\n%s", err, line)
		}
		if r := l.Rows[0]; r.Func != "job" || r.Ranks != 2 || r.TimeUs < r.ComputeUs+r.ExposedUs-1 ||
			r.ExposedUs <= 0 {
			t.Errorf("%+v", r)
		}
		times[filepath.Base(l.Point.Job)+" "+l.Point.Topo] = l.Rows[0].ComputeUs
	}
	const matrix = 989.4 / 2250 // peaks of H200 and B200
	for point, want := range map[string]float64{"a.txt dgx-h200": 2000, "a.txt h200x4": 2000,
		"a.txt dgx-b200": 2000 * matrix, "b.txt dgx-h200": 5000, "b.txt dgx-b200": 5000 * matrix} {
		if got := times[point]; got < want*0.999 || got > want*1.001 {
			t.Errorf("%s computes %.1f us, want %.1f", point, got, want)
		}
	}
}

// TestPointsAreChecked: what a point cannot mean is refused before anything runs, where it is written and by
// its member's name.
func TestPointsAreChecked(t *testing.T) {
	const head = "base:\n  machine: {nodes: [{topo: dgx-h100}]}\n"
	for text, want := range map[string]string{
		head + "  workload:\n    op: all_reduce\n" +
			"    job: a.txt\ngrid:\n  gpus: [2]\n": "s.yaml:5:10: base: " +
			"workload.job: a.txt: takes the place of operation and sizes",
		head + "  workload:\n    op: nosuch\ngrid:\n  gpus: [2]\n": "s.yaml:4:9: base: workload.op: " +
			"nosuch: unknown operation",
		head + "  workload: {train: {model: llama}}\ngrid:\n  gpus: [2]\n": "s.yaml:3:29: " +
			"base: workload.train.model: " +
			`"llama" is not known`,
		head + "  workload: {train: {model: llama-3.1-8b}}\ngrid:\n" +
			"  schedule: [1f2b]\n": "s.yaml:5:14: schedule: 1f2b",
		head + "  workload: {op: all_reduce}\ngrid:\n  gpus: [2]\n  job: [a.txt]\n": "s.yaml:6:9: job: " +
			"a.txt: takes the place of operation and sizes",
		head + "  workload: {op: all_reduce}\ngrid:\n" +
			"  gpus: [2]\n  fidelity: [share]\n": "s.yaml:6:14: fidelity: " +
			"share: not known",
	} {
		_, err := start(t, text, filepath.Join(t.TempDir(), "out")).Do(t.Context())
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%v\nwant %s", err, want)
		}
	}
	for text, want := range map[string]string{
		head + "  workload:\n    job: {a: 1}\n": "s.yaml:4:10: base: workload.job: " +
			"object where a string is expected",
		head + "  workload: {jbo: x}\n": `s.yaml:3:14: base: workload.jbo: unknown member "jbo"`,
		"base:\n  machine: {nodes: [{topo: a}, {topo: [b]}]}\n": "s.yaml:2:39: base: " +
			"machine.nodes[1].topo: array where a string is expected",
		"base:\n  machine:\n    nodes:\n" +
			"      - topo: a\n        count: x\n": "s.yaml:5:16: base: machine.nodes[0].count: " +
			"string where a whole number is expected",
	} {
		if _, err := Parse([]byte(text), "s.yaml"); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%v\nwant %s", err, want)
		}
	}
}
