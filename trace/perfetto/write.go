// Package perfetto writes and reads traces in Perfetto's own format: protobuf packets
// (protos/perfetto/trace), limited to track events, their names and tracks.
//
// In: events as trace/internal/pack stores them, or the bytes of a file. Out: packets, or events with the
// processes and threads of a Chrome trace. It must not know files and their compression, the order of events,
// or Chrome's JSON.
package perfetto

import (
	"strings"

	"github.com/simccl/simccl/internal/protowire"
	"github.com/simccl/simccl/trace"
	"github.com/simccl/simccl/trace/internal/pack"
)

// In Perfetto's own format a slice is a begin and an end in the order of time; the processes and threads of a
// Chrome trace are tracks; each counter is a track below its process; and an arrow's ends are legacy events
// of phase s and f, which bind to the open slice of their track (track_event_event_importer.h,
// ParseFlowEventV1). Native flows start at the begins of slices, which does not fit: a receive often begins
// to wait before its send begins. Repeating strings are interned once, at the front, so that all that follows
// can be encoded in parallel.

// UUIDs of tracks; a thread's UUID is its track's number, counted from 1.
const (
	processUUID = 1 << 32
	counterUUID = 1 << 33
)

// counterKey identifies a counter's track.
type counterKey struct {
	process   int64
	name, arg string
}

// Writer encodes a trace's events, stored in tables until the file is written.
type Writer struct {
	tables   *pack.Tables
	counters map[counterKey]uint64
	order    []counterKey
	shapes   []shape // parallel to tables.Shapes, made with the head
}

// shape is the common part of events of one shape, as protobuf fields.
type shape struct {
	event []byte   // category and name
	keys  [][]byte // names of annotations
}

// NewWriter returns a Writer of events that tables store.
func NewWriter(tables *pack.Tables) *Writer {
	return &Writer{tables: tables, counters: map[counterKey]uint64{}}
}

// Named reports whether a file name selects Perfetto's format, compressed or not.
func Named(path string) bool {
	return strings.HasSuffix(strings.TrimSuffix(strings.TrimSuffix(path, ".gz"), ".zst"), ".pftrace")
}

// Counter returns the number of a counter's track, identified by process and the names of the counter and of
// its argument.
func (w *Writer) Counter(process int64, name, arg string) uint64 {
	k := counterKey{process, name, arg}
	id, ok := w.counters[k]
	if !ok {
		id = uint64(len(w.order))
		w.counters[k] = id
		w.order = append(w.order, k)
	}
	return id
}

// Head returns the packets that precede the events: interned strings, the trace's self-description (JSON),
// and the tracks in order, by their ids.
func (w *Writer) Head(order []int32, track func(int32) *trace.Track, other []byte) []byte {
	b := protowire.AppendBytes(nil, tracePacket, w.intern())
	meta := protowire.AppendBytes(protowire.AppendBytes(nil, metadataName, "simccl"), metadataJSON, other)
	b = protowire.AppendBytes(b, tracePacket, protowire.AppendBytes(nil, packetChromeEvents,
		protowire.AppendBytes(nil, bundleMetadata, meta)))
	b = appendDescriptor(b,
		protowire.AppendNumber(protowire.AppendNumber(protowire.AppendNumber(nil, trackUUID, 0),
			rootProcesses, 1), rootThreads, 1))

	processes := map[int64]uint64{}
	for _, i := range order {
		t := track(i)
		parent, ok := processes[t.Process]
		if !ok {
			parent = processUUID + uint64(len(processes))
			processes[t.Process] = parent
			p := protowire.AppendNumber(nil, processPID, uint64(t.Process))
			if t.ProcessName != "" {
				p = protowire.AppendBytes(p, processName, valid(t.ProcessName))
			}
			if t.Labels != "" {
				p = protowire.AppendBytes(p, processLabels, valid(t.Labels))
			}
			b = appendDescriptor(b,
				protowire.AppendNumber(protowire.AppendBytes(protowire.AppendNumber(nil, trackUUID, parent),
					trackProcess, p), trackRank, uint64(t.ProcessSort)))
		}
		lane := protowire.AppendNumber(protowire.AppendNumber(nil, threadPID, uint64(t.Process)), threadTID,
			uint64(t.Thread))
		if t.ThreadName != "" {
			lane = protowire.AppendBytes(lane, threadName, valid(t.ThreadName))
		}
		d := protowire.AppendNumber(protowire.AppendNumber(nil, trackUUID, uint64(i)+1), trackParent, parent)
		b = appendDescriptor(b, protowire.AppendNumber(protowire.AppendBytes(d, trackThread, lane), trackRank,
			uint64(t.ThreadSort)))
	}
	for i, k := range w.order {
		d := protowire.AppendNumber(protowire.AppendNumber(nil, trackUUID, counterUUID+uint64(i)),
			trackParent, processes[k.process])
		b = appendDescriptor(b, protowire.AppendBytes(protowire.AppendBytes(d, trackName, valid(k.name)),
			trackCounter, protowire.AppendBytes(nil, counterUnit, valid(k.arg))))
	}
	return b
}

func appendDescriptor(b, d []byte) []byte {
	return protowire.AppendBytes(b, tracePacket, protowire.AppendBytes(nil, packetDescriptor, d))
}

// valid returns s as valid UTF-8, which protobuf strings require; invalid bytes become U+FFFD.
func valid(s string) string { return strings.ToValidUTF8(s, "\ufffd") }

