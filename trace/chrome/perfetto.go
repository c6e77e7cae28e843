package chrome

import (
	"errors"
	"math"
	"strings"

	"github.com/simccl/simccl/trace"
	"github.com/simccl/simccl/trace/chrome/internal/pack"
	"github.com/simccl/simccl/trace/chrome/internal/wire"
)

// In Perfetto's own format a slice is a begin and an end in the order of time, the
// processes and threads of a Chrome trace are tracks of such, each counter is a
// track below its process, and an arrow's ends are legacy events of phase s and f,
// which bind to the slice that is open on their track (track_event_event_importer.h,
// ParseFlowEventV1): a native flow runs from the begins of slices, and a receive
// often begins to wait before its send begins. What events repeat is interned once,
// at the front, so that all that follows can be made ready in parallel.

// UUIDs of tracks: of threads their number, counted from 1,.
const (
	processUUID = 1 << 32
	counterUUID = 1 << 33
)

// protoCounterKey is a counter's track.
type protoCounterKey struct {
	process   int64
	name, arg string
}

// protobuf is what a Writer knows beyond events where it writes Perfetto's format.
type protobuf struct {
	counters map[protoCounterKey]uint64
	order    []protoCounterKey
	shapes   []protoShape // as tables.shapes, made when the file is written
}

type protoShape struct {
	event []byte   // category and name
	keys  [][]byte // names of annotations
}

// CheckPath says why a trace with those options cannot be written under a name.
func CheckPath(path string, opt Options) error {
	if opt.NCCLStyle && isProto(path) {
		return errors.New("the layout of NCCL's profiler plugin is one of Chrome's JSON; write to .json or " +
			".json.gz, or leave the style out")
	}
	return nil
}

// isProto reports whether a name is one of Perfetto's format.
func isProto(path string) bool {
	return strings.HasSuffix(strings.TrimSuffix(strings.TrimSuffix(path, ".gz"), ".zst"), ".pftrace")
}

// putProto keeps an event for Perfetto's format.
func (w *Writer) putProto(e *trace.Event, from, to int64) {
	switch e.Phase {
	case trace.Slice:
		w.put(e, from, to)
		off := len(w.cur.Data)
		w.cur.Data = append(w.cur.Data, pack.SliceEnd)
		w.cur.Add(pack.Key{TS: to, Dur: math.MaxInt64}, e.Track, off) // before what begins then
	case trace.Counter:
		one := *e
		for i := range e.Args {
			if e.Args[i].Kind == trace.StringArg {
				continue
			}
			one.Args = e.Args[i : i+1]
			k := protoCounterKey{w.tracks[e.Track].Process, e.Name, e.Args[i].Key}
			id, ok := w.proto.counters[k]
			if !ok {
				id = uint64(len(w.proto.order))
				w.proto.counters[k] = id
				w.proto.order = append(w.proto.order, k)
			}
			off := len(w.cur.Data)
			w.cur.Data = w.tables.Pack(w.cur.Data, pack.CounterValue, id, &one)
			w.cur.Add(pack.Key{TS: from}, e.Track, off)
			w.events++
		}
	default:
		w.put(e, from, to)
	}
}

