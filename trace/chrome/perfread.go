package chrome

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/binary"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/simccl/simccl/internal/termtext"
	"github.com/simccl/simccl/trace"
	"github.com/simccl/simccl/trace/chrome/internal/wire"
)

// PacketError is a place where a file of Perfetto's format cannot be read.
type PacketError struct {
	Packet  int   // counted from 1
	Offset  int64 // of the packet in the file, decompressed
	Problem string
}

// Error prints packet, place and problem.
func (e *PacketError) Error() string {
	return fmt.Sprintf("packet %d (byte %d): %s", e.Packet, e.Offset, e.Problem)
}

// protoBegins reports whether a file begins with a packet of Perfetto's format: its
// first byte is a line feed, which in JSON blanks and a brace follow.
func protoBegins(head []byte) bool {
	if len(head) < 2 || head[0] != wire.TracePacket<<3|wire.Bytes {
		return false
	}
	rest := bytes.TrimLeft(head, " \t\r\n")
	if len(rest) == 0 {
		return false
	}
	if rest[0] != '{' && rest[0] != '[' {
		return true
	}
	rest = bytes.TrimLeft(rest[1:], " \t\r\n")
	return len(rest) > 0 && !bytes.ContainsRune([]byte(`"{}[]`), rune(rest[0]))
}

const (
	maxPacket = 64 << 20
	maxIDs    = 1 << 22 // interned strings and tracks of a file
)

// sequence is what packets of one writer have in common.
type sequence struct {
	names, categories, keys, values interns
	track                           uint64 // of events that name none
}

// interns are strings by their numbers, which mostly count from 1.
type interns struct {
	dense []string
	rest  map[uint64]string
}

func (n *interns) get(id uint64) string {
	if id < uint64(len(n.dense)) {
		return n.dense[id]
	}
	return n.rest[id]
}

func (n *interns) set(id uint64, s string) {
	if len(n.dense) == 0 {
		n.dense = append(n.dense, "")
	}
	switch {
	case id < uint64(len(n.dense)):
		n.dense[id] = s
	case id == uint64(len(n.dense)):
		n.dense = append(n.dense, s)
	default:
		if n.rest == nil {
			n.rest = map[uint64]string{}
		}
		n.rest[id] = s
	}
}

// lane is a track as Chrome traces number them.
type lane struct {
	pid, tid int64
	parent   uint64
	name     string
	unit     string
	own      bool    // pid and tid are its own
	open     []Event // slices that have begun, each inside the one before
}

// protoReader turns packets into the events of a Chrome trace. The line of an event
// is the number of its packet.
type protoReader struct {
	*parser
	in        *bufio.Reader
	packet    int
	offset    int64
	next      int64 // offset behind the packet
	buf       []byte
	sequences map[uint64]*sequence
	lanes     map[uint64]*lane
	kept      int // strings and tracks
	opened    int // slices that have begun
}

func (p *parser) proto(src *bufio.Reader) (*Info, error) {
	r := &protoReader{parser: p, in: src, sequences: map[uint64]*sequence{}, lanes: map[uint64]*lane{}}
	var err error
	for err == nil {
		var b []byte
		if b, err = r.take(); err == nil {
			err = r.message(b)
		}
	}
	if err == io.EOF {
		err = r.unended()
	}
	if err != nil {
		return p.info, err
	}
	if p.base != math.MinInt64 {
		p.info.Base = p.base
	}
	return p.info, nil
}

func (r *protoReader) fail(format string, args ...any) error {
	return &PacketError{r.packet, r.offset, fmt.Sprintf(format, args...)}
}

