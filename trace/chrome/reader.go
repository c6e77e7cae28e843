package chrome

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"

	"github.com/simccl/simccl/trace"
	"github.com/simccl/simccl/units"
)

// Event is one event as a file has it. Times are relative to the file's Base.
type Event struct {
	Line     int
	Phase    byte
	PID, TID int64 // words get numbers below zero, in the order of appearance
	TS, Dur  units.Time
	HasTS    bool
	HasDur   bool
	BadTS    string // the ts or dur that is no number
	Cat      string
	Name     string
	ID       string
	Bind     string // bp
	Args     []trace.Arg
}

// Arg returns the value of an argument and whether it is there.
func (e *Event) Arg(key string) (trace.Arg, bool) {
	for i := range e.Args {
		if e.Args[i].Key == key {
			return e.Args[i], true
		}
	}
	return trace.Arg{}, false
}

// Info is what Read learned of the file besides its events.
type Info struct {
	Schema  string // ours: simccl/1
	Source  string
	LeftOut []trace.Arg
	Other   []trace.Arg // otherData, nested values as JSON text
	// Part, EpochNs and ClockSync place one rank's file in a run of several.
	Part      *Part
	EpochNs   int64
	ClockSync []ClockSync
	// GPUSync ties GPUs' clocks to the host's, where NCCL told of its kernels.
	GPUSync []ClockSync
	// Base is the whole number of microseconds that was taken off every time:
	// traces that count from the epoch do not fit picoseconds.
	Base int64
	// Mended counts the places where invalid JSON was understood nevertheless.
	Mended     int
	FirstMend  *SyntaxError
	Events     int
	Compressed bool
}

// Read calls each for every event of a trace, compressed or not: an object
// with traceEvents or a bare list. The Event and its Args are reused between
// calls. Values without quotes, a missing comma before `]` and `{}` events,
// as NCCL's example profiler writes them, are mended and counted.
func Read(r io.Reader, each func(*Event) error) (*Info, error) { return read(r, each, false) }

// errHead ends the reading of a head.
var errHead = errors.New("the events begin")

// Head reads what a trace says of itself before its events.
func Head(r io.Reader) (*Info, error) {
	info, err := read(r, nil, true)
	if errors.Is(err, errHead) {
		err = nil
	}
	return info, err
}

func read(r io.Reader, each func(*Event) error, head bool) (*Info, error) {
	info := &Info{}
	br := bufio.NewReaderSize(r, 1<<16)
	if magic, _ := br.Peek(2); bytes.Equal(magic, []byte{0x1f, 0x8b}) {
		z, err := gzip.NewReader(br)
		if err != nil {
			return info, fmt.Errorf("read trace: %w", err)
		}
		info.Compressed = true
		br = bufio.NewReaderSize(z, 1<<16)
	}
	p := &parser{lex: newLexer(br), info: info, each: each, base: math.MinInt64, head: head}
	if err := p.file(); err != nil {
		return info, err
	}
	if t, err := p.lex.next(); err != nil || t.kind != tokEOF {
		return info, first(err, &SyntaxError{t.line, t.col, "more text after the end of the trace"})
	}
	if p.base != math.MinInt64 {
		info.Base = p.base
	}
	return info, nil
}

type parser struct {
	lex   *lexer
	info  *Info
	each  func(*Event) error
	event Event
	base  int64
	head  bool // no events are wanted
	words map[string]int64
	names map[string]string
	whole int64 // ts of the event being read: whole microseconds
	pico  int64 // and the rest
}

func (p *parser) mend(t token, problem string) {
	p.info.Mended++
	if p.info.FirstMend == nil {
		p.info.FirstMend = &SyntaxError{t.line, t.col, problem}
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

// object reads the members of an object whose brace was read.
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
				p.mend(t, "a comma before }")
				return nil
			}
		}
		if t.kind != tokString {
			return p.unexpected(t, "a key in quotes")
		}
		key := p.intern(t.text)
		if t, err = p.lex.next(); err != nil || t.kind != tokColon {
			return first(err, p.unexpected(t, ": after "+key))
		}
		if err := member(key); err != nil {
			return err
		}
	}
}