// protoHead is all that precedes the events.
func (w *Writer) protoHead() []byte {
	b := wire.AppendBytes(nil, wire.TracePacket, w.intern())
	other := w.other()
	meta := wire.AppendBytes(wire.AppendBytes(nil, wire.MetadataName, "simccl"), wire.MetadataJSON, other)
	b = wire.AppendBytes(b, wire.TracePacket, wire.AppendBytes(nil, wire.PacketChromeEvents,
		wire.AppendBytes(nil, wire.BundleMetadata, meta)))
	b = appendDescriptor(b, wire.AppendNumber(wire.AppendNumber(wire.AppendNumber(nil, wire.TrackUUID, 0),
		wire.RootProcesses, 1), wire.RootThreads, 1))

	processes := map[int64]uint64{}
	for _, i := range w.ordered() {
		t := &w.tracks[i]
		parent, ok := processes[t.Process]
		if !ok {
			parent = processUUID + uint64(len(processes))
			processes[t.Process] = parent
			p := wire.AppendNumber(nil, wire.ProcessPID, uint64(t.Process))
			if t.ProcessName != "" {
				p = wire.AppendBytes(p, wire.ProcessName, valid(t.ProcessName))
			}
			if t.Labels != "" {
				p = wire.AppendBytes(p, wire.ProcessLabels, valid(t.Labels))
			}
			b = appendDescriptor(b,
				wire.AppendNumber(wire.AppendBytes(wire.AppendNumber(nil, wire.TrackUUID, parent),
					wire.TrackProcess, p), wire.TrackRank, uint64(t.ProcessSort)))
		}
		lane := wire.AppendNumber(wire.AppendNumber(nil, wire.ThreadPID, uint64(t.Process)), wire.ThreadTID,
			uint64(t.Thread))
		if t.ThreadName != "" {
			lane = wire.AppendBytes(lane, wire.ThreadName, valid(t.ThreadName))
		}
		d := wire.AppendNumber(wire.AppendNumber(nil, wire.TrackUUID,
			uint64(w.known[[2]int64{t.Process, t.Thread}])+1), wire.TrackParent, parent)
		b = appendDescriptor(b, wire.AppendNumber(wire.AppendBytes(d, wire.TrackThread, lane), wire.TrackRank,
			uint64(t.ThreadSort)))
	}
	for i, k := range w.proto.order {
		d := wire.AppendNumber(wire.AppendNumber(nil, wire.TrackUUID, counterUUID+uint64(i)),
			wire.TrackParent, processes[k.process])
		b = appendDescriptor(b, wire.AppendBytes(wire.AppendBytes(d, wire.TrackName, valid(k.name)),
			wire.TrackCounter, wire.AppendBytes(nil, wire.CounterUnit, valid(k.arg))))
	}
	return b
}

func appendDescriptor(b, d []byte) []byte {
	return wire.AppendBytes(b, wire.TracePacket, wire.AppendBytes(nil, wire.PacketDescriptor, d))
}

// valid is text as the format has it.
func valid(s string) string { return strings.ToValidUTF8(s, "\ufffd") }

// intern makes the packet of what events repeat, and what each shape is with it.
func (w *Writer) intern() []byte {
	var data []byte
	index := func(field int) func(string) uint64 {
		ids := map[string]uint64{}
		return func(s string) uint64 {
			id, ok := ids[s]
			if !ok {
				id = uint64(len(ids) + 1)
				ids[s] = id
				data = wire.AppendBytes(data, field,
					wire.AppendBytes(wire.AppendNumber(nil, wire.EntryID, id), wire.EntryText, valid(s)))
			}
			return id
		}
	}
	category, name, key := index(wire.InternedCategories), index(wire.InternedNames), index(wire.InternedKeys)
	w.proto.shapes = make([]protoShape, len(w.tables.Shapes))
	for i := range w.tables.Shapes[1:] {
		s, p := &w.tables.Shapes[i+1], &w.proto.shapes[i+1]
		if s.Cat != "" {
			p.event = wire.AppendNumber(p.event, wire.EventCategoryIDs, category(s.Cat))
		}
		p.event = wire.AppendNumber(p.event, wire.EventNameID, name(s.Name))
		for j := range s.Args {
			p.keys = append(p.keys, wire.AppendNumber(nil, wire.AnnotationNameID, key(s.Args[j].Key)))
		}
	}
	for i := range w.tables.Words {
		data = wire.AppendBytes(data, wire.InternedValues,
			wire.AppendBytes(wire.AppendNumber(nil, wire.EntryID, uint64(i+1)), wire.EntryText,
				valid(w.tables.Words[i].S)))
	}
	packet := wire.AppendNumber(wire.AppendNumber(nil, wire.PacketSequence, 1), wire.PacketFlags,
		wire.StateCleared)
	return wire.AppendBytes(packet, wire.PacketInterned, data)
}