// take reads the next packet.
func (r *protoReader) take() ([]byte, error) {
	r.packet++
	r.offset = r.next
	tag, err := binary.ReadUvarint(counted{r})
	switch {
	case err == io.EOF:
		return nil, io.EOF
	case err != nil:
		return nil, r.broken(err)
	case tag != wire.TracePacket<<3|wire.Bytes:
		return nil,
			r.fail("no packet begins here; this is no trace of Perfetto's format, or one that was changed")
	}
	size, err := binary.ReadUvarint(counted{r})
	if err != nil {
		return nil, r.broken(err)
	}
	if size > maxPacket {
		return nil, &trace.LimitError{Line: r.packet, Problem: fmt.Sprintf("a packet of more than %d MiB",
			maxPacket>>20)}
	}
	if int(size) <= r.in.Size() {
		b, err := r.in.Peek(int(size))
		if err != nil {
			return nil, r.broken(err)
		}
		_, _ = r.in.Discard(int(size)) // the bytes stay until the next read
		r.next += int64(size)
		return b, nil
	}
	r.buf = slices.Grow(r.buf[:0], int(min(size, 1<<20)))
	var whole bytes.Buffer
	whole.Write(r.buf)
	if _, err := io.CopyN(&whole, r.in, int64(size)); err != nil {
		return nil, r.broken(err)
	}
	r.next += int64(size)
	return whole.Bytes(), nil
}

func (r *protoReader) broken(err error) error {
	if err == io.EOF || err == io.ErrUnexpectedEOF {
		return r.fail("the file ends inside this packet; copy it again")
	}
	if strings.Contains(err.Error(), "overflow") {
		return r.fail("a length that is no number")
	}
	return err
}

// counted counts the bytes of a packet's tag and length.
type counted struct{ *protoReader }

// ReadByte reads one.
func (c counted) ReadByte() (byte, error) {
	b, err := c.in.ReadByte()
	if err == nil {
		c.next++
	}
	return b, err
}

// message reads one packet.
func (r *protoReader) message(b []byte) error {
	var event, data, descriptor, chrome, defaults []byte
	var at, id, flags, clock uint64
	for rest := b; len(rest) > 0; {
		f, next, ok := wire.Next(rest)
		if !ok {
			return r.fail("it is damaged")
		}
		rest = next
		switch f.Number {
		case wire.PacketTimestamp:
			at = f.Value
		case wire.PacketSequence:
			id = f.Value
		case wire.PacketFlags:
			flags = f.Value
		case wire.PacketClock:
			clock = f.Value
		case wire.PacketEvent:
			event = f.Bytes
		case wire.PacketInterned:
			data = f.Bytes
		case wire.PacketDescriptor:
			descriptor = f.Bytes
		case wire.PacketDefaults:
			defaults = f.Bytes
		case wire.PacketChromeEvents:
			chrome = f.Bytes
		case wire.PacketCompressed, wire.PacketZstd:
			return r.fail("packets compressed inside the file are not read; decompress them with " +
				"Perfetto's traceconv")
		}
	}
	s := r.sequences[id]
	if s == nil || flags&wire.StateCleared != 0 {
		s = &sequence{}
		if len(r.sequences) < maxIDs {
			r.sequences[id] = s
		}
	}
	err := r.interned(s, data)
	if err == nil {
		err = r.defaults(s, defaults)
	}
	if err == nil && chrome != nil {
		err = r.bundle(chrome)
	}
	if err == nil && descriptor != nil {
		err = r.descriptor(descriptor)
	}
	if err == nil && event != nil {
		if r.head {
			return errHead
		}
		if clock >= 64 {
			return r.fail("times of clock %d, which the program defined itself, are not read", clock)
		}
		err = r.trackEvent(s, at, event)
	}
	return err
}

// fields calls each for every field of a message.
func (r *protoReader) fields(b []byte, each func(f wire.Field) error) error {
	for len(b) > 0 {
		f, rest, ok := wire.Next(b)
		if !ok {
			return r.fail("it is damaged")
		}
		if err := each(f); err != nil {
			return err
		}
		b = rest
	}
	return nil
}

// str is a string of the file.
func (r *protoReader) str(b []byte) (string, error) {
	if len(b) > maxName {
		return "", r.fail("a name of %d bytes, beginning %s; up to %d are read", len(b),
			termtext.Quote(string(b[:maxName]), 40), maxName)
	}
	return r.intern(b), nil
}

