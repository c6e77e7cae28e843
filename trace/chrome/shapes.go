package chrome

import (
	"encoding/binary"
	"math"

	"github.com/simccl/simccl/trace"
)

// tables hold what events repeat. An event is kept as the number of its shape and
// the values of its arguments until the file is written: a quarter of its text.
type tables struct {
	shapes   []shape // from 1 on; 0 stands for an event that is spelled out
	byShape  map[string]uint32
	near     [1 << 13]uint32 // shapes by a hash of theirs
	words    []word
	byWord   map[string]uint32
	nearWord [1 << 10]uint32 // word + 1
	key      []byte
}

// shape is what events have in common but for times, place and values.
type shape struct {
	cat, name string
	args      []shapeArg
	text      []byte // `,"cat":…,"name":…`
}

type shapeArg struct {
	key  string
	kind trace.ArgKind
	text []byte // `"key":`
}

// word is the value of an argument.
type word struct {
	s    string
	text []byte // in quotes
}

// What the tables hold at most: a file of others may repeat nothing.
const (
	maxShapes = 1 << 16
	maxTable  = 1 << 16
	maxShort  = 256 // bytes of a word
)

func newTables() *tables {
	return &tables{shapes: make([]shape, 1), byShape: map[string]uint32{}, byWord: map[string]uint32{}}
}

