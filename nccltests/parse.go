package nccltests

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"sync"

	"github.com/simccl/simccl/internal/envelope"
	"github.com/simccl/simccl/internal/termtext"
)

// Parsed is a table read back.
type Parsed struct {
	Line    int      // where it begins
	Preface []string // comment lines before the version line, without "# "
	Config  Config
	Devices []Device
	Rows    []Row
	Summary Summary
	// MoreComments and a version other than Version are kept for callers that
	// care; numbers are as printed, so rounded.
	MoreComments []string
	// Ranks is how many ranks ran; 0 where nothing says so.
	Ranks int
	// Others counts the lines among the rows that are none of nccl-tests, such as
	// NCCL's INFO; Cut those that begin as rows and are not whole, FirstCut being
	// the first of them.
	Others, Cut int
	FirstCut    *ParseError
	layout      *layout
}

// Left says what was left out of a table; empty: nothing was.
func (p *Parsed) Left() string {
	var parts []string
	if p.Others > 0 {
		parts = append(parts, fmt.Sprintf("%d %s of other programs among the rows", p.Others,
			plural(p.Others, "line", "lines")))
	}
	if p.Cut > 0 {
		first := fmt.Sprintf("line %d, column %d: %s", p.FirstCut.Line, p.FirstCut.Column, p.FirstCut.Problem)
		if p.Cut > 1 {
			first = "first " + first
		}
		parts = append(parts, fmt.Sprintf("%d %s not whole (%s)", p.Cut, plural(p.Cut, "row that is",
			"rows that are"), first))
	}
	if len(parts) == 0 {
		return ""
	}
	return strings.Join(parts, ", ") + ": left out"
}

func plural(n int, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}

// Wrong counts the rows whose results were wrong.
func (p *Parsed) Wrong() (n int) {
	for _, r := range p.Rows {
		if r.Out.Wrong != 0 || r.In.Wrong != 0 {
			n++
		}
	}
	return n
}

// ParseError is a place that is not of nccl-tests.
type ParseError struct {
	File         string // empty: the text has no name
	Line, Column int    // from 1; 0: the whole
	Text         string
	Problem      string
}

// Error prints place, problem and text.
func (e *ParseError) Error() string {
	place := ""
	switch {
	case e.File != "" && e.Line > 0:
		place = fmt.Sprintf("%s:%d:%d: ", e.File, e.Line, max(e.Column, 1))
	case e.File != "":
		place = e.File + ": "
	case e.Line > 0:
		place = fmt.Sprintf("line %d: ", e.Line)
	}
	out := place + termtext.Short(e.Problem, 400)
	if e.Text != "" {
		out += ": " + termtext.Quote(e.Text, 0)
	}
	return out
}