// intern keeps one copy of the few strings that traces repeat.
func (p *parser) intern(b []byte) string {
	if s, ok := p.names[string(b)]; ok {
		return s
	}
	if p.names == nil || len(p.names) > 1<<16 {
		p.names = make(map[string]string)
	}
	s := string(b)
	p.names[s] = s
	return s
}

func (p *parser) events() error {
	for n := 0; ; n++ {
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
					p.mend(t, "a comma before ]")
					return nil
				}
			case tokOpen:
				p.mend(t, "no comma between events")
			case tokEOF: // the format allows a list that was cut short
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
	members := 0
	err := p.object(func(key string) error { members++; return p.member(key) })
	if err != nil {
		return err
	}
	if members == 0 { // NCCL ends its list with {}
		p.mend(open, "an event without members")
		return nil
	}
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
	switch key {
	case "ph":
		if len(t.text) == 1 {
			e.Phase = t.text[0]
		}
	case "pid":
		e.PID = p.number(t)
	case "tid":
		e.TID = p.number(t)
	case "ts":
		p.stamp(t)
	case "dur":
		p.duration(t)
	case "cat":
		e.Cat = p.intern(t.text)
	case "name":
		e.Name = p.intern(t.text)
	case "id":
		e.ID = string(t.text)
	case "bp":
		e.Bind = p.intern(t.text)
	}
	return nil
}

// bare counts words that JSON does not have.
func (p *parser) bare(t token) {
	switch string(t.text) {
	case "true", "false", "null":
	default:
		p.mend(t, fmt.Sprintf("%s without quotes", t.text))
	}
}

func (p *parser) number(t token) int64 {
	if v, err := strconv.ParseInt(string(t.text), 10, 64); err == nil {
		return v
	}
	if v, err := strconv.ParseFloat(string(t.text), 64); err == nil && v == math.Trunc(v) && math.Abs(v) < 1<<53 {
		return int64(v)
	}
	if n, ok := p.words[string(t.text)]; ok {
		return n
	}
	if p.words == nil {
		p.words = make(map[string]int64)
	}
	n := int64(-1 - len(p.words))
	p.words[string(t.text)] = n
	return n
}

// value reads any value as an argument; nested ones are kept as JSON text.
func (p *parser) value(key string) (trace.Arg, error) {
	t, err := p.lex.next()
	if err != nil {
		return trace.Arg{}, err
	}
	switch t.kind {
	case tokString:
		return trace.Str(key, p.intern(t.text)), nil
	case tokNumber:
		if v, err := strconv.ParseInt(string(t.text), 10, 64); err == nil {
			return trace.Int(key, v), nil
		}
		v, _ := strconv.ParseFloat(string(t.text), 64) // out of range gives infinity
		return trace.Num(key, v), nil
	case tokWord:
		p.bare(t)
		return trace.Str(key, p.intern(t.text)), nil
	}
	var text []byte
	if err := p.copyValue(t, &text, 0); err != nil {
		return trace.Arg{}, err
	}
	return trace.Str(key, string(text)), nil
}

const maxDepth = 64

// copyValue appends a value, whose first token was read, as JSON text.
func (p *parser) copyValue(t token, to *[]byte, depth int) error {
	if depth > maxDepth {
		return &SyntaxError{t.line, t.col, fmt.Sprintf("values nested more than %d deep", maxDepth)}
	}
	switch t.kind {
	case tokString:
		*to = appendString(*to, string(t.text))
	case tokNumber, tokWord:
		*to = append(*to, t.text...)
	case tokOpen:
		*to = append(*to, '{')
		n := 0
		err := p.object(func(key string) error {
			if n++; n > 1 {
				*to = append(*to, ',')
			}
			*to = append(appendString(*to, key), ':')
			v, err := p.lex.next()
			return first(err, p.copyValue(v, to, depth+1))
		})
		*to = append(*to, '}')
		return err
	case tokList:
		return p.copyList(to, depth)
	default:
		return p.unexpected(t, "a value")
	}
	return nil
}