// hash mixes a length with the ends of a string: names that repeat differ there.
func hash(h uint64, s string) uint64 {
	const odd = 0x9e3779b97f4a7c15
	if n := len(s); n >= 8 {
		h ^= le64(s) + uint64(n)
		h = (h ^ h>>29) * odd
		h ^= le64(s[n-8:])
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
	return uint64(s[0]) | uint64(s[1])<<8 | uint64(s[2])<<16 | uint64(s[3])<<24 | uint64(s[4])<<32 | uint64(s[5])<<40 | uint64(s[6])<<48 | uint64(s[7])<<56
}

func (s *shape) is(e *trace.Event) bool {
	if s.name != e.Name || s.cat != e.Cat || len(s.args) != len(e.Args) {
		return false
	}
	for i := range e.Args {
		if a := &s.args[i]; a.kind != e.Args[i].Kind || a.key != e.Args[i].Key {
			return false
		}
	}
	return true
}

// shape returns the number of an event's shape, 0 where there is no room for it.
func (t *tables) shape(e *trace.Event) uint32 {
	h := hash(uint64(len(e.Args))<<3+uint64(len(e.Cat)), e.Name)
	if n := len(e.Args); n > 0 {
		h = hash(h, e.Args[n-1].Key)
	}
	slot := &t.near[h>>(64-13)]
	if *slot > 0 && t.shapes[*slot].is(e) {
		return *slot
	}
	k := appendText(appendText(t.key[:0], e.Cat), e.Name)
	for i := range e.Args {
		k = append(appendText(k, e.Args[i].Key), byte(e.Args[i].Kind))
	}
	t.key = k
	if id, ok := t.byShape[string(k)]; ok {
		*slot = id
		return id
	}
	if len(t.shapes) > maxShapes || len(k) > maxName {
		return 0
	}
	t.shapes = append(t.shapes, newShape(e))
	*slot = uint32(len(t.shapes) - 1)
	t.byShape[string(k)] = *slot
	return *slot
}

func newShape(e *trace.Event) shape {
	s := shape{cat: e.Cat, name: e.Name}
	if e.Cat != "" {
		s.text = appendString(append(s.text, `,"cat":`...), e.Cat)
	}
	s.text = appendString(append(s.text, `,"name":`...), e.Name)
	for i := range e.Args {
		a := &e.Args[i]
		s.args = append(s.args, shapeArg{a.Key, a.Kind, append(appendString(nil, a.Key), ':')})
	}
	return s
}

// word returns the number of a value, false where there is no room for it.
func (t *tables) word(s string) (uint32, bool) {
	slot := &t.nearWord[hash(0, s)>>(64-10)]
	if *slot > 0 && t.words[*slot-1].s == s {
		return *slot - 1, true
	}
	id, ok := t.byWord[s]
	if !ok {
		if len(t.words) == maxTable || len(s) > maxShort {
			return 0, false
		}
		id = uint32(len(t.words))
		t.words = append(t.words, word{s, appendString(nil, s)})
		t.byWord[s] = id
	}
	*slot = id + 1
	return id, true
}

func appendText(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

// Kinds of what is kept beyond the phases of events.
const (
	pairBegin = byte(trace.Counter) + 1 + iota // of Options.NCCLStyle
	pairEnd
)

// pack appends an event as it is kept, but for its times and its track.
func (t *tables) pack(b []byte, kind byte, id uint64, e *trace.Event) []byte {
	b = append(b, kind)
	if kind == byte(trace.FlowStart) || kind == byte(trace.FlowEnd) || kind >= pairBegin {
		b = binary.AppendUvarint(b, id)
	}
	n := t.shape(e)
	b = binary.AppendUvarint(b, uint64(n))
	if n == 0 {
		b = binary.AppendUvarint(appendText(appendText(b, e.Cat), e.Name), uint64(len(e.Args)))
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

// packed is an event as it was kept. Its reader trusts the bytes: they are ours.
type packed struct {
	key
	track int32
	kind  byte
	id    uint64
	// number is the shape's, 0 of one that is spelled out.
	number uint64
	shape  *shape
	loose  shape
	args   []byte
}

func uvarint(b []byte) (uint64, []byte) {
	if b[0] < 0x80 {
		return uint64(b[0]), b[1:]
	}
	v, n := binary.Uvarint(b)
	return v, b[n:]
}

func text(b []byte) (string, []byte) {
	n, b := uvarint(b)
	return string(b[:n]), b[n:]
}

// unpack reads what pack wrote.
func (t *tables) unpack(p *packed, b []byte) {
	p.kind, p.id, b = b[0], 0, b[1:]
	if p.kind == protoEnd {
		return
	}
	if p.kind == byte(trace.FlowStart) || p.kind == byte(trace.FlowEnd) || p.kind >= pairBegin {
		p.id, b = uvarint(b)
	}
	n, b := uvarint(b)
	p.number = n
	if p.shape, p.args = &t.shapes[n], b; n > 0 {
		return
	}
	e := trace.Event{}
	e.Cat, b = text(b)
	e.Name, b = text(b)
	count, b := uvarint(b)
	p.args = nil
	for range count { // the values are brought together, as those of a shape are
		a := trace.Arg{}
		a.Key, b = text(b)
		a.Kind, b = trace.ArgKind(b[0]), b[1:]
		rest := skipValue(a.Kind, b)
		p.args = append(p.args, b[:len(b)-len(rest)]...)
		b = rest
		e.Args = append(e.Args, a)
	}
	p.loose = newShape(&e)
	p.shape = &p.loose
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

// values calls each for every argument.
func (t *tables) values(p *packed, each func(a *shapeArg, v *value)) {
	var v value
	b := p.args
	for i := range p.shape.args {
		a := &p.shape.args[i]
		switch a.kind {
		case trace.IntArg:
			u, rest := uvarint(b)
			v.num, b = int64(u>>1)^-int64(u&1), rest
		case trace.FloatArg:
			v.float, b = math.Float64frombits(binary.LittleEndian.Uint64(b)), b[8:]
		case trace.StringArg:
			n, rest := uvarint(b)
			if b, v.number = rest, n; n > 0 {
				v.word = &t.words[n-1]
			} else {
				v.loose.s, b = text(b)
				v.loose.text = appendString(nil, v.loose.s)
				v.word = &v.loose
			}
		}
		each(a, &v)
	}
}

// value is an argument's: which member holds it, its kind says.
type value struct {
	num   int64
	float float64
	word  *word
	loose word
	// number is the word's from 1 on, 0 of one that is spelled out.
	number uint64
}
