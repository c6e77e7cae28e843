package nccltests

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// layout is what a header line says of the rows below it. It differs between
// releases of nccl-tests: up to 2.11 each operation has columns of its own (redop
// or root or neither, "error" for "#wrong"), 1.0 names them otherwise and prints
// milliseconds, and -I, -S and rccl-tests add or leave out others.
type layout struct {
	labels []label
	halves []half
	edges  []int // right ends of the columns, from that of size
	milli  bool  // times are in milliseconds
	cpu    bool
}

// label is a column that says what was run.
type label int

const (
	sizeLabel label = iota
	countLabel
	typeLabel
	redopLabel
	rootLabel
	otherLabel // of a release that is not known
)

// half is the columns of one of the two measurements of a row, counted from its
// first. wrong is -1 where there is none.
type half struct {
	width                 int
	time, alg, bus, wrong int
	delta                 bool // the column is the largest error, not a number of wrong values
	inPlace               bool
	iters                 bool // has the spread of single iterations (-I 1)
}

// labelNames are the names of label columns; those of 1.0 come second.
var labelNames = map[string]label{"size": sizeLabel, "bytes": sizeLabel, "count": countLabel, "N": countLabel,
	"type":  typeLabel,
	"redop": redopLabel, "op": redopLabel, "root": rootLabel}

// headerIn finds the line of names; pages of documentation show it without its "#".
var headerIn = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(
		`(?m)(?:#[ \t]+|^[ \t]*)(?:size[ \t]+count|bytes[ \t]+N)[ \t]+type[ \t].*\b(?:cpu)?time\b.*$`)
})

// HeaderAt is the offset of the first line of names of a table in a text, -1 without one.
func HeaderAt(text []byte) int {
	if m := headerIn().FindIndex(text); m != nil {
		return m[0]
	}
	return -1
}

// newLayout reads a line of names, from its "#" or its first column. over is the line above it, which
// says what the only half of a row is.
func newLayout(names, over string) *layout {
	l := &layout{milli: strings.Contains(names, " N ") && strings.Contains(names, " res")}
	blank := len(names) - len(strings.TrimLeft(names, "# \t"))
	columns := columnsOf(names[blank:], blank)
	for len(columns) > 0 && !timeName(columns[0].text) {
		k, known := labelNames[columns[0].text]
		if !known {
			k = otherLabel
		}
		l.labels = append(l.labels, k)
		l.edges = append(l.edges, columns[0].end)
		columns = columns[1:]
	}
	width := secondHalf(columns)
	for n := 0; n < 2 && len(columns) > 0 && timeName(columns[0].text); n++ {
		h := half{wrong: -1, inPlace: n == 1}
		for _, c := range columns {
			if h.width > 0 && (h.width == width || timeName(c.text)) {
				break
			}
			if known := h.name(c.text); !known && width == 0 {
				break
			}
			h.width++
			l.cpu = l.cpu || c.text == "cputime"
			l.edges = append(l.edges, c.end)
		}
		columns = columns[h.width:]
		l.halves = append(l.halves, h)
	}
	if len(l.halves) == 1 && strings.Contains(over, "in-place") && !strings.Contains(over, "out-of-place") {
		l.halves[0].inPlace = true
	}
	if len(l.edges) > 0 {
		first := l.edges[0]
		for i := range l.edges {
			l.edges[i] -= first
		}
	}
	return l
}

// secondHalf is where the columns of the second measurement begin, which are those of
// the first again; 0 where there is one measurement.
func secondHalf(columns []column) int {
	for i := 1; 2*i <= len(columns); i++ {
		if !timeName(columns[i].text) {
			continue
		}
		for k := range i {
			if columns[k].text != columns[i+k].text {
				return 0
			}
		}
		return i
	}
	return 0
}

func timeName(s string) bool { return s == "time" || s == "cputime" }

// name notes where a column is that the next one is called so; false for names that
// are not known.
func (h *half) name(s string) bool {
	switch {
	case timeName(s):
		h.time = h.width
	case s == "algbw":
		h.alg = h.width
	case s == "busbw":
		h.bus = h.width
	case s == "#wrong" || s == "wrong":
		h.wrong = h.width
	case s == "error" || s == "res":
		h.wrong, h.delta = h.width, true
	case strings.HasPrefix(s, "i_"):
		h.iters = true
	default:
		return false
	}
	return true
}

// defaultLayout is that of rows below no header: of 2.12 and later.
func defaultLayout() *layout {
	four := "  time  algbw  busbw  #wrong"
	return newLayout("#  size  count  type  redop  root"+four+four, "")
}

// perIter reports whether rows have the spread of single iterations (-I 1).
func (l *layout) perIter() bool { return len(l.halves) > 0 && l.halves[0].iters }

// column is a word of a line.
type column struct {
	text       string
	start, end int // bytes, from the start of the line
}

// columnsOf splits a text that begins at so many bytes of its line.
func columnsOf(text string, at int) (out []column) {
	for rest := text; ; {
		skip := len(rest) - len(strings.TrimLeft(rest, " \t\r"))
		rest, at = rest[skip:], at+skip
		if rest == "" {
			return out
		}
		n := strings.IndexAny(rest, " \t\r")
		if n < 0 {
			n = len(rest)
		}
		out = append(out, column{rest[:n], at, at + n})
		rest, at = rest[n:], at+n
	}
}

