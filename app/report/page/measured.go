package page

import (
	"bytes"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/internal/fail"
	"github.com/simccl/simccl/nccltests"
	"github.com/simccl/simccl/units"
)

// Wanted is the run that measured results are drawn beside.
type Wanted struct {
	Program string // such as "all_reduce_perf"
	Ranks   int    // 0: any number
}

// ReadAll is ReadMeasured of files. Errors are of kind fail.BadInput, or read's.
func ReadAll(files []string, w Wanted, read func(name string) ([]byte, error)) (out []Measured, err error) {
	for _, name := range files {
		data, err := read(name)
		if err != nil {
			return nil, err
		}
		m, err := ReadMeasured(data, name, w)
		if err != nil {
			return nil, fail.Input(err)
		}
		out = append(out, m...)
	}
	return out, nil
}

// ReadMeasured reads what nccl-tests, bench or run printed, or wrote with -J, for
// the curves: one of each table of a file that is of the operation wanted. Where
// some of them are of as many ranks, those of other numbers are left out.
func ReadMeasured(data []byte, name string, w Wanted) ([]Measured, error) {
	tables, err := tables(data, name)
	if err != nil {
		return nil, err
	}
	var fit []*nccltests.Parsed
	others, right := "", 0
	for _, t := range tables {
		switch of := t.Config.Program; {
		case of != "" && of != w.Program:
			others = of
			continue
		case of == "" && w.another(t):
			others = "another operation, by its busbw and algbw"
			continue
		case t.Ranks == w.Ranks:
			right++
		}
		fit = append(fit, t)
	}
	if len(fit) == 0 {
		return nil, fmt.Errorf("%s: has results of %s; the page is of %s, measure the same operation", name,
			others, w.Program)
	}
	var out []Measured
	left := len(tables) - len(fit)
	for _, t := range fit {
		if right > 0 && t.Ranks != w.Ranks {
			left++
			continue
		}
		m, err := measuredOf(t, name, w)
		if err != nil {
			return nil, err
		}
		out = append(out, m)
	}
	for i := range out {
		if len(out) > 1 {
			out[i].Name += fmt.Sprintf(", table %d", i+1)
		}
	}
	if left > 0 {
		out[0].note("%d of %d tables are of other operations or numbers of ranks: left out", left,
			len(tables))
	}
	return out, nil
}

func (m *Measured) note(format string, args ...any) {
	m.Notes = append(m.Notes, fmt.Sprintf(format, args...))
}

// measuredOf is a table as a curve.
func measuredOf(t *nccltests.Parsed, name string, w Wanted) (Measured, error) {
	m := Measured{Name: strings.TrimSuffix(filepath.Base(name), filepath.Ext(name))}
	inPlace := 0
	for i := range t.Rows {
		r := &t.Rows[i]
		if len(m.Points) > 0 && int64(m.Points[len(m.Points)-1].Size) >= r.Size {
			continue // of a further root, type or cycle
		}
		half := &r.Out
		if half.Missing {
			half = &r.In
			inPlace++
		}
		if !half.Missing {
			m.Points = append(m.Points, Sample{Size: units.Bytes(r.Size), TimeUs: half.TimeUs,
				BusBW: half.BusBW})
		}
	}
	if len(m.Points) == 0 {
		if t.FirstCut != nil {
			return m, t.FirstCut
		}
		return m, &nccltests.ParseError{File: name, Line: t.Line, Column: 1,
			Problem: "the table has no row with a time; was the run cut short?"}
	}
	if left := t.Left(); left != "" {
		m.note("%s", left)
	}
	if n := t.Wrong(); n > 0 {
		m.note("%d of %d rows have wrong results: their times are drawn, and mean little", n, len(t.Rows))
	}
	if inPlace > 0 {
		m.note("%d rows were measured in place only", inPlace)
	}
	switch bus, ok := factor(t); {
	case w.Ranks == 0:
	case t.Ranks > 0 && t.Ranks != w.Ranks:
		m.note("measured on %d ranks, the page is of %d", t.Ranks, w.Ranks)
	case t.Ranks == 0 && ok && math.Abs(bus/w.factor(w.Ranks)-1) > near:
		m.note("busbw is %.3f of algbw, and of %s on %d ranks %.3f: measured on another number of ranks, "+
			"or another operation", bus, w.Program, w.Ranks, w.factor(w.Ranks))
	}
	return m, nil
}

// near is how far busbw by algbw of a table, which are rounded, may be from what an
// operation has.
const near = 0.01

// factor is busbw by algbw in a table: the median of rows that have digits enough.
func factor(t *nccltests.Parsed) (float64, bool) {
	var all []float64
	for i := range t.Rows {
		for _, m := range []*nccltests.Measure{&t.Rows[i].Out, &t.Rows[i].In} {
			if !m.Missing && m.AlgBW >= 2 && m.BusBW >= 2 {
				all = append(all, m.BusBW/m.AlgBW)
			}
		}
	}
	slices.Sort(all)
	if len(all) == 0 {
		return 0, false
	}
	return all[len(all)/2], true
}

// factor is busbw by algbw of the operation over so many ranks, 0 unknown.
func (w Wanted) factor(ranks int) float64 {
	f, err := coll.ParseFunc(w.Program)
	if err != nil || ranks < 1 {
		return 0
	}
	return f.BusFactor(ranks)
}

// another reports whether a table that does not say its operation is of another one:
// busbw by algbw is not what that has, on the table's ranks or on any.
func (w Wanted) another(t *nccltests.Parsed) bool {
	bus, ok := factor(t)
	if one := w.factor(2); !ok || one == 0 {
		return false
	} else if t.Ranks == 0 { // it grows with ranks from two to many, or is always the same
		return bus < one*(1-near) || bus > w.factor(1<<20)*(1+near)
	}
	return math.Abs(bus/w.factor(t.Ranks)-1) > near
}

// tables reads the tables of a text, or its JSON as one.
func tables(data []byte, name string) ([]*nccltests.Parsed, error) {
	if !bytes.HasPrefix(bytes.TrimSpace(data), []byte("{")) {
		return nccltests.Parse(data, name)
	}
	r, err := nccltests.ParseJSON(data, name)
	if err == nil && r == nil {
		err = &nccltests.ParseError{File: name, Problem: "JSON, but not of nccl-tests' -J: no results"}
	}
	if err != nil {
		return nil, err
	}
	t := &nccltests.Parsed{Line: 1, Config: r.Config, Devices: r.Devices, Rows: r.Rows}
	for _, d := range r.Devices {
		t.Ranks = max(t.Ranks, d.Rank+1)
	}
	return []*nccltests.Parsed{t}, nil
}
