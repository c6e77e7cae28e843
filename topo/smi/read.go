package smi

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/simccl/simccl/internal/envelope"
	"github.com/simccl/simccl/internal/fail"
)

// maxDevices is the largest number of rows of a matrix.
const maxDevices = 256

// maxBetween bounds the lines that others write between two rows.
const maxBetween = 200

// word is a part of a line between blanks, or between the bars of a table.
type word struct {
	text string
	col  int
}

// row is a line of the file with its position.
type row = envelope.Line

// gpuName and nicName are names of columns; older drivers have the device's own name
// (mlx5_0, bnxt_re0) in place of NIC0.
var (
	gpuName  = regexp.MustCompile(`^GPU\d+$`)
	nicName  = regexp.MustCompile(`^[A-Za-z][\w.-]*\d[\w.-]*$`)
	together = regexp.MustCompile(`^(?:(?:GPU|NIC)\d+){2,}$`)
	oneName  = regexp.MustCompile(`(?:GPU|NIC)\d+`)
	cell     = regexp.MustCompile(`^(?:SYS|NODE|PHB|PXB|PIX|PSB|NV[1-9]\d?|X)`)
	foreign  = regexp.MustCompile(
		`^(?:OK|NS|CNS|GNS|TNS|DR|U|SOC|XGMI|PCIE|True|False|N/A|-?\d+(?:\.\d+)?|-)$`)
	affinity = regexp.MustCompile(`^\d{1,4}(?:-\d{1,4})?(?:,\d{1,4}(?:-\d{1,4})?)*$`)
)

// Table is the kind of a table between GPUs.
type Table int

// Tables: the first that a text has of these, in this order.
const (
	None  Table = iota
	Paths       // of nvidia-smi topo -m
	P2P         // of nvidia-smi topo -p2p
	Other       // numbers, as rocm-smi and tests of bandwidths write them
)

// TableOf returns the kind of table between GPUs in a text, the first of the kinds in their order if there
// are several.
func TableOf(text string) Table {
	if envelope.Packed([]byte(text[:min(len(text), 64)])) == "" &&
		!strings.Contains(text[:min(len(text), 1024)], "\x00") && !hasGPU(text) {
		return None
	}
	list, err := open(text)
	if err != nil {
		return None
	}
	out := None
	for i := range list {
		h := header(list, i)
		if h == nil {
			continue
		}
		if t := h.table(&list[h.body]); out == None || t < out {
			out = t
		}
	}
	return out
}

// table returns the kind of table by its first row of cells.
func (h *head) table(r *row) Table {
	w := from(r, h.names[0])[1:]
	isP2P := func(x word) bool { return p2p[x.text] }
	switch {
	case slices.ContainsFunc(w, isP2P):
		return P2P
	case foreign.MatchString(w[0].text) && w[0].text != "SOC":
		return Other
	}
	return Paths
}

// p2p are the cells of nvidia-smi topo -p2p, but for X.
var p2p = map[string]bool{"OK": true, "NS": true, "CNS": true, "GNS": true, "TNS": true, "DR": true,
	"U": true}

// hasGPU reports whether a name of a GPU is in a text: most files have none.
func hasGPU(text string) bool {
	for {
		i := strings.Index(text, "GPU")
		if i < 0 || i+3 >= len(text) {
			return false
		}
		if text = text[i+3:]; text[0] >= '0' && text[0] <= '9' {
			return true
		}
	}
}

// open removes the envelope of a pasted or saved text, such as prompts and line prefixes, and returns its
// lines.
func open(text string) ([]row, error) {
	t, err := envelope.Open([]byte(text))
	return t.Lines, err
}

// Read parses the first complete matrix of a text, ignoring the text around it. If there is none the error
// has a position and names what the text contains instead.
func Read(text, file string) (*Matrix, error) {
	list, err := open(text)
	if err != nil {
		return nil, fail.File("%s:1:1: %v", file, err)
	}
	var found []*Matrix
	var first error
	for i := 0; i < len(list); i++ {
		h := header(list, i)
		if h == nil {
			continue
		}
		h.file = file
		m, next, err := h.rows(list)
		if err == nil {
			found = append(found, m)
		} else if first == nil {
			first = err
		}
		i = max(i, next-1)
	}
	switch {
	case len(found) > 0:
		for _, other := range found[1:] {
			if !other.equal(found[0]) {
				found[0].Notes = append(found[0].Notes,
					fmt.Sprintf("another matrix follows in line %d, which differs; the first is read",
						other.Devices[0].line))
				break
			}
		}
		return found[0], nil
	case first != nil:
		return nil, first
	}
	return nil, fail.File("%s:1:1: no matrix of nvidia-smi topo -m: no line of column names (GPU0 GPU1 …) "+
		"with a row GPU0 below it; write the whole output of the command", file)
}

