// Package wire is protobuf's encoding, as far as Perfetto's traces need it, and the
// field numbers of their schema.
package wire

import (
	"encoding/binary"
	"math"
)

// Field numbers of Perfetto's schema (github.com/google/perfetto, protos/perfetto/,
// commit ec5d16b14b of 2026-08-22), as far as they are written or read here.
const (
	TracePacket = 1 // trace/trace.proto: Trace.packet

	// trace/trace_packet.proto: TracePacket
	PacketChromeEvents = 5
	PacketTimestamp    = 8
	PacketSequence     = 10 // trusted_packet_sequence_id
	PacketEvent        = 11 // track_event
	PacketInterned     = 12 // interned_data
	PacketFlags        = 13 // sequence_flags
	PacketCompressed   = 50 // compressed_packets
	PacketClock        = 58 // timestamp_clock_id
	PacketDefaults     = 59 // trace_packet_defaults
	PacketDescriptor   = 60 // track_descriptor
	PacketZstd         = 133

	StateCleared = 1 // SEQ_INCREMENTAL_STATE_CLEARED
	StateNeeded  = 2 // SEQ_NEEDS_INCREMENTAL_STATE

	// trace/chrome/chrome_trace_event.proto: ChromeEventBundle, ChromeMetadata
	BundleMetadata = 2
	MetadataName   = 1
	MetadataJSON   = 5 // json_value

	// trace/interned_data/interned_data.proto: InternedData; each entry has an iid
	// and its text
	InternedCategories = 1
	InternedNames      = 2
	InternedKeys       = 3  // debug_annotation_names
	InternedValues     = 29 // debug_annotation_string_values
	EntryID            = 1
	EntryText          = 2

	// trace/track_event/track_descriptor.proto: TrackDescriptor
	TrackUUID     = 1
	TrackName     = 2
	TrackProcess  = 3
	TrackThread   = 4
	TrackParent   = 5
	TrackCounter  = 8
	TrackStatic   = 10 // static_name
	TrackRank     = 12 // sibling_order_rank
	RootProcesses = 19 // process_ordering, of the root; 1: by rank
	RootThreads   = 20 // thread_ordering

	// process_descriptor.proto, thread_descriptor.proto, counter_descriptor.proto
	ProcessPID    = 1
	ProcessName   = 6
	ProcessLabels = 8
	ThreadPID     = 1
	ThreadTID     = 2
	ThreadName    = 5
	CounterUnit   = 6 // unit_name

	// trace/track_event/track_event.proto: TrackEvent, LegacyEvent
	EventCategoryIDs = 3
	EventAnnotations = 4 // debug_annotations
	EventLegacy      = 6
	EventType        = 9
	EventNameID      = 10
	EventTrack       = 11
	EventCategories  = 22
	EventName        = 23
	EventInt         = 30 // counter_value
	EventDouble      = 44 // double_counter_value
	LegacyPhase      = 2
	LegacyID         = 6 // unscoped_id
	LegacyLocalID    = 10
	LegacyGlobalID   = 11
	LegacyEnclosing  = 12 // bind_to_enclosing

	TypeBegin   = 1
	TypeEnd     = 2
	TypeInstant = 3
	TypeCounter = 4

	// trace/track_event/debug_annotation.proto: DebugAnnotation
	AnnotationNameID  = 1
	AnnotationBool    = 2
	AnnotationUint    = 3
	AnnotationInt     = 4
	AnnotationDouble  = 5
	AnnotationText    = 6
	AnnotationPointer = 7
	AnnotationJSON    = 9
	AnnotationName    = 10
	AnnotationTextID  = 17
)

// Wire types (protobuf.dev, encoding).
const (
	Varint = 0
	Fixed8 = 1
	Bytes  = 2
	Fixed4 = 5
)

// Tag appends what a field begins with.
func Tag(b []byte, number, kind int) []byte {
	return binary.AppendUvarint(b, uint64(number)<<3|uint64(kind))
}

// AppendNumber appends a number.
func AppendNumber(b []byte, number int, v uint64) []byte {
	return binary.AppendUvarint(Tag(b, number, Varint), v)
}

// AppendDouble appends a number with a point.
func AppendDouble(b []byte, number int, v float64) []byte {
	return binary.LittleEndian.AppendUint64(Tag(b, number, Fixed8), math.Float64bits(v))
}

// AppendBytes appends a text or a message.
func AppendBytes[T []byte | string](b []byte, number int, v T) []byte {
	return append(binary.AppendUvarint(Tag(b, number, Bytes), uint64(len(v))), v...)
}

// Field is one field of a message.
type Field struct {
	Number, Kind int
	Value        uint64
	Bytes        []byte
}

// Next takes a field off a message; ok is false where it is cut or of a type
// that is not used any more.
func Next(b []byte) (f Field, rest []byte, ok bool) {
	tag, n := binary.Uvarint(b)
	if n <= 0 || tag>>3 == 0 || tag>>3 > 1<<29-1 {
		return f, nil, false
	}
	b = b[n:]
	f.Number, f.Kind = int(tag>>3), int(tag&7)
	switch f.Kind {
	case Varint:
		if f.Value, n = binary.Uvarint(b); n <= 0 {
			return f, nil, false
		}
		return f, b[n:], true
	case Fixed8:
		if len(b) < 8 {
			return f, nil, false
		}
		f.Value = binary.LittleEndian.Uint64(b)
		return f, b[8:], true
	case Fixed4:
		if len(b) < 4 {
			return f, nil, false
		}
		f.Value = uint64(binary.LittleEndian.Uint32(b))
		return f, b[4:], true
	case Bytes:
		size, n := binary.Uvarint(b)
		if n <= 0 || size > uint64(len(b)-n) {
			return f, nil, false
		}
		f.Bytes = b[n : n+int(size)]
		return f, b[n+int(size):], true
	}
	return f, nil, false
}
