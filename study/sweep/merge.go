package sweep

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/simccl/simccl/internal/fail"
)

// Merged is the lines of all shards, by key.
type Merged struct {
	Lines   []Line
	Failed  int
	Torn    int // lines that were cut off
	Again   int // points that more than one process ran, with the same result
	Missing int // points of the manifest that have no line
	Columns []Col
	// Manifest is the manifest of the first folder.
	Manifest *Manifest
	prices   *Prices
}

// Merge reads the part files of folders of one sweep. Two results of one point must be
// the same; a result takes the place of a failure.
func Merge(dirs ...string) (*Merged, error) {
	var first *Manifest
	for _, dir := range dirs {
		name := filepath.Join(dir, manifestFile)
		m, err := readManifest(name)
		if err != nil {
			return nil, fail.Input(err)
		}
		if first != nil && m.Digest != first.Digest {
			return nil, fail.File("%s: another sweep than %s has", name, dirs[0])
		}
		if first == nil {
			first = m
		}
	}
	files, err := parts(dirs...)
	if err != nil {
		return nil, err
	}
	out := &Merged{Columns: first.Schema, Manifest: first}
	by := map[Key]*Line{}
	for _, f := range files {
		torn, err := read(f, func(l *Line) error { return out.add(by, l, f) })
		if err != nil {
			return nil, err
		}
		out.Torn += torn
	}
	for _, l := range by { //lint:sorted sorted below
		out.Lines = append(out.Lines, *l)
		if l.Error != "" {
			out.Failed++
		}
	}
	slices.SortFunc(out.Lines, func(a, b Line) int { return strings.Compare(string(a.Key), string(b.Key)) })
	out.Missing = first.Points - len(out.Lines)
	return out, nil
}

// add adds a line to the merge. A second result for a point must be equal to the first.
func (m *Merged) add(by map[Key]*Line, l *Line, file string) error {
	old := by[l.Key]
	switch {
	case old == nil, old.Error != "" && l.Error == "":
		by[l.Key] = l
	case l.Error != "":
	case !bytes.Equal(old.Result, l.Result):
		return fail.File("%s: point %s has another result than before (%s); one of the two programs or "+
			"machines is wrong", file, l.Point, l.Key[:12])
	default:
		m.Again++
	}
	return nil
}

// WriteJSONL writes a line a point. Provenance (host, process, CPU time) is left
// out unless asked for, so that equal sweeps give equal bytes.
func (m *Merged) WriteJSONL(w io.Writer, provenance bool) error {
	b := bufio.NewWriter(w)
	type bare struct {
		Key    Key             `json:"key"`
		Point  json.RawMessage `json:"point"`
		Result json.RawMessage `json:"result,omitempty"`
		Error  string          `json:"error,omitempty"`
	}
	for i := range m.Lines {
		l := &m.Lines[i]
		var text []byte
		var err error
		if provenance {
			text, err = json.Marshal(l)
		} else {
			text, err = json.Marshal(bare{l.Key, l.Point, l.Result, l.Error})
		}
		if err != nil {
			return err
		}
		if _, err := b.Write(append(text, '\n')); err != nil {
			return err
		}
	}
	return b.Flush()
}

// Record is one row of a table of all results: the point's settings by name, and
// the members of a Row.
type Record struct {
	Key    Key
	Text   json.RawMessage // the point as its line has it
	Point  map[string]any
	Row    map[string]any // nil of a failure
	Error  string
	Host   string
	PID    int
	CPU    float64
	Labels []string // names of settings, in order
}

// records calls each for every row of every point.
func (m *Merged) records(each func(*Record) error) error {
	for i := range m.Lines {
		l := &m.Lines[i]
		r := Record{Key: l.Key, Text: l.Point, Error: l.Error, Host: l.Host, PID: l.PID, CPU: l.CPU}
		if err := json.Unmarshal(l.Point, &r.Point); err != nil {
			return fail.File("point %s: %v", l.Key[:12], err)
		}
		r.Labels = names(l.Point)
		var rows []map[string]any
		if len(l.Result) > 0 {
			dec := json.NewDecoder(bytes.NewReader(l.Result))
			dec.UseNumber()
			if err := dec.Decode(&rows); err != nil {
				return fail.File("result of point %s: %v", l.Key[:12], err)
			}
		}
		if len(rows) == 0 {
			if err := each(&r); err != nil {
				return err
			}
		}
		for _, row := range rows {
			r.Row = row
			if err := each(&r); err != nil {
				return err
			}
		}
	}
	return nil
}

// names lists the members of an object in its order.
func names(object json.RawMessage) []string {
	dec := json.NewDecoder(bytes.NewReader(object))
	var out []string
	if _, err := dec.Token(); err != nil {
		return nil
	}
	for dec.More() {
		t, err := dec.Token()
		if err != nil {
			return out
		}
		out = append(out, fmt.Sprint(t))
		var skip json.RawMessage
		if dec.Decode(&skip) != nil {
			return out
		}
	}
	return out
}

// labels returns the names of the settings of all points, in order of appearance.
func (m *Merged) labels() []string {
	var out []string
	for i := range m.Lines {
		for _, n := range names(m.Lines[i].Point) {
			if !slices.Contains(out, n) {
				out = append(out, n)
			}
		}
	}
	slices.Sort(out)
	return out
}

// Header returns the column names of a table. A setting with the name of a result column is called
// point_NAME.
func (m *Merged) Header(provenance bool) (labels, header []string) {
	labels = m.labels()
	header = []string{"key"}
	for _, l := range labels {
		if slices.ContainsFunc(m.Columns, func(c Col) bool { return c.Name == l }) {
			l = "point_" + l
		}
		header = append(header, l)
	}
	for _, c := range m.Columns {
		header = append(header, c.Name)
	}
	header = append(header, "error")
	if provenance {
		header = append(header, "host", "pid", "cpu_s")
	}
	return labels, header
}

// WriteCSV writes a row a size and point, for pandas and spreadsheets.
func (m *Merged) WriteCSV(w io.Writer, provenance bool) error {
	labels, header := m.Header(provenance)
	c := csv.NewWriter(w)
	if err := c.Write(header); err != nil {
		return err
	}
	err := m.records(func(r *Record) error {
		row := []string{string(r.Key)}
		for _, l := range labels {
			row = append(row, text(r.Point[l]))
		}
		for _, col := range m.Columns {
			row = append(row, text(r.Row[col.Name]))
		}
		row = append(row, r.Error)
		if provenance {
			row = append(row, r.Host, strconv.Itoa(r.PID), strconv.FormatFloat(r.CPU, 'g', 6, 64))
		}
		return c.Write(row)
	})
	c.Flush()
	if err == nil {
		err = c.Error()
	}
	return err
}

// text returns a value in a cell: a list of one as its element.
func text(v any) string {
	switch v := v.(type) {
	case nil:
		return ""
	case string:
		return v
	case float64:
		return strconv.FormatFloat(v, 'g', -1, 64)
	case []any:
		parts := make([]string, len(v))
		for i, e := range v {
			parts[i] = text(e)
		}
		return strings.Join(parts, " ")
	}
	return fmt.Sprint(v)
}