// fault is why columns are no row.
type fault struct {
	column  int // bytes from the start of the line, from 0
	problem string
	short   bool // all columns are as they should be, but some are missing
}

// blankGap is how many blanks mean a half that was not measured: nccl-tests prints 32
// for one of four columns.
const blankGap = 25

// row reads a row by its columns. Of columns that are blank (redop and root of
// operations that have none, in 2.9 to 2.11) only the values
// say which they are.
func (l *layout) row(columns []column) (Row, *fault) {
	r, first := l.read(columns, l.labels, l.halves)
	if first == nil {
		return r, nil
	}
	none := func(drop ...label) []label {
		return slices.DeleteFunc(slices.Clone(l.labels), func(k label) bool {
			return slices.Contains(drop, k)
		})
	}
	for _, labels := range [][]label{none(redopLabel), none(rootLabel), none(redopLabel, rootLabel)} {
		if len(labels) == len(l.labels) {
			continue
		}
		if r, bad := l.read(columns, labels, l.halves); bad == nil {
			return r, nil
		}
	}
	if n := len(l.labels); len(l.halves) == 2 && len(columns) > n && columns[n].start-columns[n-1].end >
		blankGap {
		if r, bad := l.read(columns, l.labels, l.halves[1:]); bad == nil {
			r.Out.Missing = true
			return r, nil
		}
	}
	return Row{}, first
}

// read reads columns that are these labels and halves.
func (l *layout) read(columns []column, labels []label, halves []half) (Row, *fault) {
	r := Row{Root: -1, RedOp: "none"}
	for i, k := range labels {
		if i >= len(columns) {
			return r, l.short(columns)
		}
		if problem := r.label(k, columns[i].text); problem != "" {
			return r, &fault{column: columns[i].start, problem: problem}
		}
	}
	rest := columns[len(labels):]
	r.Out.Missing, r.In.Missing = true, true
	for _, h := range halves {
		m := &r.Out
		if h.inPlace {
			m = &r.In
		}
		if bad := h.read(rest, m); bad != nil {
			return r, bad
		}
		if len(rest) < h.width {
			return r, l.short(columns)
		}
		if l.milli {
			m.TimeUs *= 1e3
		}
		rest = rest[h.width:]
	}
	for _, c := range rest {
		r.Extra = append(r.Extra, c.text)
	}
	return r, nil
}

// short is the fault of a row that ends early.
func (l *layout) short(columns []column) *fault {
	want := len(l.labels)
	for _, h := range l.halves {
		want += h.width
	}
	f := &fault{problem: fmt.Sprintf("the row ends after %d of %d columns", len(columns), want), short: true}
	if n := len(columns); n > 0 {
		f.column = columns[n-1].end
	}
	return f
}

// label takes a column that says what was run.
func (r *Row) label(k label, text string) (problem string) {
	number := func(to *int64) string {
		v, err := strconv.ParseInt(text, 10, 64)
		if err != nil || v < 0 {
			return "a number of bytes and one of elements begin a row"
		}
		*to = v
		return ""
	}
	switch k {
	case sizeLabel:
		return number(&r.Size)
	case countLabel:
		return number(&r.Count)
	case typeLabel:
		r.Type = text
	case redopLabel:
		if _, isNumber := value(text); isNumber {
			return "a reduction is expected, as sum"
		}
		r.RedOp = text
	case rootLabel:
		v, err := strconv.ParseInt(text, 10, 32)
		if err != nil {
			return "a root is expected, a rank or -1"
		}
		r.Root = int(v)
	}
	return ""
}

// read takes a half; columns that are missing are no fault here.
func (h *half) read(columns []column, m *Measure) *fault {
	m.Missing = false
	for i, c := range columns[:min(h.width, len(columns))] {
		if i != h.time && i != h.alg && i != h.bus && i != h.wrong {
			continue
		}
		na := c.text == "N/A"
		v, ok := value(strings.TrimSuffix(c.text, "*")) // rccl-tests marks values beyond its threshold
		if !ok && !na {
			return &fault{column: c.start, problem: "a number is expected"}
		}
		switch i {
		case h.time:
			if !na && (v < 0 || v > math.MaxFloat64 || v != v) {
				return &fault{column: c.start, problem: "a time is expected"}
			}
			m.TimeUs, m.Missing = v, na
		case h.alg:
			m.AlgBW = v
		case h.bus:
			m.BusBW = v
		case h.wrong:
			if m.Checked = !na; m.Checked && !h.delta {
				m.Wrong = int64(min(max(v, 0), 1<<62))
			}
		}
	}
	return nil
}

// value reads a number as C prints it.
func value(s string) (float64, bool) {
	if strings.ContainsAny(s, "xXpP_") {
		return 0, false
	}
	v, err := strconv.ParseFloat(strings.TrimPrefix(s, "-nan"), 64)
	if strings.HasPrefix(s, "-nan") {
		return math.NaN(), s == "-nan"
	}
	return v, err == nil
}
