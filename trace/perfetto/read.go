package perfetto

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/simccl/simccl/internal/protowire"
	"github.com/simccl/simccl/internal/termtext"
	"github.com/simccl/simccl/trace"
	"github.com/simccl/simccl/trace/internal/pack"
)

// Limits of a file.
const (
	maxPacket = 64 << 20
	maxIDs    = 1 << 22  // interned strings and tracks of a file
	maxName   = 64 << 10 // bytes of a name, a category, a key
	maxArgs   = 4096     // of an event
	maxDepth  = 64       // nesting of tracks
)

// sequence is the state that packets of one writer share.
type sequence struct {
	names, categories, keys, values interns
	track                           uint64 // for events that name no track
}

// interns maps the numbers of interned strings, which mostly count from 1, to the strings.
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

// lane is a track with the numbers of a Chrome trace.
type lane struct {
	pid, tid int64
	parent   uint64
	name     string
	unit     string
	own      bool    // it has its own pid and tid
	open     []Event // open slices, each inside the one before
}

// reader converts packets to the events of a Chrome trace.
type reader struct {
	to        Sink
	head      bool // only the head is read
	event     Event
	ns        int64 // the event's time by the file's clock
	in        *bufio.Reader
	packet    int
	offset    int64
	next      int64 // offset after the packet
	buf       []byte
	names     pack.Strings
	sequences map[uint64]*sequence
	lanes     map[uint64]*lane
	kept      int // number of strings and tracks stored
	opened    int // number of open slices
}

// errHead ends reading after the head.
var errHead = errors.New("the events begin")

// Read passes the content of a decompressed file to a Sink: slices when they end, those without an end last.
// With head it stops at the first event. Errors: *PacketError, *trace.LimitError, those of the Sink and of
// reading.
func Read(in *bufio.Reader, head bool, to Sink) error {
	r := &reader{to: to, head: head, in: in, sequences: map[uint64]*sequence{}, lanes: map[uint64]*lane{}}
	for {
		b, err := r.take()
		if err == nil {
			err = r.message(b)
		}
		switch err {
		case nil:
		case io.EOF:
			return r.unended()
		case errHead:
			return nil
		default:
			return err
		}
	}
}

// settle sets the event's time.
func (r *reader) settle() {
	if e := &r.event; e.HasTS {
		e.TS, e.BadTS = r.to.Time(r.ns)
	}
}

// pass passes the event to the Sink.
func (r *reader) pass() error {
	r.settle()
	return r.to.Event(&r.event)
}

func (r *reader) fail(format string, args ...any) error {
	return &PacketError{r.packet, r.offset, fmt.Sprintf(format, args...)}
}

