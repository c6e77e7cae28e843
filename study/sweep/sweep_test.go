package sweep

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/simccl/simccl/internal/fail"
	"github.com/simccl/simccl/scenario"
	"github.com/simccl/simccl/topo/builtin"
)

const small = `sweep: 1
base: {workload: {op: all_reduce}, engine: {noProof: true}}
grid:
  nodes: [1, 2]
  size: [8, 1K, 64K]
  NCCL_ALGO: [Ring, Tree]
where: nodes < 2 || NCCL_ALGO == "Ring"
`

type osFS struct{}

func (osFS) Open(name string) (fs.File, error) { return os.Open(name) }

func start(t *testing.T, text, dir string) *Run {
	t.Helper()
	s, err := Parse([]byte(text), "s.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return &Run{Spec: s, Dir: dir, Options: scenario.Options{Files: osFS{}}, Version: "v", NCCL: "2.28.9"}
}

func jsonl(t *testing.T, dirs ...string) string {
	t.Helper()
	m, err := Merge(dirs...)
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := m.WriteJSONL(&b, false); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestShardsMakeTheWhole: shards in any order and number give the bytes of one process.
func TestShardsMakeTheWhole(t *testing.T) {
	one, many := t.TempDir(), t.TempDir()
	out, err := start(t, small, one).Do(t.Context())
	if err != nil || out.Ran != 9 || out.Failed != 0 {
		t.Fatalf("%+v, %v", out, err)
	}
	ran := 0
	for _, i := range []int{2, 0, 1} {
		r := start(t, small, many)
		r.Shard, r.Shards = i, 3
		out, err := r.Do(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		ran += out.Ran
	}
	if a, b := jsonl(t, one), jsonl(t, many); ran != 9 || a != b || strings.Count(a, "\n") != 9 {
		t.Errorf("%d points ran\n%s\n%s", ran, a, b)
	}
}

// TestKilledWriters: what a killed process left in the middle of a line does not count, and
// its point runs again.
func TestKilledWriters(t *testing.T) {
	whole, torn := t.TempDir(), t.TempDir()
	if _, err := start(t, small, whole).Do(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := start(t, small, torn).Do(t.Context()); err != nil {
		t.Fatal(err)
	}
	files, err := parts(torn)
	if err != nil || len(files) != 1 {
		t.Fatal(files, err)
	}
	text, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(files[0], text[:len(text)-100], 0o666); err != nil {
		t.Fatal(err)
	}
	m, err := Merge(torn)
	if err != nil || m.Missing != 1 || m.Torn != 1 {
		t.Fatalf("%d missing, %d torn, %v", m.Missing, m.Torn, err)
	}
	out, err := start(t, small, torn).Do(t.Context())
	if err != nil || out.Ran != 1 || out.Done != 8 {
		t.Fatalf("%+v, %v", out, err)
	}
	if a, b := jsonl(t, whole), jsonl(t, torn); a != b {
		t.Errorf("\n%s\n%s", a, b)
	}
	s, err := StatusOf(torn)
	if err != nil || s.Done != 9 || s.Left != 0 {
		t.Errorf("%+v, %v", s, err)
	}
}

// TestTwoWriters: two processes on the same points may both finish them; the merge
// has each once, and refuses results that differ.
func TestTwoWriters(t *testing.T) {
	dir := t.TempDir()
	if _, err := start(t, small, dir).Do(t.Context()); err != nil {
		t.Fatal(err)
	}
	files, _ := parts(dir)
	text, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	other := filepath.Join(dir, "part-0of1-other-1.jsonl")
	if err := os.WriteFile(other, text, 0o666); err != nil {
		t.Fatal(err)
	}
	if m, err := Merge(dir); err != nil || len(m.Lines) != 9 || m.Again != 9 {
		t.Fatalf("%+v %v", m, err)
	}
	changed := bytes.Replace(text, []byte(`"time_us":`), []byte(`"time_us":1`), 1)
	if err := os.WriteFile(other, changed, 0o666); err != nil {
		t.Fatal(err)
	}
	if _, err := Merge(dir); err == nil || !strings.Contains(err.Error(), "another result") {
		t.Errorf("got %v", err)
	}
}

// TestFailuresAreLines: a point that cannot run is a line, and runs again with Retry.
func TestFailuresAreLines(t *testing.T) {
	dir := t.TempDir()
	text := strings.Replace(small, "Tree]", "CollNetChain]", 1)
	out, err := start(t, text, dir).Do(t.Context())
	if err != nil || out.Failed != 3 || out.Ran != 9 {
		t.Fatalf("%+v, %v", out, err)
	}
	if out, err := start(t, text, dir).Do(t.Context()); err != nil || out.Ran != 0 {
		t.Errorf("again: %+v, %v", out, err)
	}
	r := start(t, text, dir)
	r.Retry = true
	if out, err := r.Do(t.Context()); err != nil || out.Ran != 3 {
		t.Errorf("retry: %+v, %v", out, err)
	}
}

// TestAnotherSweep: a folder holds one sweep; files whose content changed make
// another.
func TestAnotherSweep(t *testing.T) {
	dir := t.TempDir()
	topo := filepath.Join(dir, "a.xml")
	text := "base: {workload: {op: all_reduce, sizes: [8]}, machine: {nodes: [{topo: " + topo +
		"}]}}\nseeds: [1]\n"
	if err := os.WriteFile(topo, machineXML(t, "h200x4"), 0o666); err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(dir, "out")
	if _, err := start(t, text, out).Do(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(topo, machineXML(t, "gh200"), 0o666); err != nil {
		t.Fatal(err)
	}
	if _, err := start(t, text, out).Do(t.Context()); err == nil || !strings.Contains(err.Error(),
		"another sweep") {
		t.Errorf("got %v", err)
	}
}

// TestTimeLimit: no point begins after MaxTime, and the same command goes on.
func TestTimeLimit(t *testing.T) {
	dir := t.TempDir()
	r := start(t, small, dir)
	r.MaxTime, r.Jobs = time.Nanosecond, 1
	out, err := r.Do(t.Context())
	var left *fail.Error
	if !errors.As(err, &left) || left.Kind != fail.LeftOver {
		t.Fatalf("%+v, %v", out, err)
	}
	again, err := start(t, small, dir).Do(t.Context())
	if err != nil || again.Ran+out.Ran != 9 {
		t.Errorf("%d and %d points, %v", out.Ran, again.Ran, err)
	}
}

// TestInterrupted: a context that ends leaves whole lines, and no line of the point
// that ran.
func TestInterrupted(t *testing.T) {
	dir := t.TempDir()
	ctx, cancel := context.WithCancel(t.Context())
	r := start(t, small, dir)
	r.Jobs = 1
	r.Progress = func(done, _, _ int) {
		if done == 2 {
			cancel()
		}
	}
	if _, err := r.Do(ctx); !errors.Is(err, context.Canceled) {
		t.Fatalf("got %v", err)
	}
	s, err := StatusOf(dir)
	if err != nil || s.Torn != 0 || s.Failed != 0 || s.Done < 2 || s.Done > 3 {
		t.Errorf("%+v, %v", s, err)
	}
}

// TestClaims: processes that claim batches share the points without doing one twice.
func TestClaims(t *testing.T) {
	dir := t.TempDir()
	a, err := newClaims(dir)
	if err != nil {
		t.Fatal(err)
	}
	b, err := newClaims(dir)
	if err != nil {
		t.Fatal(err)
	}
	key := Key(strings.Repeat("ab", 32))
	if mine, err := a.take(key); !mine || err != nil {
		t.Fatal(mine, err)
	}
	if mine, err := b.take(key); mine || err != nil {
		t.Fatal(mine, err)
	}
	a.close()
	c, err := newClaims(dir)
	if err != nil {
		t.Fatal(err)
	}
	if mine, err := c.take(key); !mine || err != nil {
		t.Error("a claim that was given up is not free", err)
	}
	old := time.Now().Add(-2 * stale)
	if err := os.Chtimes(filepath.Join(dir, "claims", "ab"), old, old); err != nil {
		t.Fatal(err)
	}
	d, err := newClaims(dir)
	if err != nil {
		t.Fatal(err)
	}
	if mine, err := d.take(key); !mine || err != nil {
		t.Error("a stale claim is not taken", err)
	}
	r := start(t, small, dir)
	r.Claim = true
	if out, err := r.Do(t.Context()); err != nil || out.Ran != 9 {
		t.Errorf("%+v, %v", out, err)
	}
}

// TestSpecErrors: every mistake has file, line, column and a remedy.
func TestSpecErrors(t *testing.T) {
	for text, want := range map[string]string{
		"":                   "s.yaml:1:1: the specification is empty",
		"grid: {nodes: [1]}": "base is missing",
		"base: {workload: {op: all_reduce}}\ngrid: {knots: [1]}": `s.yaml:2:16: knots: `,
		"base: {workload: {op: all_reduce}}\ngrid: {nodes: [x]}": "s.yaml:2:16: nodes: ",
		"base: {workload: {op: all_reduce}}\ngrid: {nodes: 3}": "s.yaml:2:15: the values of nodes are " +
			"missing",
		"base: {workload: {opp: all_reduce}}":        "opp",
		"base: {}\ngrid: {nodes: [1], nodes: [2]}":   "",
		"base: {}\nseeds: 9..1":                      `s.yaml:2:8: seeds "9..1"`,
		"base: {}\nzip: {nodes: [1, 2], size: [1M]}": "s.yaml:2:28: the values of size",
		"base: {}\nwhere: nodes <":                   "s.yaml:2:8: ",
		"base: {}\nlist: 3":                          "list has no entries",
		"base: {}\nfoo: 3":                           `"foo" is not known`,
		"sweep: 2\nbase: {}":                         "format 2 is not known",
		"base: {}\n---\nbase: {}":                    "a second document",
		"a: [":                                       "s.yaml:1",
		"base: &x {}\nlist: [*x]":                    "an alias",
		"base: {machine: {nodes: [{count: .inf}]}}":  "",
	} {
		_, err := Parse([]byte(text), "s.yaml")
		if err == nil || !strings.Contains(err.Error(), want) || !strings.HasPrefix(err.Error(), "s.yaml:") {
			t.Errorf("%q: got %v, want %q", text, err, want)
		}
	}
}

// TestWhere: conditions compare numbers and texts, and name what does not fit.
func TestWhere(t *testing.T) {
	for cond, want := range map[string]int{
		`nodes < 2`: 6, `!(nodes < 2)`: 6, `nodes == 2 && NCCL_ALGO != "Ring"`: 3, `size == "1K"`: 4,
		`nodes * 2 - 1 >= 3`: 6, `nodes % 2 == 0 || size > "64"`: 10, `true`: 12,
		`-nodes > -2 == (NCCL_ALGO == "Tree")`: 6,
	} {
		s, err := Parse([]byte(strings.Replace(small, "where: nodes < 2 || NCCL_ALGO == \"Ring\"", "where: '"+
			cond+"'", 1)), "s.yaml")
		if err != nil {
			t.Errorf("%s: %v", cond, err)
			continue
		}
		n := 0
		for i := range s.count() {
			_, kept, err := s.point(i)
			if err != nil {
				t.Errorf("%s: %v", cond, err)
				break
			}
			if kept {
				n++
			}
		}
		if n != want {
			t.Errorf("%s keeps %d points, want %d", cond, n, want)
		}
	}
	for cond, want := range map[string]string{"knots < 2": "knots is no name",
		"nodes": "neither true nor false", `nodes < "a"`: "does not fit", "nodes % 0 == 1": "division by 0",
		"nodes && true": "does not fit"} {
		s, err := Parse([]byte(strings.Replace(small, "where: nodes < 2 || NCCL_ALGO == \"Ring\"", "where: '"+
			cond+"'", 1)), "s.yaml")
		if err == nil {
			_, _, err = s.point(0)
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", cond, err, want)
		}
	}
	for _, cond := range []string{"f(nodes)", "nodes[0]", "nodes = 2", "nodes << 2", "func() {}",
		strings.Repeat("(", 200) + "nodes" + strings.Repeat(")", 200)} {
		if _, err := Parse([]byte(strings.Replace(small, "where: nodes < 2 || NCCL_ALGO == \"Ring\"",
			"where: '"+cond+"'", 1)), "s.yaml"); err == nil || !strings.HasPrefix(err.Error(),
			"s.yaml:7:8: ") {
			t.Errorf("%.20s: got %v", cond, err)
		}
	}
}

// TestParseShard: shards by hand and by the variables of schedulers.
func TestParseShard(t *testing.T) {
	env := func(kv ...string) func(string) (string, bool) {
		return func(name string) (string, bool) {
			for i := 0; i < len(kv); i += 2 {
				if kv[i] == name {
					return kv[i+1], true
				}
			}
			return "", false
		}
	}
	for _, c := range []struct {
		text string
		env  func(string) (string, bool)
		i, n int
		bad  string
	}{
		{"", env(), 0, 1, ""},
		{"3/8", env(), 3, 8, ""},
		{"8/8", env(), 0, 0, "write I/N"},
		{"auto", env(), 0, 0, "none of"},
		{"auto", env("SLURM_ARRAY_TASK_ID", "5", "SLURM_ARRAY_TASK_COUNT", "8", "SLURM_ARRAY_TASK_MIN", "2"),
			3, 8, ""},
		{"auto", env("SLURM_ARRAY_TASK_ID", "15", "SLURM_ARRAY_TASK_COUNT", "8", "SLURM_ARRAY_TASK_MIN", "2"),
			0, 0, "no gaps"},
		{"auto", env("JOB_COMPLETION_INDEX", "1", "SIMCCL_SHARDS", "4"), 1, 4, ""},
		{"auto", env("JOB_COMPLETION_INDEX", "1"), 0, 0, "SIMCCL_SHARDS of Kubernetes is not set"},
		{"auto", env("LSB_JOBINDEX", "4", "LSB_JOBINDEX_END", "4"), 3, 4, ""},
		{"auto", env("SGE_TASK_ID", "3", "SGE_TASK_LAST", "10", "SGE_TASK_FIRST", "3"), 0, 8, ""},
		{"auto", env("OMPI_COMM_WORLD_RANK", "1", "OMPI_COMM_WORLD_SIZE", "2", "JOB_COMPLETION_INDEX", "1"),
			0, 0, "both set"},
	} {
		i, n, err := ParseShard(c.text, c.env)
		if c.bad != "" {
			if err == nil || !strings.Contains(err.Error(), c.bad) {
				t.Errorf("%s: got %v, want %q", c.text, err, c.bad)
			}
		} else if err != nil || i != c.i || n != c.n {
			t.Errorf("%s: %d/%d, %v, want %d/%d", c.text, i, n, err, c.i, c.n)
		}
	}
}

// TestCSV: a row a size, with the settings of the point in front.
func TestCSV(t *testing.T) {
	dir := t.TempDir()
	if _, err := start(t, small, dir).Do(t.Context()); err != nil {
		t.Fatal(err)
	}
	m, err := Merge(dir)
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := m.WriteCSV(&b, false); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(b.String()), "\n")
	if len(lines) != 10 || !strings.HasPrefix(lines[0], "key,NCCL_ALGO,point_nodes,size,func,") {
		t.Errorf("%d lines\n%s", len(lines), lines[0])
	}
}

// FuzzSpec: whatever is read either is refused with a place or makes points.
func FuzzSpec(f *testing.F) {
	f.Add([]byte(small))
	f.Add([]byte(
		`{"base": {}, "list": [{"nodes": 2, "size": "1M"}], "seeds": "0..3", "zip": [{"op": ["all_reduce"]}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := Parse(data, "f.yaml")
		if err != nil {
			if !strings.HasPrefix(err.Error(), "f.yaml:") {
				t.Fatalf("no place: %v", err)
			}
			return
		}
		for i := range min(s.count(), 3) {
			p, _, err := s.point(i)
			if err == nil && !json.Valid(p.labels()) {
				t.Fatalf("labels %s", p.labels())
			}
		}
	})
}

// machineXML is the file of a built-in machine.
func machineXML(t *testing.T, name string) []byte {
	t.Helper()
	m := builtin.Lookup(name)
	if m == nil {
		t.Fatalf("no machine %s", name)
	}
	return m.XML()
}
