package chrome

import (
	"encoding/binary"

	"github.com/simccl/simccl/trace"
	"github.com/simccl/simccl/trace/internal/pack"
)

// quick is a fast parser for an event that lies entirely in the lexer's window and is written as most
// programs do: strings without escapes, plain numbers, no nested arguments. Any other event, and any error,
// is left to the parser of tokens, which starts at the same position; so errors are reported in one place
// only.
type quick struct {
	b []byte // the window
	i int    // index of the next unread byte
	// cut: the window ended inside the event.
	cut  bool
	last int // index of the last newline read; -1: none
	rows int // newlines read
	// seen caches strings by hash, so that repeated ones are found without the parser's map.
	seen [4096]string
	id   string // the latest id
}

// quickName bounds the length of strings that are parsed here, far below the parser's limits.
const quickName = 1024

// quickEvent parses the next event of a list, of which n were read, if it is a plain one. It consumes either
// the whole event or nothing.
func (p *parser) quickEvent(n int) bool {
	q := p.quick
	for {
		q.b, _ = p.lex.in.Peek(p.lex.in.Buffered())
		q.i, q.cut, q.last, q.rows = 0, false, -1, 0
		if p.quickly(q, n > 0) {
			break
		}
		if !q.cut || !p.lex.more(len(q.b)) {
			return false
		}
	}
	l := p.lex
	l.off += int64(q.i)
	l.line += q.rows
	if l.col += q.i; q.rows > 0 {
		l.col = q.i - q.last - 1
	}
	_, _ = l.in.Discard(q.i) // the bytes are buffered
	return true
}

// more extends the window to about twice n bytes, and reports whether it is now longer than n.
func (l *lexer) more(n int) bool {
	_, _ = l.in.Peek(min(2*n+4096, l.in.Size())) // an error of the source is returned again later
	return l.in.Buffered() > n
}

func (p *parser) quickly(q *quick, comma bool) bool {
	if comma && !q.take(',') || !q.take('{') {
		return false
	}
	p.event = Event{Line: p.lex.line + q.rows, Args: p.event.Args[:0]}
	for {
		key, ok := q.str()
		if !ok || !q.take(':') || !p.quickMember(q, key) {
			return false
		}
		switch q.next() {
		case ',':
			q.i++
		case '}':
			q.i++
			return true
		default:
			return false
		}
	}
}

// next skips white space and returns the next byte without consuming it; 0 at the end of the window.
func (q *quick) next() byte {
	for ; q.i < len(q.b); q.i++ {
		switch c := q.b[q.i]; c {
		case '\n':
			q.last, q.rows = q.i, q.rows+1
		case ' ', '\t', '\r':
		default:
			return c
		}
	}
	q.cut = true
	return 0
}

// take consumes the byte want after white space; false if another byte follows.
func (q *quick) take(want byte) bool {
	if q.next() != want || q.cut {
		return false
	}
	q.i++
	return true
}

// special marks the bytes at which a plain string ends.
var special = func() (t [256]bool) {
	for c := range 0x20 {
		t[c] = true
	}
	t['"'], t['\\'] = true, true
	return t
}()

// str parses a string without escapes.
func (q *quick) str() ([]byte, bool) {
	if !q.take('"') {
		return nil, false
	}
	rest := q.b[q.i:]
	n := 0
	for n < len(rest) && !special[rest[n]] {
		n++
	}
	if n == len(rest) {
		q.cut = true
		return nil, false
	}
	if rest[n] != '"' || n > quickName {
		return nil, false
	}
	q.i += n + 1
	return rest[:n], true
}

// word parses a number, or true, false or null.
func (q *quick) word() (t token, ok bool) {
	from := q.i
	for ; ; q.i++ {
		if q.i == len(q.b) {
			q.cut = true
			return t, false
		}
		if c := q.b[q.i]; punctuation[c] != 0 || c <= ' ' || c == '"' {
			break
		}
	}
	t.text, t.kind = q.b[from:q.i], tokWord
	switch {
	case len(t.text) == 0 || len(t.text) > 64:
		return t, false
	case isNumber(t.text):
		t.kind = tokNumber
		return t, true
	}
	switch string(t.text) {
	case "true", "false", "null":
		return t, true
	}
	return t, false
}

// scalar parses a string or a word.
func (q *quick) scalar() (t token, ok bool) {
	if q.next() == '"' {
		t.kind = tokString
		t.text, ok = q.str()
		return t, ok
	}
	return q.word()
}

func (p *parser) quickMember(q *quick, key []byte) bool {
	if string(key) == "args" {
		return p.quickArgs(q)
	}
	t, ok := q.scalar()
	if !ok {
		return false
	}
	e := &p.event
	switch string(key) {
	case "ph":
		if len(t.text) == 1 {
			e.Phase = t.text[0]
		}
	case "pid":
		e.PID, ok = whole(t.text)
	case "tid":
		e.TID, ok = whole(t.text)
	case "ts":
		p.stamp(t)
	case "dur":
		p.duration(t)
	case "cat":
		e.Cat = p.known(q, t.text)
	case "name":
		e.Name = p.known(q, t.text)
	case "id":
		e.ID = q.number(t.text)
	case "cname":
		e.Tint = pack.TintOf(t.text)
	case "bp":
		e.Bind = p.known(q, t.text)
	}
	return ok
}

func (p *parser) quickArgs(q *quick) bool {
	if !q.take('{') {
		return false
	}
	if q.next() == '}' {
		q.i++
		return true
	}
	e := &p.event
	for {
		key, ok := q.str()
		if !ok || !q.take(':') || len(e.Args) == maxArgs {
			return false
		}
		t, ok := q.scalar()
		if !ok {
			return false
		}
		e.Args = append(e.Args, p.argument(q, key, t))
		switch q.next() {
		case ',':
			q.i++
		case '}':
			q.i++
			return true
		default:
			return false
		}
	}
}

// argument returns a scalar as an argument, as value does.
func (p *parser) argument(q *quick, key []byte, t token) trace.Arg {
	a := trace.Arg{Key: p.known(q, key)}
	if t.kind == tokNumber {
		if v, ok := whole(t.text); ok {
			a.Kind, a.Int = trace.IntArg, v
			return a
		}
		if v, ok := fraction(t.text); ok {
			a.Kind, a.Num = trace.FloatArg, v
			return a
		}
		return numeric(a.Key, p.known(q, t.text))
	}
	a.Str = p.known(q, t.text)
	return a
}

// number returns an id as a string: the previous event's if equal, otherwise a new string, because an id
// occurs only at the two ends of an arrow.
func (q *quick) number(b []byte) string {
	if q.id != string(b) {
		q.id = string(b)
	}
	return q.id
}

// known returns a cached copy of a string, adding it if it is new.
func (p *parser) known(q *quick, b []byte) string {
	h := uint64(len(b)) * 0x9e3779b97f4a7c15
	if n := len(b); n >= 8 {
		h ^= binary.LittleEndian.Uint64(b) * 0xff51afd7ed558ccd
		h ^= binary.LittleEndian.Uint64(b[n-8:])
		if n > 16 {
			h ^= binary.LittleEndian.Uint64(b[n/2-4:]) * 0xc4ceb9fe1a85ec53
		}
	} else {
		for _, c := range b {
			h = h*31 + uint64(c)
		}
	}
	h *= 0x9e3779b97f4a7c15
	s := &q.seen[h>>52]
	if *s != string(b) {
		*s = p.names.Intern(b)
	}
	return *s
}
