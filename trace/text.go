package trace

import (
	"bufio"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"github.com/simccl/simccl/units"
)

// The text form has one line per track and event, for tests and for people:
//
//	track 1000003/10000 "rank 3" "node0" "ch 00 send · step 0" 3 10000
//	slice 1000003/10000 6500000 10833000 "NET" "SendWait" Step=0 bytes=131072 transport="NET/IB"
//	flow> 1000003/10000 6501000 "flow" "xfer" 1
//	flow< 1000011/10064 18099000 "flow" "xfer" 1
//	count 3000000/1 6500000 "" "leaf0→spine1 GB/s" GB/s=48.5
//	point 1000003/200 0 "sim" "tuner" chosen="RING/LL"
//
// Places are pid/tid, times picoseconds, strings are quoted as in Go. Floats
// are distinguished from integers by a point, an exponent or a word.

var phaseWords = [...]string{Slice: "slice", Instant: "point", FlowStart: "flow>", FlowEnd: "flow<",
	Counter: "count"}

// Text is a Sink that prints the text form.
type Text struct {
	w      *bufio.Writer
	known  map[[2]int64]TrackID
	tracks []Track
	buf    []byte
	err    error
}

// NewText returns a Text on w.
func NewText(w io.Writer) *Text {
	return &Text{w: bufio.NewWriter(w), known: make(map[[2]int64]TrackID)}
}

// Track registers a lane and prints its line.
func (x *Text) Track(t Track) TrackID {
	k := [2]int64{t.Process, t.Thread}
	if id, ok := x.known[k]; ok {
		return id
	}
	id := TrackID(len(x.tracks))
	x.tracks = append(x.tracks, t)
	x.known[k] = id
	fmt.Fprintf(x.w, "track %d/%d %q %q %q %d %d\n", t.Process, t.Thread, t.ProcessName, t.Labels,
		t.ThreadName, t.ProcessSort, t.ThreadSort)
	return id
}

// Emit prints one event.
func (x *Text) Emit(e *Event) {
	t := &x.tracks[e.Track]
	b := append(append(x.buf[:0], phaseWords[e.Phase]...), ' ')
	b = append(strconv.AppendInt(b, t.Process, 10), '/')
	b = append(strconv.AppendInt(b, t.Thread, 10), ' ')
	b = append(strconv.AppendInt(b, int64(e.Start), 10), ' ')
	if e.Phase == Slice {
		b = append(strconv.AppendInt(b, int64(e.Dur), 10), ' ')
	}
	b = append(strconv.AppendQuote(b, e.Cat), ' ')
	b = strconv.AppendQuote(b, e.Name)
	if e.Phase == FlowStart || e.Phase == FlowEnd {
		b = strconv.AppendInt(append(b, ' '), e.ID, 10)
	}
	for i := range e.Args {
		a := &e.Args[i]
		b = append(b, ' ')
		if plainKey(a.Key) {
			b = append(b, a.Key...)
		} else {
			b = strconv.AppendQuote(b, a.Key)
		}
		b = append(b, '=')
		switch a.Kind {
		case StringArg:
			b = strconv.AppendQuote(b, a.Str)
		case IntArg:
			b = strconv.AppendInt(b, a.Int, 10)
		case FloatArg:
			from := len(b)
			b = strconv.AppendFloat(b, a.Num, 'g', -1, 64)
			if !strings.ContainsAny(string(b[from:]), ".eNI") {
				b = append(b, ".0"...)
			}
		}
	}
	x.buf = append(b, '\n')
	if _, err := x.w.Write(x.buf); err != nil && x.err == nil {
		x.err = err
	}
}

func plainKey(s string) bool {
	for i := range len(s) {
		if c := s[i]; c <= ' ' || c == '=' || c == '"' || c >= 0x7f {
			return false
		}
	}
	return s != ""
}

// Close flushes and returns the first error.
func (x *Text) Close() error {
	if err := x.w.Flush(); x.err == nil {
		x.err = err
	}
	return x.err
}

// TextError is a line that is not the text form.
type TextError struct {
	Line    int
	Problem string
}

// Error prints line and problem.
func (e *TextError) Error() string { return fmt.Sprintf("%d: %s", e.Line, e.Problem) }