// equal reports whether two matrices have equal devices and cells.
func (m *Matrix) equal(o *Matrix) bool {
	same := func(a, b Device) bool {
		return a.Name == b.Name && a.Cores == b.Cores && a.Memory == b.Memory && slices.Equal(a.NUMA, b.NUMA)
	}
	return slices.EqualFunc(m.Devices, o.Devices, same) && slices.EqualFunc(m.Cells, o.Cells, slices.Equal)
}

// wordsOf splits a line into words with columns, at blanks and "|".
func wordsOf(r *row) []word {
	var out []word
	start := -1
	for i, c := range r.Text + " " {
		blank := c == '|' || unicode.IsSpace(c)
		switch {
		case blank && start >= 0:
			out = append(out, word{r.Text[start:i], r.Column + start})
			start = -1
		case !blank && start < 0:
			start = i
		}
	}
	return out
}

// from returns the words of a line starting at a name, which must be a word or follow one of the marks that
// end a launcher's prefix ("0:GPU0"). It returns nil if the name is absent or the last word.
func from(r *row, name string) []word {
	if !strings.Contains(r.Text, name) {
		return nil
	}
	list := wordsOf(r)
	for i, w := range list[:max(len(list)-1, 0)] {
		if n := len(w.text) - len(name); w.text == name || n > 0 && strings.HasSuffix(w.text, name) &&
			strings.Contains(marks, w.text[n-1:n]) {
			list[i] = word{name, w.col + n}
			return list[i:]
		}
	}
	return nil
}

// marks end what launchers and editors put in front of a line.
const marks = ":>])"

// head is a line of column names, and the columns behind them.
type head struct {
	file   string
	line   *row
	names  []string
	col    int      // of the first name
	behind []string // "cpu", "numa", "memory", in their order
	body   int      // index of the first row
}

// header reads a line of column names that has a row of the first name below it.
func header(list []row, at int) *head {
	if !strings.Contains(list[at].Text, "GPU") {
		return nil
	}
	h := &head{line: &list[at]}
	all := split(wordsOf(&list[at]))
	i := slices.IndexFunc(all, func(w word) bool {
		return gpuName.MatchString(w.text[strings.LastIndexAny(w.text, marks)+1:])
	})
	if i < 0 {
		return nil
	}
	n := strings.LastIndexAny(all[i].text, marks) + 1
	if all[i] = (word{all[i].text[n:], all[i].col + n}); !h.columns(all[i:]) {
		return nil
	}
	h.col = all[i].col
	for h.body = at + 1; h.body < min(at+8, len(list)); h.body++ {
		r := &list[h.body]
		if w := from(r, h.names[0]); w != nil {
			if cell.MatchString(w[1].text) || foreign.MatchString(w[1].text) {
				return h
			}
			return nil
		}
		more := head{names: h.names, behind: h.behind}
		if more.columns(split(wordsOf(r))) { // a header that was folded
			h.names, h.behind = more.names, more.behind
		}
	}
	return nil
}

// split separates device names that a terminal wrote without blanks between them.
func split(list []word) []word {
	var out []word
	for _, w := range list {
		if !together.MatchString(w.text) {
			out = append(out, w)
			continue
		}
		for _, at := range oneName.FindAllStringIndex(w.text, -1) {
			out = append(out, word{w.text[at[0]:at[1]], w.col + at[0]})
		}
	}
	return out
}

// columns adds the names of a line to a header; it reports false of a line that has others.
func (h *head) columns(list []word) bool {
	for i := 0; i < len(list); i++ {
		w := list[i].text
		next := func(k int) string {
			if i+k < len(list) {
				return list[i+k].text
			}
			return ""
		}
		switch {
		case w == "GPU" && next(1) == "NUMA":
			h.behind = append(h.behind, "memory")
			i += 2
		case w == "CPU":
			h.behind = append(h.behind, "cpu")
		case w == "NUMA":
			h.behind = append(h.behind, "numa")
		case w == "Affinity", w == "Aff", w == "ID":
		case len(h.behind) > 0 || !gpuName.MatchString(w) && !nicName.MatchString(w) ||
			cell.FindString(w) == w || slices.Contains(h.names, w) || len(h.names) == maxDevices:
			return false
		default:
			h.names = append(h.names, w)
		}
	}
	return len(h.names) > 0
}

