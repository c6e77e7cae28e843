package chrome

import (
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"

	"github.com/simccl/simccl/internal/termtext"
	"github.com/simccl/simccl/trace"
	"github.com/simccl/simccl/trace/internal/pack"
	"github.com/simccl/simccl/trace/perfetto"
	"github.com/simccl/simccl/units"
)

// Event is one event of a file. Times are relative to the file's Base.
type Event struct {
	Line     int
	Phase    byte
	PID, TID int64 // words get negative numbers, in the order of appearance
	TS, Dur  units.Time
	HasTS    bool
	HasDur   bool
	BadTS    string // text of a ts or dur that is no number
	Cat      string
	Name     string
	ID       string
	Bind     string     // bp
	Tint     trace.Tint // of a cname that Writer writes
	Args     []trace.Arg
}

// Arg returns an argument by key, and whether the event has it.
func (e *Event) Arg(key string) (trace.Arg, bool) {
	for i := range e.Args {
		if e.Args[i].Key == key {
			return e.Args[i], true
		}
	}
	return trace.Arg{}, false
}

// Info is the information of a file besides its events: the trace's description of itself, its place and
// clocks in a run of several ranks, and the number of repairs of invalid JSON.
type Info struct {
	Schema  string // ours: simccl/1
	Source  string
	LeftOut []trace.Arg
	Other   []trace.Arg // otherData; nested values as JSON text
	// Part, EpochNs and ClockSync place one rank's file in a run of several.
	Part      *Part
	EpochNs   int64
	ClockSync []ClockSync
	// GPUSync relates GPUs' clocks to the host's, if NCCL reported its kernels.
	GPUSync []ClockSync
	// Base is the whole number of microseconds subtracted from every time: times since the epoch do not fit
	// picoseconds.
	Base int64
	// Repaired counts the places where invalid JSON was read nevertheless.
	Repaired    int
	FirstRepair *SyntaxError
	Events      int
	Compressed  bool
}

// Read calls each for every event of a trace, compressed or not: an object with traceEvents or a bare list,
// or packets of Perfetto's own format, whose track events are returned in the form of a Chrome trace, with
// their packet's number as the line. The Event and its Args are reused between calls. Values without quotes,
// a missing comma before `]` and `{}` events, as NCCL's example profiler writes them, are repaired and
// counted.
func Read(r io.Reader, each func(*Event) error) (*Info, error) { return read(r, each, false) }

// errHead ends reading after the head.
var errHead = errors.New("the events begin")

// Head reads a trace's description of itself, up to its events.
func Head(r io.Reader) (*Info, error) {
	info, err := read(r, nil, true)
	if errors.Is(err, errHead) {
		err = nil
	}
	return info, err
}

func read(r io.Reader, each func(*Event) error, head bool) (*Info, error) {
	info := &Info{}
	src, err := newSource(r)
	info.Compressed = src.compressed()
	if err != nil {
		return info, err
	}
	return parse(src, &parser{info: info, each: each, base: math.MinInt64, head: head, quick: new(quick)})
}

func parse(src io.Reader, p *parser) (*Info, error) {
	p.lex = newLexer(src, p.window)
	if head, _ := p.lex.in.Peek(64); perfetto.Begins(head) {
		return p.proto(p.lex.in)
	}
	info := p.info
	if err := p.file(); err != nil {
		return info, p.placed(err)
	}
	if t, err := p.lex.next(); err != nil || t.kind != tokEOF {
		return info, first(p.placed(err), &SyntaxError{t.line, t.col, "more text after the end of the trace"})
	}
	if p.base != math.MinInt64 {
		info.Base = p.base
	}
	return info, nil
}

// placed adds the present line to a LimitError without one.
func (p *parser) placed(err error) error {
	var limit *trace.LimitError
	if errors.As(err, &limit) && limit.Line == 0 {
		limit.Line = p.lex.line
	}
	return err
}

