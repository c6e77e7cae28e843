package chrome

import (
	"cmp"
	"errors"
	"math"
	"slices"
	"strings"

	"github.com/simccl/simccl/trace"
)

// In Perfetto's own format a slice is a begin and an end in the order of time, the
// processes and threads of a Chrome trace are tracks of such, each counter is a
// track below its process, and an arrow's ends are legacy events of phase s and f,
// which bind to the slice that is open on their track (track_event_event_importer.h,
// ParseFlowEventV1): a native flow runs from the begins of slices, and a receive
// often begins to wait before its send begins. What events repeat is interned once,
// at the front, so that all that follows can be made ready in parallel.

// Kinds of what is kept for Perfetto's format only.
const (
	protoEnd = pairEnd + 1 + iota
	protoCounter
)

// UUIDs of tracks: of threads their number from 1 on.
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
		return errors.New("the layout of NCCL's profiler plugin is one of Chrome's JSON; write to .json or .json.gz, or leave the style out")
	}
	return nil
}

// isProto reports whether a name is one of Perfetto's format.
func isProto(path string) bool {
	return strings.HasSuffix(strings.TrimSuffix(path, ".gz"), ".pftrace")
}

// putProto keeps an event for Perfetto's format.
func (w *Writer) putProto(e *trace.Event, from, to int64) {
	switch e.Phase {
	case trace.Slice:
		w.put(e, from, to)
		off := len(w.cur.data)
		w.cur.data = append(w.cur.data, protoEnd)
		w.cur.add(key{to, math.MaxInt64}, e.Track, off) // before what begins then
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
			off := len(w.cur.data)
			w.cur.data = w.tables.pack(w.cur.data, protoCounter, id, &one)
			w.cur.add(key{from, 0}, e.Track, off)
			w.events++
		}
	default:
		w.put(e, from, to)
	}
}

// protoHead is all that stands before the events.
func (w *Writer) protoHead() []byte {
	b := appendBytes(nil, tracePacket, w.intern())
	other := w.other()
	meta := appendBytes(appendBytes(nil, metadataName, "simccl"), metadataJSON, other)
	b = appendBytes(b, tracePacket, appendBytes(nil, packetChromeEvents, appendBytes(nil, bundleMetadata, meta)))
	b = appendDescriptor(b, appendNumber(appendNumber(appendNumber(nil, trackUUID, 0), rootProcesses, 1), rootThreads, 1))

	processes := map[int64]uint64{}
	for _, t := range w.ordered() {
		parent, ok := processes[t.Process]
		if !ok {
			parent = processUUID + uint64(len(processes))
			processes[t.Process] = parent
			p := appendNumber(nil, processPID, uint64(t.Process))
			if t.ProcessName != "" {
				p = appendBytes(p, processName, valid(t.ProcessName))
			}
			if t.Labels != "" {
				p = appendBytes(p, processLabels, valid(t.Labels))
			}
			b = appendDescriptor(b, appendNumber(appendBytes(appendNumber(nil, trackUUID, parent), trackProcess, p), trackRank, uint64(t.ProcessSort)))
		}
		lane := appendNumber(appendNumber(nil, threadPID, uint64(t.Process)), threadTID, uint64(t.Thread))
		if t.ThreadName != "" {
			lane = appendBytes(lane, threadName, valid(t.ThreadName))
		}
		d := appendNumber(appendNumber(nil, trackUUID, uint64(w.known[[2]int64{t.Process, t.Thread}])+1), trackParent, parent)
		b = appendDescriptor(b, appendNumber(appendBytes(d, trackThread, lane), trackRank, uint64(t.ThreadSort)))
	}
	for i, k := range w.proto.order {
		d := appendNumber(appendNumber(nil, trackUUID, counterUUID+uint64(i)), trackParent, processes[k.process])
		b = appendDescriptor(b, appendBytes(appendBytes(d, trackName, valid(k.name)), trackCounter, appendBytes(nil, counterUnit, valid(k.arg))))
	}
	return b
}