// take reads the next packet.
func (r *reader) take() ([]byte, error) {
	r.packet++
	r.offset = r.next
	tag, err := binary.ReadUvarint(counted{r})
	switch {
	case err == io.EOF:
		return nil, io.EOF
	case err != nil:
		return nil, r.broken(err)
	case tag != tracePacket<<3|protowire.Bytes:
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
		_, _ = r.in.Discard(int(size)) // the bytes stay valid until the next read
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

func (r *reader) broken(err error) error {
	if err == io.EOF || err == io.ErrUnexpectedEOF {
		return r.fail("the file ends inside this packet; copy it again")
	}
	if strings.Contains(err.Error(), "overflow") {
		return r.fail("a length that is no number")
	}
	return err
}

// counted counts the bytes of a packet's tag and length.
type counted struct{ *reader }

func (c counted) ReadByte() (byte, error) {
	b, err := c.in.ReadByte()
	if err == nil {
		c.next++
	}
	return b, err
}

func (r *reader) message(b []byte) error {
	var event, data, descriptor, chrome, defaults []byte
	var at, id, flags, clock uint64
	for rest := b; len(rest) > 0; {
		f, next, err := protowire.Next(rest)
		if err != nil {
			return r.fail("it is damaged")
		}
		rest = next
		switch f.Number {
		case packetTimestamp:
			at = f.Value
		case packetSequence:
			id = f.Value
		case packetFlags:
			flags = f.Value
		case packetClock:
			clock = f.Value
		case packetEvent:
			event = f.Bytes
		case packetInterned:
			data = f.Bytes
		case packetDescriptor:
			descriptor = f.Bytes
		case packetDefaults:
			defaults = f.Bytes
		case packetChromeEvents:
			chrome = f.Bytes
		case packetCompressed, packetZstd:
			return r.fail("packets compressed inside the file are not read; decompress them with " +
				"Perfetto's traceconv")
		}
	}
	s := r.sequences[id]
	if s == nil || flags&stateCleared != 0 {
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
func (r *reader) fields(b []byte, each func(f protowire.Field) error) error {
	for len(b) > 0 {
		f, rest, err := protowire.Next(b)
		if err != nil {
			return r.fail("it is damaged")
		}
		if err := each(f); err != nil {
			return err
		}
		b = rest
	}
	return nil
}

// str interns a string of the file, of at most maxName bytes.
func (r *reader) str(b []byte) (string, error) {
	if len(b) > maxName {
		return "", r.fail("a name of %d bytes, beginning %s; up to %d are read", len(b),
			termtext.Quote(string(b[:maxName]), 40), maxName)
	}
	return r.names.Intern(b), nil
}

func (r *reader) interned(s *sequence, data []byte) error {
	return r.fields(data, func(f protowire.Field) error {
		var to *interns
		switch f.Number {
		case internedCategories:
			to = &s.categories
		case internedNames:
			to = &s.names
		case internedKeys:
			to = &s.keys
		case internedValues:
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
		err := r.fields(f.Bytes, func(f protowire.Field) (err error) {
			switch f.Number {
			case entryID:
				id = f.Value
			case entryText:
				text, err = r.str(f.Bytes)
			}
			return err
		})
		to.set(id, text)
		return err
	})
}

func (r *reader) defaults(s *sequence, b []byte) error {
	return r.fields(b, func(f protowire.Field) error {
		switch f.Number {
		case packetClock:
			if f.Value >= 64 {
				return r.fail("times of clock %d, which the program defined itself, are not read", f.Value)
			}
		case packetEvent: // TrackEventDefaults
			return r.fields(f.Bytes, func(f protowire.Field) error {
				if f.Number == eventTrack {
					s.track = f.Value
				}
				return nil
			})
		}
		return nil
	})
}

// bundle reads the self-description of our traces.
func (r *reader) bundle(b []byte) error {
	return r.fields(b, func(f protowire.Field) error {
		if f.Number != bundleMetadata {
			return nil
		}
		var name, text []byte
		if err := r.fields(f.Bytes, func(f protowire.Field) error {
			switch f.Number {
			case metadataName:
				name = f.Bytes
			case metadataJSON:
				text = f.Bytes
			}
			return nil
		}); err != nil || string(name) != "simccl" {
			return err
		}
		if err := r.to.Meta(text); err != nil {
			return r.fail("what the trace says of itself is no JSON: %v", err)
		}
		return nil
	})
}

// lane returns a track, which may never have been described.
func (r *reader) lane(uuid uint64) *lane {
	l := r.lanes[uuid]
	if l == nil {
		l = &lane{unit: "value"}
		if len(r.lanes) < maxIDs {
			r.lanes[uuid] = l
		}
	}
	if !l.own { // it belongs to the process above it
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

// trackEvent converts a track event to the form of a Chrome trace.
func (r *reader) trackEvent(s *sequence, at uint64, b []byte) error {
	e := &r.event
	*e = Event{Packet: r.packet, HasTS: true, Args: e.Args[:0]}
	uuid, kind := s.track, uint64(0)
	var value trace.Arg
	err := r.fields(b, func(f protowire.Field) (err error) {
		switch f.Number {
		case eventType:
			kind = f.Value
		case eventTrack:
			uuid = f.Value
		case eventNameID:
			e.Name = s.names.get(f.Value)
		case eventName:
			e.Name, err = r.str(f.Bytes)
		case eventCategoryIDs:
			e.Cat = s.categories.get(f.Value)
		case eventCategories:
			e.Cat, err = r.str(f.Bytes)
		case eventAnnotations:
			err = r.annotation(s, f.Bytes)
		case eventInt:
			value = trace.Int("", int64(f.Value))
		case eventDouble:
			value = trace.Num("", math.Float64frombits(f.Value))
		case eventLegacy:
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
	case typeBegin:
		e.Phase = 'B'
	case typeEnd:
		e.Phase = 'E'
	case typeInstant:
		e.Phase = 'i'
	case typeCounter:
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
	r.ns = int64(at)
	switch e.Phase {
	case 'B':
		return r.begin(l)
	case 'E':
		return r.end(l)
	}
	return r.pass()
}

// begin stores a slice until its end comes.
func (r *reader) begin(l *lane) error {
	r.settle()
	n := len(l.open)
	if n == cap(l.open) {
		l.open = append(l.open, Event{})
	}
	l.open = l.open[:n+1]
	e := &l.open[n]
	args := append(e.Args[:0], r.event.Args...) // reuses the arguments of a slice that has ended
	*e = r.event
	e.Args = args
	if r.opened++; r.opened > maxIDs {
		return &trace.LimitError{Line: r.packet, Problem: fmt.Sprintf("more than %d slices open at a time",
			maxIDs)}
	}
	return nil
}

// end passes the slice that ends now, as one event; an end without a begin is passed unchanged.
func (r *reader) end(l *lane) error {
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
	return r.to.Event(&e)
}

// unended passes the begins that have no end.
func (r *reader) unended() error {
	for _, uuid := range slices.Sorted(maps.Keys(r.lanes)) {
		for i := range r.lanes[uuid].open {
			if err := r.to.Event(&r.lanes[uuid].open[i]); err != nil {
				return err
			}
		}
	}
	return nil
}

func (r *reader) legacy(b []byte) error {
	e := &r.event
	return r.fields(b, func(f protowire.Field) error {
		switch f.Number {
		case legacyPhase:
			if f.Value > ' ' && f.Value < 0x7f {
				e.Phase = byte(f.Value)
			}
		case legacyID, legacyLocalID, legacyGlobalID:
			e.ID = "0x" + strconv.FormatUint(f.Value, 16)
		case legacyEnclosing:
			if f.Value != 0 {
				e.Bind = "e"
			}
		}
		return nil
	})
}

// annotation reads an argument; nested values are skipped.
func (r *reader) annotation(s *sequence, b []byte) error {
	e := &r.event
	if len(e.Args) == maxArgs {
		return &trace.LimitError{Line: e.Packet, Problem: fmt.Sprintf("an event of more than %d arguments",
			maxArgs)}
	}
	var a trace.Arg
	known := false
	err := r.fields(b, func(f protowire.Field) (err error) {
		key := a.Key
		switch f.Number {
		case annotationNameID:
			a.Key = s.keys.get(f.Value)
			return nil
		case annotationName:
			a.Key, err = r.str(f.Bytes)
			return err
		case annotationBool:
			a = trace.Str(key, strconv.FormatBool(f.Value != 0))
		case annotationUint, annotationPointer, annotationInt:
			a = trace.Int(key, int64(f.Value))
		case annotationDouble:
			v := math.Float64frombits(f.Value)
			if a = trace.Num(key, v); math.IsNaN(v) || math.IsInf(v, 0) {
				a = trace.Str(key, "null")
			}
		case annotationText, annotationJSON:
			a = trace.Str(key, "")
			a.Str, err = r.str(f.Bytes)
		case annotationTextID:
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