// rows reads the rows below a header, and the legend of NICs behind them; next is the
// index of the line behind the table.
func (h *head) rows(list []row) (m *Matrix, next int, err error) {
	m = &Matrix{File: h.file}
	for _, name := range h.names {
		if gpuName.MatchString(name) {
			m.GPUs++
		}
	}
	next = h.body
	for i, name := range h.names {
		var w []word
		for most := next + maxBetween; next < min(len(list), most); next++ {
			if w = from(&list[next], name); w != nil && (cell.MatchString(w[1].text) ||
				foreign.MatchString(w[1].text)) {
				break
			}
			if w = nil; h.later(&list[next], i) || header(list, next) != nil {
				break
			}
		}
		if w == nil {
			return nil, next, fail.File("%s:%d:%d: the row of %s, %d of %d, is missing; write the whole "+
				"output of nvidia-smi topo -m", h.file, h.line.Number, h.col, name, i+1, len(h.names))
		}
		line := &list[next]
		for next++; next < len(list) && h.folded(w, &list[next]); next++ {
			w = append(w, wordsOf(&list[next])...)
		}
		if err := m.row(w, line, h); err != nil {
			return nil, next, err
		}
	}
	end := next
	for ; end < len(list) && header(list, end) == nil; end++ {
	}
	m.legend(list[next:end])
	return m, end, m.check()
}

// later reports whether a line is the row of a name behind the i-th.
func (h *head) later(r *row, i int) bool {
	for _, name := range h.names[i+1:] {
		if w := from(r, name); w != nil && cell.MatchString(w[1].text) {
			return true
		}
	}
	return false
}

// folded reports whether a line goes on with the cells of a row that has too few.
func (h *head) folded(w []word, r *row) bool {
	more := wordsOf(r)
	if len(w) > len(h.names) || len(more) == 0 {
		return false
	}
	return cell.MatchString(more[0].text) && !slices.ContainsFunc(more, func(x word) bool {
		return slices.Contains(h.names, x.text)
	})
}

// row reads cells and, of GPUs, what is behind them.
func (m *Matrix) row(w []word, line *row, h *head) error {
	d := Device{Name: w[0].text, line: line.Number}
	var cells []string
	rest := w[1:]
	for ; len(rest) > 0 && len(cells) < len(h.names); rest = rest[1:] {
		x := rest[0]
		if foreign.MatchString(x.text) {
			return h.refuse(x, line)
		}
		for at := 0; at < len(x.text); { // wide tables have no blank between cells
			c := cell.FindString(x.text[at:])
			if c == "" || strings.HasPrefix(c, "NV") && links(c) == 0 {
				return h.refuse(x, line)
			}
			d.cols = append(d.cols, x.col+at)
			if at += len(c); c == "PSB" { // a switch on the board of old dual cards
				c = "PIX"
			}
			if cells = append(cells, c); len(cells) == len(h.names) && at < len(x.text) {
				rest = append([]word{{}, {x.text[at:], x.col + at}}, rest[1:]...)
				break
			}
		}
	}
	if len(cells) < len(h.names) {
		return fail.File("%s:%d:%d: %d cells of %d in the row of %s; write the whole output of nvidia-smi "+
			"topo -m", h.file, line.Number, w[0].col, len(cells), len(h.names), d.Name)
	}
	if len(m.Devices) < m.GPUs {
		d.behind(rest, line.Text, h.behind)
	}
	m.Devices, m.Cells = append(m.Devices, d), append(m.Cells, cells)
	return nil
}

// behind reads the columns after the cells of a device's row. If there are fewer words than columns, tabs
// show which columns are empty.
func (d *Device) behind(rest []word, text string, columns []string) {
	var values []string
	for _, w := range rest {
		if n := len(values); n > 0 && strings.HasSuffix(values[n-1], ",") {
			values[n-1] += w.text
			continue
		}
		values = append(values, w.text)
	}
	if fields := strings.Split(strings.TrimRight(text, "\r"), "\t"); len(values) < len(columns) &&
		len(rest) > 0 && len(fields) > len(d.cols)+1 {
		values = values[:0]
		for _, f := range fields[len(d.cols)+1:] {
			values = append(values, strings.TrimSpace(f))
		}
		if len(values) == len(columns)+1 && len(columns) == 3 { // nvidia-smi writes two tabs before the last
			values = slices.Delete(values, 2, 3)
		}
	}
	for i, v := range values[:min(len(values), len(columns))] {
		switch columns[i] {
		case "cpu":
			if affinity.MatchString(v) {
				d.Cores = v
			}
		case "numa":
			d.NUMA = numbers(v)
		case "memory":
			if n, err := strconv.Atoi(v); err == nil && n >= 0 {
				d.Memory = v
			}
		}
	}
}