// ParseText reads the text form into a sink, which it does not close.
func ParseText(r io.Reader, to Sink) error {
	p := textParser{to: to, ids: make(map[[2]int64]TrackID)}
	scan := bufio.NewScanner(r)
	scan.Buffer(nil, 1<<20)
	for n := 1; scan.Scan(); n++ {
		p.rest, p.problem = scan.Text(), ""
		if strings.TrimSpace(p.rest) == "" || p.rest[0] == '#' {
			continue
		}
		if p.line(); p.problem != "" {
			return &TextError{n, p.problem}
		}
	}
	return scan.Err()
}

type textParser struct {
	to      Sink
	ids     map[[2]int64]TrackID
	rest    string
	problem string
}

func (p *textParser) fail(format string, args ...any) {
	if p.problem == "" {
		p.problem = fmt.Sprintf(format, args...)
	}
}

func (p *textParser) line() {
	word := p.word()
	place := p.place()
	if word == "track" {
		t := Track{Process: place[0], Thread: place[1], ProcessName: p.quoted(), Labels: p.quoted(),
			ThreadName: p.quoted()}
		t.ProcessSort, t.ThreadSort = p.number(), p.number()
		if p.rest != "" {
			p.fail("%q after the track", p.rest)
		}
		if p.problem == "" {
			p.ids[place] = p.to.Track(t)
		}
		return
	}
	var e Event
	known := false
	for i, w := range phaseWords {
		if w == word {
			e.Phase, known = Phase(i), true
		}
	}
	if !known {
		p.fail("%q is no event; write track, slice, point, flow>, flow< or count", word)
		return
	}
	id, ok := p.ids[place]
	if !ok {
		p.fail("track %d/%d is not declared before", place[0], place[1])
		return
	}
	e.Track, e.Start = id, units.Time(p.number())
	if e.Phase == Slice {
		e.Dur = units.Time(p.number())
	}
	e.Cat, e.Name = p.quoted(), p.quoted()
	if e.Phase == FlowStart || e.Phase == FlowEnd {
		e.ID = p.number()
	}
	for p.rest != "" && p.problem == "" {
		e.Args = append(e.Args, p.arg())
	}
	if p.problem == "" {
		p.to.Emit(&e)
	}
}

func (p *textParser) space() {
	p.rest = strings.TrimLeft(p.rest, " ")
}

func (p *textParser) word() string {
	w, rest, _ := strings.Cut(p.rest, " ")
	p.rest = rest
	p.space()
	return w
}

func (p *textParser) number() int64 {
	w := p.word()
	v, err := strconv.ParseInt(w, 10, 64)
	if err != nil {
		p.fail("%q: an integer expected", w)
	}
	return v
}

func (p *textParser) place() [2]int64 {
	w := p.word()
	a, b, ok := strings.Cut(w, "/")
	pid, err1 := strconv.ParseInt(a, 10, 64)
	tid, err2 := strconv.ParseInt(b, 10, 64)
	if !ok || err1 != nil || err2 != nil {
		p.fail("%q: pid/tid expected", w)
	}
	return [2]int64{pid, tid}
}

func (p *textParser) quoted() string {
	q, err := strconv.QuotedPrefix(p.rest)
	if err != nil || q[0] != '"' {
		p.fail("%.20q: a string in double quotes expected", p.rest)
		return ""
	}
	p.rest = p.rest[len(q):]
	p.space()
	s, _ := strconv.Unquote(q) // QuotedPrefix proved it
	return s
}

func (p *textParser) arg() Arg {
	var a Arg
	if p.rest[0] == '"' {
		a.Key = p.quoted()
	} else if i := strings.IndexByte(p.rest, '='); i > 0 && plainKey(p.rest[:i]) {
		a.Key, p.rest = p.rest[:i], p.rest[i:]
	}
	if p.rest == "" || p.rest[0] != '=' {
		p.fail("%.20q: key=value expected", p.rest)
		return a
	}
	p.rest = p.rest[1:]
	if p.rest != "" && p.rest[0] == '"' {
		a.Str = p.quoted()
		return a
	}
	w := p.word()
	if v, err := strconv.ParseInt(w, 10, 64); err == nil {
		return Int(a.Key, v)
	}
	v, err := strconv.ParseFloat(w, 64)
	if err != nil && !math.IsInf(v, 0) {
		p.fail("%q: a number or a string in double quotes expected", w)
	}
	return Num(a.Key, v)
}