func (r *protoReader) interned(s *sequence, data []byte) error {
	return r.fields(data, func(f wire.Field) error {
		var to *interns
		switch f.Number {
		case wire.InternedCategories:
			to = &s.categories
		case wire.InternedNames:
			to = &s.names
		case wire.InternedKeys:
			to = &s.keys
		case wire.InternedValues:
			to = &s.values
		default:
			return nil
		}
		if r.kept++; r.kept > maxIDs {
			return &trace.LimitError{Line: r.packet,
				Problem: fmt.Sprintf("more than %d interned strings and tracks", maxIDs)}
		}
		var id uint64
		var text string
		err := r.fields(f.Bytes, func(f wire.Field) (err error) {
			switch f.Number {
			case wire.EntryID:
				id = f.Value
			case wire.EntryText:
				text, err = r.str(f.Bytes)
			}
			return err
		})
		to.set(id, text)
		return err
	})
}

func (r *protoReader) defaults(s *sequence, b []byte) error {
	return r.fields(b, func(f wire.Field) error {
		switch f.Number {
		case wire.PacketClock:
			if f.Value >= 64 {
				return r.fail("times of clock %d, which the program defined itself, are not read", f.Value)
			}
		case wire.PacketEvent: // TrackEventDefaults
			return r.fields(f.Bytes, func(f wire.Field) error {
				if f.Number == wire.EventTrack {
					s.track = f.Value
				}
				return nil
			})
		}
		return nil
	})
}

// bundle reads what our traces say of themselves.
func (r *protoReader) bundle(b []byte) error {
	return r.fields(b, func(f wire.Field) error {
		if f.Number != wire.BundleMetadata {
			return nil
		}
		var name, text []byte
		if err := r.fields(f.Bytes, func(f wire.Field) error {
			switch f.Number {
			case wire.MetadataName:
				name = f.Bytes
			case wire.MetadataJSON:
				text = f.Bytes
			}
			return nil
		}); err != nil || string(name) != "simccl" {
			return err
		}
		r.lex = newLexer(bytes.NewReader(text), 0)
		if err := r.otherData(); err != nil {
			return r.fail("what the trace says of itself is no JSON: %v", err)
		}
		return nil
	})
}

// lane returns a track, which may never have been described.
func (r *protoReader) lane(uuid uint64) *lane {
	l := r.lanes[uuid]
	if l == nil {
		l = &lane{unit: "value"}
		if len(r.lanes) < maxIDs {
			r.lanes[uuid] = l
		}
	}
	if !l.own { // it lies in the process above it
		l.own, l.tid = true, -1-int64(uuid&math.MaxInt32)
		up := r.lanes[l.parent]
		for range maxDepth {
			if up == nil || up.own {
				break
			}
			up = r.lanes[up.parent]
		}
		if up != nil && up.own {
			l.pid = up.pid
		}
	}
	return l
}

// trackEvent gives an event as a Chrome trace has it.
func (r *protoReader) trackEvent(s *sequence, at uint64, b []byte) error {
	e := &r.event
	*e = Event{Line: r.packet, HasTS: true, Args: e.Args[:0]}
	uuid, kind := s.track, uint64(0)
	var value trace.Arg
	err := r.fields(b, func(f wire.Field) (err error) {
		switch f.Number {
		case wire.EventType:
			kind = f.Value
		case wire.EventTrack:
			uuid = f.Value
		case wire.EventNameID:
			e.Name = s.names.get(f.Value)
		case wire.EventName:
			e.Name, err = r.str(f.Bytes)
		case wire.EventCategoryIDs:
			e.Cat = s.categories.get(f.Value)
		case wire.EventCategories:
			e.Cat, err = r.str(f.Bytes)
		case wire.EventAnnotations:
			err = r.annotation(s, f.Bytes)
		case wire.EventInt:
			value = trace.Int("", int64(f.Value))
		case wire.EventDouble:
			value = trace.Num("", math.Float64frombits(f.Value))
		case wire.EventLegacy:
			err = r.legacy(f.Bytes)
		}
		return err
	})
	if err != nil {
		return err
	}
	l := r.lane(uuid)
	e.PID, e.TID = l.pid, l.tid
	switch kind {
	case wire.TypeBegin:
		e.Phase = 'B'
	case wire.TypeEnd:
		e.Phase = 'E'
	case wire.TypeInstant:
		e.Phase = 'i'
	case wire.TypeCounter:
		e.Phase, e.Name, e.TID = 'C', l.name, 0
		value.Key = l.unit
		if value.Kind == trace.FloatArg && (math.IsNaN(value.Num) || math.IsInf(value.Num, 0)) {
			value = trace.Str(l.unit, "null")
		}
		e.Args = append(e.Args[:0], value)
	}
	if at > math.MaxInt64 {
		e.BadTS, e.HasTS = strconv.FormatUint(at, 10), false
	}
	r.whole, r.pico = int64(at/1000), int64(at%1000)*1000
	switch e.Phase {
	case 'B':
		return r.begin(l)
	case 'E':
		return r.end(l)
	}
	return r.pass()
}