var (
	deviceLine = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(
			`^#\s+Rank +(-?\d+)(?: Group +(-?\d+))?(?: Pid +(-?\d+))? +on +(\S+) device +(-?\d+) \[([^\]]*)\] (.*)$`)
	})
	// omitted is the line of Table.devices about devices that it does not list.
	omitted = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`^#\s+\.\.\. ranks (\d{1,7}) to (\d{1,7}) on (\d{1,7}) (?:more )?hosts?$`)
	})
	// rowStart finds where a row begins: in a line that a launcher wrote, anywhere.
	rowStart = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`(?:^|[^0-9A-Za-z._-])(\d+)\s+\d+\s+` +
			`(?:u?int(?:8|32|64)|char|half|float(?:16|32|64)?|double|bf(?:loat)?16|(?:fp|f)8_?e[45]m[23])(?:\s|$)`)
	})
	// knownComment finds nccl-tests' own comments behind what a launcher wrote.
	knownComment = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(
			`#\s+(?:nccl-tests version|Collective test |nThread \d|Rank +\d+ |\.\.\. ranks \d|Using devices|Per-Iteration Report:|\(B\)|out-of-place|in-place` +
				`|(?:Out of bounds values|Avg bus bandwidth)\s*:)`)
	})
	// ncclLine is where a line of NCCL's log begins (debug.cc, ncclDebugLog): it may
	// follow the columns of a row that was not through.
	ncclLine = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`\S+:\d+:\d+ \[-?\d+\] (?:\S+:\d+ )?NCCL [A-Z]+ `)
	})
	programIn = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`\b(` + strings.Join(programs, "|") + `|alltoallv)_perf\b`)
	})
	ranksIn = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\bn[rR]anks (\d{1,7})\b`) })
)

// parser reads the tables of a file.
type parser struct {
	file    string
	line    envelope.Line
	tables  []*Parsed
	cur     *Parsed
	layout  *layout
	over    string   // the comment before this one
	between []string // comments since the last table ended
	ended   bool
	program string // the latest that a line named before a table
	ranks   int    // the same of ranks
	open    *openRow
}

// openRow is a row whose rest comes in a later line, because NCCL wrote between.
type openRow struct {
	line    envelope.Line
	columns []column
	fault   *fault
}

// Parse reads the tables of nccl-tests or rccl-tests in a file. It accepts what the
// file was packed or saved in, what launchers write before lines, lines of other
// programs, and columns of all releases. file names it in errors, which are
// *ParseError.
func Parse(data []byte, file string) ([]*Parsed, error) {
	text, err := envelope.Open(data)
	if err != nil {
		return nil, &ParseError{File: file, Problem: err.Error()}
	}
	p := &parser{file: file}
	for _, l := range text.Lines {
		p.line = l
		p.text(l.Text)
	}
	p.closeRow()
	if len(p.tables) == 0 {
		return nil, &ParseError{File: file, Problem: "no nccl-tests table found: neither a line of names " +
			"(# size count type … time algbw busbw) nor a row"}
	}
	for _, t := range p.tables {
		t.finish()
	}
	return p.tables, nil
}

// finish concludes what a whole table says.
func (p *Parsed) finish() {
	for _, d := range p.Devices {
		p.Ranks = max(p.Ranks, d.Rank+1)
	}
}

// table is the current table, a new one if the last has ended.
func (p *parser) table() *Parsed {
	if p.cur == nil || p.ended {
		p.cur = &Parsed{Line: p.line.Number, Summary: Summary{MinBW: -1}, Preface: p.between}
		p.tables = append(p.tables, p.cur)
		p.cur.Config.Program, p.cur.Ranks = p.program, p.ranks
		p.between, p.ended, p.layout, p.program, p.ranks = nil, false, nil, "", 0
	}
	return p.cur
}

// next begins a table where a line shows that another one has begun.
func (p *parser) next() *Parsed {
	p.ended = true
	return p.table()
}

func (p *parser) text(line string) {
	if at := headerIn().FindStringIndex(line); at != nil {
		p.header(line[at[0]:])
		return
	}
	if at := strings.IndexByte(line, '#'); at >= 0 && strings.TrimSpace(line[:at]) == "" {
		p.comment(line[at:])
		return
	}
	if at := knownComment().FindStringIndex(line); at != nil {
		p.comment(line[at[0]:])
		return
	}
	if m := rowStart().FindStringSubmatchIndex(line); m != nil {
		p.row(line, m[2], m[3])
		return
	}
	p.other(line)
}

// other is a line that is neither a comment nor the start of a row.
func (p *parser) other(line string) {
	switch rest := strings.TrimSpace(line); {
	case rest == "" || p.open != nil && p.more(line):
		return
	case p.cur != nil && (strings.HasPrefix(rest, "Out of bounds values") ||
		strings.HasPrefix(rest, "Avg bus bandwidth")):
		p.summary(rest) // of 1.0
		return
	}
	if p.cur != nil && !p.ended && p.layout != nil {
		p.cur.Others++
	}
	if m := programIn().FindString(line); m != "" {
		p.program = m
	}
	if m := ranksIn().FindStringSubmatch(line); m != nil {
		p.ranks, _ = strconv.Atoi(m[1]) // digits by the pattern
		if p.cur != nil && !p.ended && p.cur.Ranks == 0 {
			p.cur.Ranks = p.ranks
		}
	}
}

func (p *parser) header(names string) {
	p.closeRow()
	if p.cur != nil && len(p.cur.Rows)+p.cur.Cut > 0 {
		p.next()
	}
	t := p.table()
	p.layout = newLayout(names, p.over)
	t.layout = p.layout
	t.Config.CPUTime, t.Config.PerIter = p.layout.cpu, t.Config.PerIter || p.layout.perIter()
}

// unlisted reads the line about devices that are not listed: they are on hosts whose names are not known
// ("…1"), with equally many on each.
func (p *parser) unlisted(text string) bool {
	m := omitted().FindStringSubmatch(strings.TrimSpace(text))
	if m == nil {
		return false
	}
	from, _ := strconv.Atoi(m[1]) // digits by the pattern
	to, _ := strconv.Atoi(m[2])
	hosts, _ := strconv.Atoi(m[3])
	t := p.table()
	if n := to - from + 1; n > 0 && n <= mostOmitted && hosts > 0 {
		var last Device
		if len(t.Devices) > 0 {
			last = t.Devices[len(t.Devices)-1]
		}
		for i := range n {
			t.Devices = append(t.Devices, Device{Rank: from + i, Host: fmt.Sprintf("…%d", 1+i*hosts/n),
				Device: i % max(n/hosts, 1), Name: last.Name})
		}
	}
	return true
}

// mostOmitted bounds the devices that one line counts.
const mostOmitted = 1 << 21

func (p *parser) comment(text string) {
	p.closeRow()
	defer func() { p.over = text }()
	if m := deviceLine().FindStringSubmatch(text); m != nil {
		d := Device{Host: m[4], BusID: m[6], Name: m[7]}
		for i, to := range []*int{&d.Rank, &d.Group, &d.PID, nil, &d.Device} {
			if to != nil {
				*to, _ = strconv.Atoi(m[i+1]) // digits by the pattern, or none; huge ones saturate
			}
		}
		t := p.table()
		t.Devices = append(t.Devices, d)
		return
	}
	if p.unlisted(text) || p.start(text) || p.summary(strings.TrimLeft(text, "# ")) {
		return
	}
	switch {
	case p.cur == nil || p.ended || p.cur.Config.TestsVersion == "" && len(p.cur.Rows) == 0 &&
		p.cur.Config.Threads == 0:
		text = strings.TrimPrefix(strings.TrimPrefix(text, "#"), " ")
		if p.cur == nil || p.ended {
			p.between = append(p.between, text)
		} else {
			p.cur.Preface = append(p.cur.Preface, text)
		}
	default:
		p.cur.MoreComments = append(p.cur.MoreComments, text)
	}
}

// start reads a line of what comes before the rows.
func (p *parser) start(text string) bool {
	var version, program string
	var headers, library int
	switch {
	case scanf(text, "# nccl-tests version %s nccl-headers=%d nccl-library=%d", &version, &headers, &library):
		c := &p.next().Config
		c.TestsVersion, c.NCCLHeaders, c.NCCLLibrary = version, headers, library
	case scanf(text, "# Collective test starting: %s", &program):
		if p.cur != nil && len(p.cur.Rows) > 0 {
			p.next()
		}
		p.table().Config.Program = program
	case strings.HasPrefix(text, "# nThread "):
		if p.cur != nil && (p.cur.layout != nil || p.cur.Config.Threads > 0) {
			p.next()
		}
		p.table().Config.counts(text)
	case strings.HasPrefix(text, "# Per-Iteration Report:"):
		c := &p.table().Config
		c.PerIter = true
		if _, skip, ok := strings.Cut(text, "skips first "); ok {
			scanf(skip, "%d", &c.PerIterSkip)
		}
	default:
		return false
	}
	return true
}

var countIn = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(
		`(nThread|nGpus|minBytes|maxBytes|step:|warmup iters:|agg iters:|iters:|validation:|graph:|unalign:) +(-?\d+)(\(factor\))?`)
})

// counts reads the line of options; releases differ in how many it has.
func (c *Config) counts(text string) {
	for _, m := range countIn().FindAllStringSubmatch(text, -1) {
		v, err := strconv.ParseInt(m[2], 10, 64)
		if err != nil {
			continue
		}
		switch m[1] {
		case "nThread":
			c.Threads = int(v)
		case "nGpus":
			c.GPUs = int(v)
		case "minBytes":
			c.MinBytes = v
		case "maxBytes":
			c.MaxBytes = v
		case "step:":
			if c.StepBytes = v; m[3] != "" {
				c.StepBytes, c.StepFactor = 0, v
			}
		case "warmup iters:":
			c.Warmup = int(v)
		case "agg iters:":
			c.AggIters = int(v)
		case "iters:":
			c.Iters = int(v)
		case "validation:":
			c.Check = int(v)
		case "graph:":
			c.Graph = int(v)
		case "unalign:":
			c.Unalign = int(v)
		}
	}
}

// summary reads a line of what comes after the rows.
func (p *parser) summary(text string) bool {
	name, rest, ok := strings.Cut(text, ":")
	f := strings.Fields(rest)
	if !ok || len(f) == 0 {
		return false
	}
	switch strings.TrimSpace(name) {
	case "Out of bounds values":
		n, err := strconv.Atoi(f[0])
		if err != nil {
			return false
		}
		p.table().Summary.OutOfBounds = n
	case "Avg bus bandwidth":
		v, ok := value(f[0])
		if !ok || p.cur == nil {
			return false
		}
		p.cur.Summary.AvgBusBW, p.ended = v, true
	default:
		return false
	}
	return true
}

func scanf(text, format string, args ...any) bool {
	n, _ := fmt.Sscanf(text, format, args...)
	return n == len(args)
}
