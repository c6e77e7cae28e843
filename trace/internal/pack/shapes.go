package pack

import (
	"encoding/binary"
	"math"

	"github.com/simccl/simccl/trace"
)

// Tables store the repeating parts of events. Until the file is written, an event is stored as the number of
// its shape and the values of its arguments, a quarter of its text.
type Tables struct {
	Shapes   []Shape // numbered from 1; 0 represents an event without a shape, stored in full
	byShape  map[string]uint32
	near     [1 << 13]uint32 // cache: shape number by hash
	Words    []Word
	byWord   map[string]uint32
	nearWord [1 << 10]uint32 // cache: word + 1 by hash
	key      []byte
	quote    func(b []byte, s string) []byte
}

// Shape is the common part of events that differ only in times, track and values; it is stored once.
type Shape struct {
	Cat, Name string
	Tint      trace.Tint
	Args      []ShapeArg
	Text      []byte // `,"cat":…,"name":…`, and the colour's name if there is one
}

// ShapeArg is an argument of a shape: its key, kind and encoded text.
type ShapeArg struct {
	Key  string
	Kind trace.ArgKind
	Text []byte // first argument: `,"args":{"key":`; others: `,"key":`
}

// Word is a string that arguments have as their value.
type Word struct {
	S    string
	Text []byte // quoted
}

// Limits of the tables, as the names in a foreign file may never repeat.
const (
	maxShapes = 1 << 16
	maxTable  = 1 << 16
	maxShort  = 256      // bytes of a word
	maxKey    = 64 << 10 // bytes of a shape's names
)

// New returns empty Tables for a file format whose strings are printed by quote.
func New(quote func(b []byte, s string) []byte) *Tables {
	return &Tables{quote: quote, Shapes: make([]Shape, 1), byShape: map[string]uint32{},
		byWord: map[string]uint32{}}
}

// hash mixes a string's length, ends and middle into h: names that repeat differ in these.
func hash(h uint64, s string) uint64 {
	const odd = 0x9e3779b97f4a7c15
	if n := len(s); n >= 8 {
		h ^= le64(s) + uint64(n)
		h = (h ^ h>>29) * odd
		h ^= le64(s[n-8:])
		if n > 16 {
			h = (h ^ h>>29) * odd
			h ^= le64(s[n/2-4:])
		}
	} else {
		for i := range n {
			h = h<<8 ^ h>>56 ^ uint64(s[i])
		}
		h ^= uint64(n) << 56
	}
	return (h ^ h>>32) * odd
}

func le64(s string) uint64 {
	_ = s[7]
	return uint64(s[0]) | uint64(s[1])<<8 | uint64(s[2])<<16 | uint64(s[3])<<24 | uint64(s[4])<<32 |
		uint64(s[5])<<40 | uint64(s[6])<<48 | uint64(s[7])<<56
}

func (s *Shape) is(e *trace.Event) bool {
	if s.Name != e.Name || s.Cat != e.Cat || s.Tint != e.Tint || len(s.Args) != len(e.Args) {
		return false
	}
	for i := range e.Args {
		if a := &s.Args[i]; a.Kind != e.Args[i].Kind || a.Key != e.Args[i].Key {
			return false
		}
	}
	return true
}

// Number returns the number of an event's shape; 0 if the tables have no room for it.
func (t *Tables) Number(e *trace.Event) uint32 {
	h := hash(uint64(len(e.Args))<<3+uint64(len(e.Cat)), e.Name)
	for i := max(0, len(e.Args)-2); i < len(e.Args); i++ { // the terms of a wait come last, some or all
		h = hash(h, e.Args[i].Key)
	}
	slot, other := &t.near[h>>(64-13)], &t.near[h>>(64-13)^1]
	switch {
	case *slot > 0 && t.Shapes[*slot].is(e):
		return *slot
	case *other > 0 && t.Shapes[*other].is(e):
		return *other
	case *slot > 0:
		slot = other
	}
	k := append(appendText(appendText(t.key[:0], e.Cat), e.Name), byte(e.Tint))
	for i := range e.Args {
		k = append(appendText(k, e.Args[i].Key), byte(e.Args[i].Kind))
	}
	t.key = k
	if id, ok := t.byShape[string(k)]; ok {
		*slot = id
		return id
	}
	if len(t.Shapes) > maxShapes || len(k) > maxKey {
		return 0
	}
	t.Shapes = append(t.Shapes, t.newShape(e))
	*slot = uint32(len(t.Shapes) - 1)
	t.byShape[string(k)] = *slot
	return *slot
}

