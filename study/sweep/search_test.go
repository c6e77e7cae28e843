package sweep

import (
	"path/filepath"
	"strings"
	"testing"
	"time"
)

const wide = `base: {workload: {op: all_reduce, sizes: [64K]}, engine: {noProof: true, jitter: "off"}}
prices: {gpuHour: 2, nic: 1000, nicGbit: 3, cable: 100, years: 4}
grid:
  nodes: [1, 2, 3]
  NCCL_ALGO: [Ring, Tree, NVLSTree]
  NCCL_PROTO: [LL, LL128, Simple]
  NCCL_MAX_NCHANNELS: [1, 2, 4, 8, 16]
`

func searchOf(t *testing.T, dir string, points int) *Search {
	t.Helper()
	return &Search{Run: start(t, wide, dir), Goal: "usd_million", Points: points, Seed: 3}
}

// TestSearch: a third of the points finds the best of all, or one within 2 % of it; the
// same seed tries the same points, with one job or many, also after it was interrupted;
// the folder is one of the sweep, which runs the others.
func TestSearch(t *testing.T) {
	a, b, all := t.TempDir(), t.TempDir(), t.TempDir()
	one, err := searchOf(t, a, 45).Do(t.Context())
	if err != nil || one.Tried != 45 || one.Points != 135 || one.Best == nil {
		t.Fatalf("%+v, %v", one, err)
	}
	s := searchOf(t, b, 45)
	s.Jobs, s.MaxTime = 1, time.Nanosecond
	if _, err := s.Do(t.Context()); !leftOver(err) {
		t.Errorf("got %v", err)
	}
	s = searchOf(t, b, 20)
	if _, err := s.Do(t.Context()); err != nil {
		t.Fatal(err)
	}
	s = searchOf(t, b, 45)
	s.Jobs = 1
	s.Round = 7 // that of 45 points
	two, err := s.Do(t.Context())
	if err != nil || string(two.Best.Point) != string(one.Best.Point) &&
		two.Best.Value > one.Best.Value*1.02 {
		t.Errorf("%+v, %v", two, err)
	}
	again, err := searchOf(t, a, 45).Do(t.Context())
	if err != nil || again.Best.Value != one.Best.Value || jsonl(t, a) == "" || strings.Count(jsonl(t, a),
		"\n") != 45 {
		t.Errorf("%+v, %v", again, err)
	}
	whole, err := searchOf(t, all, 1000).Do(t.Context())
	if err != nil || whole.Tried != 135 {
		t.Fatalf("%+v, %v", whole, err)
	}
	if one.Best.Value > whole.Best.Value*1.02 {
		t.Errorf("found %s (%v), the best is %s (%v)", one.Best.Point, one.Best.Value, whole.Best.Point,
			whole.Best.Value)
	}
	for i := 1; i < len(whole.Front); i++ {
		if p, q := whole.Front[i-1], whole.Front[i]; q.Rate <= p.Rate || q.TimeUs >= p.TimeUs {
			t.Errorf("front %+v", whole.Front)
		}
	}
	r := start(t, wide, a)
	if out, err := r.Do(t.Context()); err != nil || out.Done != 45 || out.Ran != 90 ||
		jsonl(t, a) != jsonl(t, all) {
		t.Errorf("%+v, %v", out, err)
	}
}

// TestPrices: the columns of a price list are what it says; mistakes have their place.
func TestPrices(t *testing.T) {
	dir := t.TempDir()
	text := `base: {workload: {op: all_reduce, sizes: [8]}}
prices: {gpuHour: 2, nic: 1000, nicGbit: 3, cable: 100, cableGbit: 1, switch: 7, years: 1}
grid: {nodes: [1, 2]}
`
	if _, err := start(t, text, dir).Do(t.Context()); err != nil {
		t.Fatal(err)
	}
	m, err := Merge(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := m.UsePrices(dir); err != nil {
		t.Fatal(err)
	}
	goal, err := NewExpr("usd_h * 2", m.ColumnNames())
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	err = m.Each(func(_ *Record, row map[string]any) error {
		n++
		v, err := goal.Value(row)
		hosts := row["nodes"].(float64)
		want := 2 * (2*8*hosts + (8*hosts*(1000+400*3+100+400*1))/hoursOfYear)
		if got, ok := v.(float64); !ok || got < want*0.9999 || got > want*1.0001 {
			t.Errorf("%v nodes: %v, not %v", hosts, v, want)
		}
		return err
	})
	if err != nil || n != 2 {
		t.Error(n, err)
	}
	for text, want := range map[string]string{
		"base: {}\nprices: {gpu: 1}":      `s.yaml:2:10: "gpu" is no price`,
		"base: {}\nprices: {nic: -1}":     "s.yaml:2:15: the price of nic",
		"base: {}\nprices: {years: 0}":    "s.yaml:2:17: the price of years",
		"base: {}\nprices: {nic: [1, 2]}": "s.yaml:2:15: the price of nic",
		"base: {}\nprices: 3":             "s.yaml:2:9: a mapping is missing",
	} {
		if _, err := Parse([]byte(text), "s.yaml"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %q", text, err, want)
		}
	}
	if _, err := NewExpr("f(x)", nil); err == nil {
		t.Error("a call is no expression of columns")
	}
	if e, err := NewExpr("nonsense + 1", m.ColumnNames()); err != nil {
		t.Error(err)
	} else if _, err := e.Value(map[string]any{}); err == nil {
		t.Error("a column that is not there")
	}
}

// TestTable: a merged table has the cells of the CSV, with their types.
func TestTable(t *testing.T) {
	dir := t.TempDir()
	text := strings.Replace(small, "Tree]", "CollNetChain]", 1)
	if _, err := start(t, text, dir).Do(t.Context()); err != nil {
		t.Fatal(err)
	}
	m, err := Merge(dir)
	if err != nil {
		t.Fatal(err)
	}
	table, err := m.Table(true)
	if err != nil || table.Rows != 9 {
		t.Fatal(table, err)
	}
	empty := 0
	for _, c := range table.Columns {
		if len(c.Null) != table.Rows {
			t.Errorf("%s has %d rows", c.Name, len(c.Null))
		}
		for i := range table.Rows {
			if c.At(i) == nil {
				empty++
			}
		}
	}
	if c := table.Columns[2]; c.Name != "point_nodes" || c.At(0).(int64) < 1 || empty < 9 {
		t.Errorf("%s %v, %d empty", c.Name, c.At(0), empty)
	}
}

// TestOutsideSettings: variables from outside the specification enter the keys; a folder
// of other settings is another sweep's.
func TestOutsideSettings(t *testing.T) {
	dir := t.TempDir()
	if _, err := start(t, small, dir).Do(t.Context()); err != nil {
		t.Fatal(err)
	}
	r := start(t, small, dir)
	r.Settings = []string{"NCCL_PROTO=LL"}
	if _, err := r.Do(t.Context()); err == nil || !strings.Contains(err.Error(), "another sweep") {
		t.Errorf("got %v", err)
	}
	m, err := readManifest(filepath.Join(dir, manifestFile))
	if err != nil || len(m.Classes) < 3 || len(m.Classes[0].SHA256) != 64 || m.Spec != specFile {
		t.Errorf("%+v, %v", m, err)
	}
}