// protoEncoder makes packets of events; each goroutine has its own.
type protoEncoder struct {
	w                   *Writer
	event, note, packet []byte
}

func (p *protoEncoder) append(b []byte, e *pack.Packed) []byte {
	t := p.event[:0]
	switch {
	case e.Kind == pack.SliceEnd:
		t = wire.AppendNumber(wire.AppendNumber(t, wire.EventType, wire.TypeEnd), wire.EventTrack,
			uint64(e.Track)+1)
	case e.Kind == pack.CounterValue:
		t = wire.AppendNumber(wire.AppendNumber(t, wire.EventType, wire.TypeCounter), wire.EventTrack,
			counterUUID+e.ID)
		p.w.tables.Values(e, func(a *pack.ShapeArg, v *pack.Value) {
			if a.Kind == trace.IntArg {
				t = wire.AppendNumber(t, wire.EventInt, uint64(v.Num))
			} else {
				t = wire.AppendDouble(t, wire.EventDouble, v.Float)
			}
		})
	default:
		t = p.named(t, e)
	}
	p.event = t
	k := wire.AppendNumber(p.packet[:0], wire.PacketTimestamp, uint64(e.TS))
	k = wire.AppendNumber(wire.AppendNumber(k, wire.PacketSequence, 1), wire.PacketFlags, wire.StateNeeded)
	k = wire.AppendBytes(k, wire.PacketEvent, t)
	p.packet = k
	return wire.AppendBytes(b, wire.TracePacket, k)
}

// named is an event with category, name and annotations.
func (p *protoEncoder) named(t []byte, e *pack.Packed) []byte {
	switch trace.Phase(e.Kind) {
	case trace.Slice:
		t = wire.AppendNumber(t, wire.EventType, wire.TypeBegin)
	case trace.Instant:
		t = wire.AppendNumber(t, wire.EventType, wire.TypeInstant)
	case trace.FlowStart:
		t = wire.AppendBytes(t, wire.EventLegacy, wire.AppendNumber(wire.AppendNumber(nil, wire.LegacyPhase,
			's'), wire.LegacyID, e.ID))
	case trace.FlowEnd:
		t = wire.AppendBytes(t, wire.EventLegacy,
			wire.AppendNumber(wire.AppendNumber(wire.AppendNumber(nil, wire.LegacyPhase, 'f'), wire.LegacyID,
				e.ID), wire.LegacyEnclosing, 1))
	}
	t = wire.AppendNumber(t, wire.EventTrack, uint64(e.Track)+1)
	var keys [][]byte
	if e.Number == 0 {
		if e.Shape.Cat != "" {
			t = wire.AppendBytes(t, wire.EventCategories, valid(e.Shape.Cat))
		}
		t = wire.AppendBytes(t, wire.EventName, valid(e.Shape.Name))
	} else {
		s := &p.w.proto.shapes[e.Number]
		t, keys = append(t, s.event...), s.keys
	}
	i := 0
	p.w.tables.Values(e, func(a *pack.ShapeArg, v *pack.Value) {
		n := p.note[:0]
		if keys != nil {
			n = append(n, keys[i]...)
		} else {
			n = wire.AppendBytes(n, wire.AnnotationName, valid(a.Key))
		}
		i++
		switch {
		case a.Kind == trace.IntArg:
			n = wire.AppendNumber(n, wire.AnnotationInt, uint64(v.Num))
		case a.Kind == trace.FloatArg:
			n = wire.AppendDouble(n, wire.AnnotationDouble, v.Float)
		case v.Number == 0:
			n = wire.AppendBytes(n, wire.AnnotationText, valid(v.Word.S))
		default:
			n = wire.AppendNumber(n, wire.AnnotationTextID, v.Number)
		}
		p.note = n
		t = wire.AppendBytes(t, wire.EventAnnotations, n)
	})
	return t
}
