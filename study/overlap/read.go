package overlap

import (
	"fmt"
	"strconv"
	"strings"
)

// Row is one case of the table.
type Row struct {
	Section string
	Case    string // the columns that describe the case, joined by spaces
	Labels  []string
	// Keys are the columns of figures, and Measured their values.
	Keys     []string
	Measured map[string]float64
	line     int
}

// Table is a parsed table.
type Table struct {
	World   int // ranks
	Rows    []Row
	Compute map[string]float64 // kernel → its time alone, us
	Device  string             // name of the GPUs; empty where the table has none
	file    string
}

// Error is an error in a table, with its line.
type Error struct {
	File string
	Line int // from 1
	Text string
}

func (e *Error) Error() string { return fmt.Sprintf("%s:%d: %s", e.File, e.Line, e.Text) }

// fault returns an error about the content of a row; the caller adds the position.
func fault(format string, args ...any) error { return &Error{Text: fmt.Sprintf(format, args...)} }

// columns has, by section, the number of columns that describe the case, and the names of the measured
// columns.
var columns = map[string]struct {
	labels int
	keys   []string
}{
	"solo": {4, []string{"gated_us", "graph_us"}},
	"gemm": {6, []string{"comm0_ms", "comm_ms", "x", "comp0_ms", "comp_ms", "rate", "total_ms", "/sum",
		"graph_total_ms"}},
	"two":   {-1, []string{"a_alone", "b_alone", "a", "b", "total", "/sum", "/max", "graph"}},
	"sr":    {-1, []string{"eager_us", "graph_us", "GB/s"}},
	"group": {3, []string{"separate", "grouped", "one", "g_separate", "g_grouped", "g_one"}},
}

// Parse parses a table. It returns an *Error.
func Parse(text, file string) (*Table, error) {
	t := &Table{Compute: map[string]float64{}, file: file}
	section := ""
	for i, line := range strings.Split(text, "\n") {
		line = strings.TrimRight(line, "\r")
		if name, ok := strings.CutPrefix(line, "## "); ok {
			section, _, _ = strings.Cut(name, ":")
			continue
		}
		f := strings.Fields(line)
		if strings.HasPrefix(line, "#") {
			t.head(line, f)
			continue
		}
		if len(f) < 2 {
			continue
		}
		var row *Row
		if section == "late" {
			row = late(line)
		} else if _, known := columns[section]; known {
			row = t.row(section, line, f)
		}
		if row != nil {
			row.line = i + 1
			t.Rows = append(t.Rows, *row)
		}
	}
	if t.World < 1 {
		return nil,
			&Error{file, 1, "the first line names no world of ranks; write # torch … GPU NAME world 4"}
	}
	if len(t.Rows) == 0 {
		return nil,
			&Error{file, 1, "there is no row; sections begin with ## solo, gemm, two, sr, group or late"}
	}
	return t, nil
}

// head reads "# torch … NVIDIA H200 world 4 clock 1980 MHz".
func (t *Table) head(line string, f []string) {
	for i := range f {
		if f[i] != "world" || i+1 == len(f) || t.World > 0 {
			continue
		}
		if n, err := strconv.Atoi(f[i+1]); err == nil && n > 0 && n <= 1024 {
			t.World = n
			if at := strings.LastIndex(line, ") "); at >= 0 {
				t.Device, _, _ = strings.Cut(line[at+2:], " world")
			}
		}
	}
}

// row parses a row: labels, then measured values. It returns nil for a line of column names and a row without
// values. In section solo it stores the kernel's time in t.Compute and returns nil.
func (t *Table) row(section, line string, f []string) *Row {
	c := columns[section]
	if section == "solo" && len(f) == 2 {
		if us, err := strconv.ParseFloat(f[1], 64); err == nil && us > 0 && us < 1e9 {
			t.Compute[f[0]] = us
		}
		return nil
	}
	labels := c.labels
	if labels < 0 {
		line, _, _ = strings.Cut(line, "  ranks a/b")
		f = strings.Fields(line)
		if labels = len(f) - len(c.keys); labels < 1 {
			return nil
		}
	}
	if len(f) < labels+1 {
		return nil
	}
	if _, err := strconv.Atoi(f[labels-1]); err != nil {
		return nil // a line of names
	}
	row := &Row{Section: section, Case: strings.Join(f[:labels], " "), Labels: f[:labels],
		Measured: map[string]float64{}}
	for i, k := range c.keys {
		if labels+i >= len(f) {
			break
		}
		// the script writes nan for a graph that could not be captured
		if v, err := strconv.ParseFloat(f[labels+i], 64); err == nil && v-v == 0 {
			row.Keys, row.Measured[k] = append(row.Keys, k), v
		}
	}
	if len(row.Keys) == 0 {
		return nil
	}
	return row
}

// late reads "all_reduce 1048576 rank 0 late  0.2 ms: 0.2213 0.2218 …".
func late(line string) *Row {
	label, figures, ok := strings.Cut(line, ":")
	f := strings.Fields(label)
	if !ok || len(f) != 7 || f[4] != "late" {
		return nil
	}
	row := &Row{Section: "late", Case: strings.Join(f, " "), Labels: f, Measured: map[string]float64{}}
	for i, v := range strings.Fields(figures) {
		if ms, err := strconv.ParseFloat(v, 64); err == nil && ms-ms == 0 {
			k := fmt.Sprintf("rank%d", i)
			row.Keys, row.Measured[k] = append(row.Keys, k), ms
		}
	}
	return row
}