func (t *Tables) newShape(e *trace.Event) Shape {
	s := Shape{Cat: e.Cat, Name: e.Name, Tint: e.Tint}
	if e.Cat != "" {
		s.Text = t.quote(append(s.Text, `,"cat":`...), e.Cat)
	}
	s.Text = t.quote(append(s.Text, `,"name":`...), e.Name)
	if colour := ColourOf(e.Tint); colour != "" {
		s.Text = t.quote(append(s.Text, `,"cname":`...), colour)
	}
	for i := range e.Args {
		a := &e.Args[i]
		before := ","
		if i == 0 {
			before = `,"args":{`
		}
		s.Args = append(s.Args, ShapeArg{a.Key, a.Kind, append(t.quote([]byte(before), a.Key), ':')})
	}
	return s
}

// word returns the index of a string value; false if the tables have no room for it.
func (t *Tables) word(s string) (uint32, bool) {
	slot := &t.nearWord[hash(0, s)>>(64-10)]
	if *slot > 0 && t.Words[*slot-1].S == s {
		return *slot - 1, true
	}
	id, ok := t.byWord[s]
	if !ok {
		if len(t.Words) == maxTable || len(s) > maxShort {
			return 0, false
		}
		id = uint32(len(t.Words))
		t.Words = append(t.Words, Word{s, t.quote(nil, s)})
		t.byWord[s] = id
	}
	*slot = id + 1
	return id, true
}