type parser struct {
	lex       *lexer
	info      *Info
	each      func(*Event) error
	event     Event
	base      int64
	head      bool // only the head is read
	words     map[string]int64
	wordBytes int
	names     pack.Strings
	whole     int64  // ts of the event being read: whole microseconds
	pico      int64  // the rest in picoseconds
	kept      int    // bytes of otherData stored
	quick     *quick // nil: every event is read as tokens
	window    int    // window size of the lexer
}

func (p *parser) repair(t token, problem string) {
	p.info.Repaired++
	if p.info.FirstRepair == nil {
		p.info.FirstRepair = &SyntaxError{t.line, t.col, problem}
	}
}

func (p *parser) unexpected(t token, want string) error {
	if t.kind == tokEOF {
		return &SyntaxError{t.line, t.col, "the file ends where " + want + " is expected"}
	}
	return &SyntaxError{t.line, t.col, fmt.Sprintf("%s expected", want)}
}

func (p *parser) file() error {
	t, err := p.lex.next()
	if err != nil {
		return err
	}
	switch t.kind {
	case tokList:
		if p.head {
			return errHead
		}
		return p.events()
	case tokOpen:
		seen := false
		err := p.object(func(key string) error {
			switch key {
			case "traceEvents":
				if seen = true; p.head {
					return errHead
				}
				if t, err := p.lex.next(); err != nil || t.kind != tokList {
					return first(err, p.unexpected(t, "[ of traceEvents"))
				}
				return p.events()
			case "otherData":
				return p.otherData()
			}
			return p.skip()
		})
		if err == nil && !seen {
			return &SyntaxError{1, 1, "no traceEvents: this is no Chrome trace"}
		}
		return err
	}
	return p.unexpected(t, "{ or [ of a Chrome trace")
}