func (p *parser) copyList(to *[]byte, depth int) error {
	*to = append(*to, '[')
	for n := 0; ; n++ {
		t, err := p.lex.next()
		if err != nil {
			return err
		}
		if t.kind == tokEndList {
			*to = append(*to, ']')
			return nil
		}
		if n > 0 {
			if t.kind != tokComma {
				return p.unexpected(t, ", or ]")
			}
			if t, err = p.lex.next(); err != nil {
				return err
			}
			*to = append(*to, ',')
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
func (p *parser) finish(t token) error {
	var drop []byte
	return p.copyValue(t, &drop, 0)
}

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
				p.info.LeftOut = append(p.info.LeftOut, a)
				return err
			})
		}
		a, err := p.value(key)
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

// stamp keeps a ts until the whole event is read: only then is it known
// whether it may set the base.
func (p *parser) stamp(t token) {
	e := &p.event
	e.HasTS = true
	whole, pico, ok := decimal(t.text)
	if t.kind != tokNumber || !ok {
		e.BadTS, e.HasTS = string(t.text), false
		return
	}
	p.whole, p.pico = whole, pico
}

// settle makes the ts relative. The first event of a file that counts from far
// sets the base.
func (p *parser) settle() {
	e := &p.event
	if !e.HasTS {
		return
	}
	if p.base == math.MinInt64 && e.Phase != 'M' {
		p.base = 0
		if p.whole > farMicros {
			p.base = p.whole
		}
	}
	if e.Phase == 'M' {
		p.whole = max(min(p.whole, maxMicros), -maxMicros)
	} else {
		p.whole -= p.base
	}
	if p.whole > maxMicros || p.whole < -maxMicros {
		e.BadTS = fmt.Sprintf("%d us from the first event", p.whole)
		return
	}
	e.TS = units.Time(p.whole)*units.Microsecond + units.Time(p.pico)
}

// duration reads microseconds exactly.
func (p *parser) duration(t token) {
	whole, pico, ok := decimal(t.text)
	if t.kind != tokNumber || !ok || whole > maxMicros || whole < -maxMicros {
		p.event.BadTS = string(t.text)
		return
	}
	p.event.HasDur = true
	p.event.Dur = units.Time(whole)*units.Microsecond + units.Time(pico)
}

const (
	maxMicros = math.MaxInt64/int64(units.Microsecond) - 1
	farMicros = maxMicros / 2
)

// decimal splits a number of microseconds into whole ones and picoseconds of
// the same sign; digits beyond are dropped.
func decimal(b []byte) (whole, pico int64, ok bool) {
	negative := len(b) > 0 && b[0] == '-'
	if negative {
		b = b[1:]
	}
	i := 0
	for ; i < len(b) && b[i] >= '0' && b[i] <= '9'; i++ {
		if whole > math.MaxInt64/10-1 {
			return 0, 0, false
		}
		whole = whole*10 + int64(b[i]-'0')
	}
	if i < len(b) && b[i] == '.' {
		scale := int64(100000)
		for i++; i < len(b) && b[i] >= '0' && b[i] <= '9'; i++ {
			pico += int64(b[i]-'0') * scale
			scale /= 10
		}
	}
	if i < len(b) { // an exponent: rare, take the float
		v, err := strconv.ParseFloat(string(b), 64)
		if err != nil || v > 1e18 {
			return 0, 0, false
		}
		whole = int64(v)
		pico = int64((v - float64(whole)) * 1e6)
	}
	if negative {
		return -whole, -pico, true
	}
	return whole, pico, true
}