// intern returns the packet of interned strings, and encodes each shape with their numbers.
func (w *Writer) intern() []byte {
	var data []byte
	index := func(field int) func(string) uint64 {
		ids := map[string]uint64{}
		return func(s string) uint64 {
			id, ok := ids[s]
			if !ok {
				id = uint64(len(ids) + 1)
				ids[s] = id
				data = protowire.AppendBytes(data, field,
					protowire.AppendBytes(protowire.AppendNumber(nil, entryID, id), entryText, valid(s)))
			}
			return id
		}
	}
	category, name, key := index(internedCategories), index(internedNames), index(internedKeys)
	w.shapes = make([]shape, len(w.tables.Shapes))
	for i := range w.tables.Shapes[1:] {
		s, p := &w.tables.Shapes[i+1], &w.shapes[i+1]
		if s.Cat != "" {
			p.event = protowire.AppendNumber(p.event, eventCategoryIDs, category(s.Cat))
		}
		p.event = protowire.AppendNumber(p.event, eventNameID, name(s.Name))
		for j := range s.Args {
			p.keys = append(p.keys, protowire.AppendNumber(nil, annotationNameID, key(s.Args[j].Key)))
		}
	}
	for i := range w.tables.Words {
		data = protowire.AppendBytes(data, internedValues,
			protowire.AppendBytes(protowire.AppendNumber(nil, entryID, uint64(i+1)), entryText,
				valid(w.tables.Words[i].S)))
	}
	packet := protowire.AppendNumber(protowire.AppendNumber(nil, packetSequence, 1), packetFlags,
		stateCleared)
	return protowire.AppendBytes(packet, packetInterned, data)
}

// Encoder returns an encoder of this Writer's events.
func (w *Writer) Encoder() *Encoder { return &Encoder{w: w} }

// Encoder encodes events as packets; each goroutine has its own.
type Encoder struct {
	w                   *Writer
	event, note, packet []byte
}

// Append appends the packet of an event. The Writer's Head must have been called before.
func (p *Encoder) Append(b []byte, e *pack.Packed) []byte {
	t := p.event[:0]
	switch {
	case e.Kind == pack.SliceEnd:
		t = protowire.AppendNumber(protowire.AppendNumber(t, eventType, typeEnd), eventTrack, uint64(e.Track)+
			1)
	case e.Kind == pack.CounterValue:
		t = protowire.AppendNumber(protowire.AppendNumber(t, eventType, typeCounter), eventTrack, counterUUID+
			e.ID)
		p.w.tables.Values(e, func(a *pack.ShapeArg, v *pack.Value) {
			if a.Kind == trace.IntArg {
				t = protowire.AppendNumber(t, eventInt, uint64(v.Num))
			} else {
				t = protowire.AppendDouble(t, eventDouble, v.Float)
			}
		})
	default:
		t = p.named(t, e)
	}
	p.event = t
	k := protowire.AppendNumber(p.packet[:0], packetTimestamp, uint64(e.TS))
	k = protowire.AppendNumber(protowire.AppendNumber(k, packetSequence, 1), packetFlags, stateNeeded)
	k = protowire.AppendBytes(k, packetEvent, t)
	p.packet = k
	return protowire.AppendBytes(b, tracePacket, k)
}

// named appends the fields of an event with category, name and annotations.
func (p *Encoder) named(t []byte, e *pack.Packed) []byte {
	switch trace.Phase(e.Kind) {
	case trace.Slice:
		t = protowire.AppendNumber(t, eventType, typeBegin)
	case trace.Instant:
		t = protowire.AppendNumber(t, eventType, typeInstant)
	case trace.FlowStart:
		t = protowire.AppendBytes(t, eventLegacy,
			protowire.AppendNumber(protowire.AppendNumber(nil, legacyPhase, 's'), legacyID, e.ID))
	case trace.FlowEnd:
		t = protowire.AppendBytes(t, eventLegacy,
			protowire.AppendNumber(protowire.AppendNumber(protowire.AppendNumber(nil, legacyPhase, 'f'),
				legacyID, e.ID), legacyEnclosing, 1))
	}
	t = protowire.AppendNumber(t, eventTrack, uint64(e.Track)+1)
	var keys [][]byte
	if e.Number == 0 {
		if e.Shape.Cat != "" {
			t = protowire.AppendBytes(t, eventCategories, valid(e.Shape.Cat))
		}
		t = protowire.AppendBytes(t, eventName, valid(e.Shape.Name))
	} else {
		s := &p.w.shapes[e.Number]
		t, keys = append(t, s.event...), s.keys
	}
	i := 0
	p.w.tables.Values(e, func(a *pack.ShapeArg, v *pack.Value) {
		n := p.note[:0]
		if keys != nil {
			n = append(n, keys[i]...)
		} else {
			n = protowire.AppendBytes(n, annotationName, valid(a.Key))
		}
		i++
		switch {
		case a.Kind == trace.IntArg:
			n = protowire.AppendNumber(n, annotationInt, uint64(v.Num))
		case a.Kind == trace.FloatArg:
			n = protowire.AppendDouble(n, annotationDouble, v.Float)
		case v.Number == 0:
			n = protowire.AppendBytes(n, annotationText, valid(v.Word.S))
		default:
			n = protowire.AppendNumber(n, annotationTextID, v.Number)
		}
		p.note = n
		t = protowire.AppendBytes(t, eventAnnotations, n)
	})
	return t
}