func appendText(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

// Kinds of packed events, in addition to the phases of events.
const (
	PairBegin    = byte(trace.Counter) + 1 + iota // begin of an asynchronous pair, with Options.NCCLStyle
	PairEnd                                       // its end
	SliceEnd                                      // in Perfetto's format; has no shape
	CounterValue                                  // in Perfetto's format; the id is the counter's
)

// AppendCounter appends a counter's event whose shape has one FloatArg, in the encoding of Pack.
func AppendCounter(b []byte, shape uint32, v float64) []byte {
	b = binary.AppendUvarint(append(b, byte(trace.Counter)), uint64(shape))
	return binary.LittleEndian.AppendUint64(b, math.Float64bits(v))
}

// Pack appends the encoding of an event, without its times and its track.
func (t *Tables) Pack(b []byte, kind byte, id uint64, e *trace.Event) []byte {
	b = append(b, kind)
	if kind == byte(trace.FlowStart) || kind == byte(trace.FlowEnd) || kind >= PairBegin {
		b = binary.AppendUvarint(b, id)
	}
	n := t.Number(e)
	b = binary.AppendUvarint(b, uint64(n))
	if n == 0 {
		b = binary.AppendUvarint(append(appendText(appendText(b, e.Cat), e.Name), byte(e.Tint)),
			uint64(len(e.Args)))
	}
	for i := range e.Args {
		a := &e.Args[i]
		if n == 0 {
			b = append(appendText(b, a.Key), byte(a.Kind))
		}
		switch a.Kind {
		case trace.IntArg:
			b = binary.AppendVarint(b, a.Int)
		case trace.FloatArg:
			b = binary.LittleEndian.AppendUint64(b, math.Float64bits(a.Num))
		case trace.StringArg:
			if w, ok := t.word(a.Str); ok {
				b = binary.AppendUvarint(b, uint64(w)+1)
			} else {
				b = appendText(append(b, 0), a.Str)
			}
		}
	}
	return b
}

// Packed is a decoded event. Decoding does not check the bytes, because Pack wrote them.
type Packed struct {
	Key
	Track int32
	Kind  byte
	ID    uint64
	// Number is the shape's number; 0 for an event without a shape.
	Number uint64
	Shape  *Shape
	loose  Shape
	args   []byte
	// Value is the argument read last.
	Value Value
}

func uvarint(b []byte) (uint64, []byte) {
	if b[0] < 0x80 {
		return uint64(b[0]), b[1:]
	}
	return longer(b)
}

func longer(b []byte) (uint64, []byte) {
	v := uint64(b[0]&0x7f) | uint64(b[1]&0x7f)<<7
	if b[1] < 0x80 {
		return v, b[2:]
	}
	v, n := binary.Uvarint(b)
	return v, b[n:]
}

// Int decodes the value of an IntArg (zigzag varint) and returns the remaining bytes.
func Int(b []byte) (int64, []byte) {
	u, rest := uvarint(b)
	return int64(u>>1) ^ -int64(u&1), rest
}

// Float decodes the value of a FloatArg and returns the remaining bytes.
func Float(b []byte) (float64, []byte) {
	return math.Float64frombits(binary.LittleEndian.Uint64(b)), b[8:]
}

func text(b []byte) (string, []byte) {
	n, b := uvarint(b)
	return string(b[:n]), b[n:]
}

// Unpack decodes an event that Pack wrote.
func (t *Tables) Unpack(p *Packed, b []byte) {
	p.Kind, p.ID, b = b[0], 0, b[1:]
	if p.Kind == SliceEnd {
		return
	}
	if p.Kind == byte(trace.FlowStart) || p.Kind == byte(trace.FlowEnd) || p.Kind >= PairBegin {
		p.ID, b = uvarint(b)
	}
	n, b := uvarint(b)
	p.Number = n
	if p.Shape, p.args = &t.Shapes[n], b; n > 0 {
		return
	}
	e := trace.Event{}
	e.Cat, b = text(b)
	e.Name, b = text(b)
	e.Tint, b = trace.Tint(b[0]), b[1:]
	count, b := uvarint(b)
	p.args = nil
	for range count { // the values are contiguous, as those of a shape are
		a := trace.Arg{}
		a.Key, b = text(b)
		a.Kind, b = trace.ArgKind(b[0]), b[1:]
		rest := skipValue(a.Kind, b)
		p.args = append(p.args, b[:len(b)-len(rest)]...)
		b = rest
		e.Args = append(e.Args, a)
	}
	p.loose = t.newShape(&e)
	p.Shape = &p.loose
}

func skipValue(kind trace.ArgKind, b []byte) []byte {
	switch kind {
	case trace.FloatArg:
		return b[8:]
	case trace.StringArg:
		n, rest := uvarint(b)
		if n == 0 {
			_, rest = text(rest)
		}
		return rest
	}
	_, rest := uvarint(b)
	return rest
}

// Values calls each for every argument of an event.
func (t *Tables) Values(p *Packed, each func(a *ShapeArg, v *Value)) {
	rest := p.Args()
	for i := range p.Shape.Args {
		rest = t.Value(p, i, rest)
		each(&p.Shape.Args[i], &p.Value)
	}
}

// Args returns the encoded arguments of an event, for Value.
func (p *Packed) Args() []byte { return p.args }

// Value decodes the i-th argument into the event's Value, and returns the bytes after it.
func (t *Tables) Value(p *Packed, i int, b []byte) []byte {
	v := &p.Value
	switch p.Shape.Args[i].Kind {
	case trace.IntArg:
		v.Num, b = Int(b)
	case trace.FloatArg:
		v.Float, b = Float(b)
	case trace.StringArg:
		n, rest := uvarint(b)
		if b, v.Number = rest, n; n > 0 {
			v.Word = &t.Words[n-1]
		} else {
			v.loose.S, b = text(b)
			v.loose.Text = t.quote(nil, v.loose.S)
			v.Word = &v.loose
		}
	}
	return b
}

// Value is the value of an argument, in the member that its kind selects.
type Value struct {
	Num   int64
	Float float64
	Word  *Word
	loose Word
	// Number is the word's number, from 1; 0 for a string stored in full.
	Number uint64
}