// begin keeps a slice until its end comes.
func (r *protoReader) begin(l *lane) error {
	r.settle()
	n := len(l.open)
	if n == cap(l.open) {
		l.open = append(l.open, Event{})
	}
	l.open = l.open[:n+1]
	e := &l.open[n]
	args := append(e.Args[:0], r.event.Args...) // those of a slice that ended are used again
	*e = r.event
	e.Args = args
	if r.opened++; r.opened > maxIDs {
		return &trace.LimitError{Line: r.packet, Problem: fmt.Sprintf("more than %d slices open at a time",
			maxIDs)}
	}
	return nil
}

// end gives the slice that ends now, as one event; an end without a begin as it is.
func (r *protoReader) end(l *lane) error {
	n := len(l.open)
	if n == 0 {
		return r.pass()
	}
	r.settle()
	at := &r.event
	e := l.open[n-1]
	l.open = l.open[:n-1]
	r.opened--
	if at.BadTS != "" || e.BadTS != "" || at.TS < e.TS {
		e.BadTS = cmp.Or(e.BadTS, at.BadTS, "it ends before it begins")
	} else {
		e.Phase, e.Dur, e.HasDur = 'X', at.TS-e.TS, true
	}
	e.Args = append(e.Args, at.Args...)
	r.info.Events++
	return r.each(&e)
}

// unended gives the begins that have no end.
func (r *protoReader) unended() error {
	for _, uuid := range slices.Sorted(maps.Keys(r.lanes)) {
		for i := range r.lanes[uuid].open {
			r.info.Events++
			if err := r.each(&r.lanes[uuid].open[i]); err != nil {
				return err
			}
		}
	}
	return nil
}

func (r *protoReader) legacy(b []byte) error {
	e := &r.event
	return r.fields(b, func(f wire.Field) error {
		switch f.Number {
		case wire.LegacyPhase:
			if f.Value > ' ' && f.Value < 0x7f {
				e.Phase = byte(f.Value)
			}
		case wire.LegacyID, wire.LegacyLocalID, wire.LegacyGlobalID:
			e.ID = "0x" + strconv.FormatUint(f.Value, 16)
		case wire.LegacyEnclosing:
			if f.Value != 0 {
				e.Bind = "e"
			}
		}
		return nil
	})
}

// annotation reads an argument; values that are nested are left out.
func (r *protoReader) annotation(s *sequence, b []byte) error {
	e := &r.event
	if len(e.Args) == maxArgs {
		return &trace.LimitError{Line: e.Line, Problem: fmt.Sprintf("an event of more than %d arguments",
			maxArgs)}
	}
	var a trace.Arg
	known := false
	err := r.fields(b, func(f wire.Field) (err error) {
		key := a.Key
		switch f.Number {
		case wire.AnnotationNameID:
			a.Key = s.keys.get(f.Value)
			return nil
		case wire.AnnotationName:
			a.Key, err = r.str(f.Bytes)
			return err
		case wire.AnnotationBool:
			a = trace.Str(key, strconv.FormatBool(f.Value != 0))
		case wire.AnnotationUint, wire.AnnotationPointer, wire.AnnotationInt:
			a = trace.Int(key, int64(f.Value))
		case wire.AnnotationDouble:
			v := math.Float64frombits(f.Value)
			if a = trace.Num(key, v); math.IsNaN(v) || math.IsInf(v, 0) {
				a = trace.Str(key, "null")
			}
		case wire.AnnotationText, wire.AnnotationJSON:
			a = trace.Str(key, "")
			a.Str, err = r.str(f.Bytes)
		case wire.AnnotationTextID:
			a = trace.Str(key, s.values.get(f.Value))
		default:
			return nil
		}
		known = true
		return err
	})
	if known {
		e.Args = append(e.Args, a)
	}
	return err
}