func appendDescriptor(b, d []byte) []byte {
	return appendBytes(b, tracePacket, appendBytes(nil, packetDescriptor, d))
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
				data = appendBytes(data, field, appendBytes(appendNumber(nil, entryID, id), entryText, valid(s)))
			}
			return id
		}
	}
	category, name, key := index(internedCategories), index(internedNames), index(internedKeys)
	w.proto.shapes = make([]protoShape, len(w.tables.shapes))
	for i := range w.tables.shapes[1:] {
		s, p := &w.tables.shapes[i+1], &w.proto.shapes[i+1]
		if s.cat != "" {
			p.event = appendNumber(p.event, eventCategoryIDs, category(s.cat))
		}
		p.event = appendNumber(p.event, eventNameID, name(s.name))
		for j := range s.args {
			p.keys = append(p.keys, appendNumber(nil, annotationNameID, key(s.args[j].key)))
		}
	}
	for i := range w.tables.words {
		data = appendBytes(data, internedValues, appendBytes(appendNumber(nil, entryID, uint64(i+1)), entryText, valid(w.tables.words[i].s)))
	}
	packet := appendNumber(appendNumber(nil, packetSequence, 1), packetFlags, stateCleared)
	return appendBytes(packet, packetInterned, data)
}

// protoEncoder makes packets of events; each goroutine has its own.
type protoEncoder struct {
	w                   *Writer
	event, note, packet []byte
}

func (p *protoEncoder) append(b []byte, e *packed) []byte {
	t := p.event[:0]
	switch {
	case e.kind == protoEnd:
		t = appendNumber(appendNumber(t, eventType, typeEnd), eventTrack, uint64(e.track)+1)
	case e.kind == protoCounter:
		t = appendNumber(appendNumber(t, eventType, typeCounter), eventTrack, counterUUID+e.id)
		p.w.tables.values(e, func(a *shapeArg, v *value) {
			if a.kind == trace.IntArg {
				t = appendNumber(t, eventInt, uint64(v.num))
			} else {
				t = appendDouble(t, eventDouble, v.float)
			}
		})
	default:
		t = p.named(t, e)
	}
	p.event = t
	k := appendNumber(p.packet[:0], packetTimestamp, uint64(e.ts))
	k = appendNumber(appendNumber(k, packetSequence, 1), packetFlags, stateNeeded)
	k = appendBytes(k, packetEvent, t)
	p.packet = k
	return appendBytes(b, tracePacket, k)
}

// named is an event with category, name and annotations.
func (p *protoEncoder) named(t []byte, e *packed) []byte {
	switch trace.Phase(e.kind) {
	case trace.Slice:
		t = appendNumber(t, eventType, typeBegin)
	case trace.Instant:
		t = appendNumber(t, eventType, typeInstant)
	case trace.FlowStart:
		t = appendBytes(t, eventLegacy, appendNumber(appendNumber(nil, legacyPhase, 's'), legacyID, e.id))
	case trace.FlowEnd:
		t = appendBytes(t, eventLegacy, appendNumber(appendNumber(appendNumber(nil, legacyPhase, 'f'), legacyID, e.id), legacyEnclosing, 1))
	}
	t = appendNumber(t, eventTrack, uint64(e.track)+1)
	var keys [][]byte
	if e.shape == &e.loose {
		if e.shape.cat != "" {
			t = appendBytes(t, eventCategories, valid(e.shape.cat))
		}
		t = appendBytes(t, eventName, valid(e.shape.name))
	} else {
		s := &p.w.proto.shapes[e.number]
		t, keys = append(t, s.event...), s.keys
	}
	i := 0
	p.w.tables.values(e, func(a *shapeArg, v *value) {
		n := p.note[:0]
		if keys != nil {
			n = append(n, keys[i]...)
		} else {
			n = appendBytes(n, annotationName, valid(a.key))
		}
		i++
		switch {
		case a.kind == trace.IntArg:
			n = appendNumber(n, annotationInt, uint64(v.num))
		case a.kind == trace.FloatArg:
			n = appendDouble(n, annotationDouble, v.float)
		case v.word == &v.loose:
			n = appendBytes(n, annotationText, valid(v.word.s))
		default:
			n = appendNumber(n, annotationTextID, v.number)
		}
		p.note = n
		t = appendBytes(t, eventAnnotations, n)
	})
	return t
}

// ordered lists the tracks by process and thread.
func (w *Writer) ordered() []*track {
	order := make([]*track, len(w.tracks))
	for i := range w.tracks {
		order[i] = &w.tracks[i]
	}
	slices.SortFunc(order, func(a, b *track) int {
		return cmp.Or(cmp.Compare(a.Process, b.Process), cmp.Compare(a.Thread, b.Thread))
	})
	return order
}