func first(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// object reads the members of an object whose opening brace was read.
func (p *parser) object(member func(key string) error) error {
	for n := 0; ; n++ {
		t, err := p.lex.next()
		if err != nil {
			return err
		}
		if t.kind == tokClose {
			return nil
		}
		if n > 0 {
			if t.kind != tokComma {
				return p.unexpected(t, ", or }")
			}
			if t, err = p.lex.next(); err != nil {
				return err
			}
			if t.kind == tokClose {
				p.repair(t, "a comma before }")
				return nil
			}
		}
		if t.kind != tokString {
			return p.unexpected(t, "a key in quotes")
		}
		if len(t.text) > maxName {
			return p.long(t, "a key")
		}
		key := p.names.Intern(t.text)
		if t, err = p.lex.next(); err != nil || t.kind != tokColon {
			return first(err, p.unexpected(t, ": after "+termtext.Quote(key, 0)))
		}
		if err := member(key); err != nil {
			return err
		}
	}
}

// long returns the error for a word longer than maxName.
func (p *parser) long(t token, what string) error {
	return &SyntaxError{t.line, t.col, fmt.Sprintf("%s of %d bytes, beginning %s; up to %d are read", what,
		len(t.text), termtext.Quote(string(t.text[:maxName]), 40), maxName)}
}

func (p *parser) events() error {
	for n := 0; ; n++ {
		if p.quick != nil && p.quickEvent(n) {
			if err := p.pass(); err != nil {
				return err
			}
			continue
		}
		t, err := p.lex.next()
		if err != nil {
			return err
		}
		if t.kind == tokEndList {
			return nil
		}
		if n > 0 {
			switch t.kind {
			case tokComma:
				if t, err = p.lex.next(); err != nil {
					return err
				}
				if t.kind == tokEndList {
					p.repair(t, "a comma before ]")
					return nil
				}
			case tokOpen:
				p.repair(t, "no comma between events")
			case tokEOF: // the format allows an unterminated list
				return nil
			default:
				return p.unexpected(t, ", or ] after an event")
			}
		}
		if t.kind == tokEOF {
			return nil
		}
		if t.kind != tokOpen {
			return p.unexpected(t, "{ of an event")
		}
		if err := p.oneEvent(t); err != nil {
			return err
		}
	}
}

func (p *parser) oneEvent(open token) error {
	p.event = Event{Line: open.line, Args: p.event.Args[:0]}
	p.lex.event(true)
	defer p.lex.event(false)
	members := 0
	err := p.object(func(key string) error { members++; return p.member(key) })
	if err != nil {
		return err
	}
	if members == 0 { // NCCL ends its list with {}
		p.repair(open, "an event without members")
		return nil
	}
	return p.pass()
}

// pass calls each with the event that was read.
func (p *parser) pass() error {
	p.settle()
	p.info.Events++
	return p.each(&p.event)
}

func (p *parser) member(key string) error {
	e := &p.event
	if key == "args" {
		t, err := p.lex.next()
		if err != nil {
			return err
		}
		if t.kind != tokOpen {
			return p.finish(t)
		}
		return p.object(func(key string) error {
			a, err := p.value(key)
			if len(e.Args) == maxArgs {
				return &trace.LimitError{Line: e.Line,
					Problem: fmt.Sprintf("an event of more than %d arguments", maxArgs)}
			}
			e.Args = append(e.Args, a)
			return err
		})
	}
	t, err := p.lex.next()
	if err != nil {
		return err
	}
	scalar := t.kind == tokString || t.kind == tokNumber || t.kind == tokWord
	if !scalar {
		return p.finish(t)
	}
	if t.kind == tokWord {
		p.bare(t)
	}
	if len(t.text) > maxName && key != "ts" && key != "dur" {
		return p.long(t, "a "+key)
	}
	switch key {
	case "ph":
		if len(t.text) == 1 {
			e.Phase = t.text[0]
		}
	case "pid":
		e.PID, err = p.number(t)
		return err
	case "tid":
		e.TID, err = p.number(t)
		return err
	case "ts":
		p.stamp(t)
	case "dur":
		p.duration(t)
	case "cat":
		e.Cat = p.names.Intern(t.text)
	case "name":
		e.Name = p.names.Intern(t.text)
	case "id":
		e.ID = string(t.text)
	case "cname":
		e.Tint = pack.TintOf(t.text)
	case "bp":
		e.Bind = p.names.Intern(t.text)
	}
	return nil
}

// bare counts words that are not valid JSON.
func (p *parser) bare(t token) {
	switch string(t.text) {
	case "true", "false", "null":
	default:
		p.repair(t, termtext.Short(string(t.text[:min(len(t.text), maxName)]), 40)+" without quotes")
	}
}

func (p *parser) number(t token) (int64, error) {
	if v, err := strconv.ParseInt(string(t.text), 10, 64); err == nil {
		return v, nil
	}
	if v, err := strconv.ParseFloat(string(t.text), 64); err == nil && v == math.Trunc(v) &&
		math.Abs(v) < 1<<53 {
		return int64(v), nil
	}
	if n, ok := p.words[string(t.text)]; ok {
		return n, nil
	}
	if p.wordBytes += len(t.text) + 64; p.wordBytes > maxWords*64 {
		return 0, &trace.LimitError{Line: t.line,
			Problem: "too many process and thread numbers that are words", Hint: "write numbers"}
	}
	if p.words == nil {
		p.words = make(map[string]int64)
	}
	n := int64(-1 - len(p.words))
	p.words[string(t.text)] = n
	return n, nil
}

// value reads any value as an argument; nested values are stored as JSON text.
func (p *parser) value(key string) (trace.Arg, error) {
	t, err := p.lex.next()
	if err != nil {
		return trace.Arg{}, err
	}
	switch t.kind {
	case tokString:
		return trace.Str(key, p.names.Intern(t.text)), nil
	case tokNumber:
		return numeric(key, p.names.Intern(t.text)), nil
	case tokWord:
		p.bare(t)
		return trace.Str(key, p.names.Intern(t.text)), nil
	}
	var text []byte
	if err := p.copyValue(t, &text, 0); err != nil {
		return trace.Arg{}, err
	}
	return trace.Str(key, string(text)), nil
}

// numeric converts a number other than a short integer to an argument.
func numeric(key, text string) trace.Arg {
	if v, err := strconv.ParseInt(text, 10, 64); err == nil {
		return trace.Int(key, v)
	}
	v, err := strconv.ParseFloat(text, 64)
	if err != nil { // outside the range of float64: stored as text
		return trace.Str(key, text)
	}
	return trace.Num(key, v)
}

const maxDepth = 64

// put appends to *to, unless to is nil.
func put(to *[]byte, text ...byte) {
	if to != nil {
		*to = append(*to, text...)
	}
}

// copyValue reads a value whose first token was read, and appends it as JSON text unless to is nil.
func (p *parser) copyValue(t token, to *[]byte, depth int) error {
	if depth > maxDepth {
		return &SyntaxError{t.line, t.col, fmt.Sprintf("values nested more than %d deep", maxDepth)}
	}
	if to != nil && len(*to) > maxToken {
		return &trace.LimitError{Line: t.line, Problem: fmt.Sprintf("a value of more than %d MiB",
			maxToken>>20)}
	}
	switch t.kind {
	case tokString:
		if to != nil {
			*to = appendString(*to, string(t.text))
		}
	case tokNumber, tokWord:
		put(to, t.text...)
	case tokOpen:
		put(to, '{')
		n := 0
		err := p.object(func(key string) error {
			if n++; n > 1 {
				put(to, ',')
			}
			if to != nil {
				*to = append(appendString(*to, key), ':')
			}
			v, err := p.lex.next()
			return first(err, p.copyValue(v, to, depth+1))
		})
		put(to, '}')
		return err
	case tokList:
		return p.copyList(to, depth)
	default:
		return p.unexpected(t, "a value")
	}
	return nil
}

func (p *parser) copyList(to *[]byte, depth int) error {
	put(to, '[')
	for n := 0; ; n++ {
		t, err := p.lex.next()
		if err != nil {
			return err
		}
		if t.kind == tokEndList {
			put(to, ']')
			return nil
		}
		if n > 0 {
			if t.kind != tokComma {
				return p.unexpected(t, ", or ]")
			}
			if t, err = p.lex.next(); err != nil {
				return err
			}
			put(to, ',')
		}
		if err := p.copyValue(t, to, depth+1); err != nil {
			return err
		}
	}
}

func (p *parser) skip() error {
	t, err := p.lex.next()
	if err != nil {
		return err
	}
	return p.finish(t)
}

// finish skips the rest of a value whose first token was read.
func (p *parser) finish(t token) error { return p.copyValue(t, nil, 0) }

func (p *parser) otherData() error {
	t, err := p.lex.next()
	if err != nil {
		return err
	}
	if t.kind != tokOpen {
		return p.finish(t)
	}
	return p.object(func(key string) error {
		if key == "left_out" {
			t, err := p.lex.next()
			if err != nil || t.kind != tokOpen {
				return first(err, p.finish(t))
			}
			return p.object(func(key string) error {
				a, err := p.value(key)
				if p.kept += len(key) + len(a.Str) + 80; p.kept > maxHead {
					return &trace.LimitError{Line: t.line,
						Problem: fmt.Sprintf("otherData of more than %d MiB", maxHead>>20)}
				}
				p.info.LeftOut = append(p.info.LeftOut, a)
				return err
			})
		}
		a, err := p.value(key)
		if p.kept += len(key) + len(a.Str) + 80; p.kept > maxHead {
			return &trace.LimitError{Line: t.line, Problem: fmt.Sprintf("otherData of more than %d MiB",
				maxHead>>20)}
		}
		switch key {
		case "schema":
			p.info.Schema = a.Str
		case "source":
			p.info.Source = a.Str
		default:
			p.place(key, a.Str)
		}
		p.info.Other = append(p.info.Other, a)
		return err
	})
}