// numbers parses "0-1,4", at most 64 numbers; nil if it is no such list.
func numbers(list string) []int {
	var out []int
	if !affinity.MatchString(list) {
		return nil
	}
	for part := range strings.SplitSeq(list, ",") {
		lo, hi, span := strings.Cut(part, "-")
		a, _ := strconv.Atoi(lo)
		b := a
		if span {
			b, _ = strconv.Atoi(hi)
		}
		for ; a <= b && len(out) < 64; a++ {
			out = append(out, a)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// refuse returns the error for a cell that is no kind of path, and names the table that has such cells if it
// is known.
func (h *head) refuse(w word, line *row) error {
	what := fmt.Sprintf("%q is no kind of path; known are X, SYS, NODE, PHB, PXB, PIX and NV with a number",
		w.text)
	switch w.text {
	case "OK", "NS", "CNS", "GNS", "TNS", "DR", "U":
		what = fmt.Sprintf("%s is of the table of nvidia-smi topo -p2p, which has no paths; write the "+
			"output of nvidia-smi topo -m", w.text)
	case "SOC":
		what = "SOC is of drivers before R384, whose matrix does not distinguish NUMA nodes; write the " +
			"output of nvidia-smi topo -m of a newer driver"
	case "XGMI", "PCIE", "True", "False":
		what = fmt.Sprintf("%s is of a table of rocm-smi or amd-smi, about GPUs of AMD; NVIDIA's is "+
			"written by nvidia-smi topo -m", w.text)
	default:
		if foreign.MatchString(w.text) && w.text != "N/A" && w.text != "-" {
			what = fmt.Sprintf("%s is a number, as in the tables of rocm-smi --showtopo (weights, hops) "+
				"and of bandwidths; paths are written by nvidia-smi topo -m", w.text)
		}
	}
	return fail.File("%s:%d:%d: %s", h.file, line.Number, w.col, what)
}

// legend replaces NIC0, NIC1, … by the device names of nvidia-smi's legend.
func (m *Matrix) legend(list []row) {
	seen := map[string]bool{}
	for i := range list {
		w := wordsOf(&list[i])
		if n := len(w); n >= 2 && strings.HasPrefix(w[n-2].text, "NIC") && strings.HasSuffix(w[n-2].text,
			":") {
			name := strings.TrimSuffix(w[n-2].text, ":")
			for k := m.GPUs; k < len(m.Devices) && !seen[name]; k++ {
				if m.Devices[k].Name == name {
					m.Devices[k].Name = w[n-1].text
					seen[name] = true
					break
				}
			}
		}
	}
}

// check wants each name once, X on the diagonal, and each path to be the same both ways.
func (m *Matrix) check() error {
	names := map[string]bool{}
	if m.GPUs == 0 {
		return fail.File("%s:1:1: no GPU", m.File)
	}
	for i, d := range m.Devices {
		if names[d.Name] {
			return m.fail(i, 0, "two devices are %s; each has a name of its own", d.Name)
		}
		names[d.Name] = true
		if i < m.GPUs != gpuName.MatchString(d.Name) {
			return m.fail(i, 0, "%s is among the others; GPUs come before NICs", d.Name)
		}
		for j := range m.Devices {
			a, b := m.Cells[i][j], m.Cells[j][i]
			switch {
			case (a == "X") != (i == j):
				return m.fail(i, j, "%s reads %s; X is the path of a device to itself", m.between(i, j), a)
			case a != b:
				return m.fail(i, j, "%s reads %s, and %s reads %s: one path has one kind", m.between(i, j), a,
					m.between(j, i), b)
			case links(a) > 0 && (i >= m.GPUs || j >= m.GPUs):
				return m.fail(i, j, "%s reads %s: NVLinks join GPUs alone", m.between(i, j), a)
			}
		}
	}
	return nil
}
