package perfetto

// Field numbers of Perfetto's schema (github.com/google/perfetto, protos/perfetto/,
// commit ec5d16b14b of 2026-08-22), as far as they are written or read here.
const (
	tracePacket = 1 // trace/trace.proto: Trace.packet

	// trace/trace_packet.proto: TracePacket
	packetChromeEvents = 5
	packetTimestamp    = 8
	packetSequence     = 10 // trusted_packet_sequence_id
	packetEvent        = 11 // track_event
	packetInterned     = 12 // interned_data
	packetFlags        = 13 // sequence_flags
	packetCompressed   = 50 // compressed_packets
	packetClock        = 58 // timestamp_clock_id
	packetDefaults     = 59 // trace_packet_defaults
	packetDescriptor   = 60 // track_descriptor
	packetZstd         = 133

	stateCleared = 1 // SEQ_INCREMENTAL_STATE_CLEARED
	stateNeeded  = 2 // SEQ_NEEDS_INCREMENTAL_STATE

	// trace/chrome/chrome_trace_event.proto: ChromeEventBundle, ChromeMetadata
	bundleMetadata = 2
	metadataName   = 1
	metadataJSON   = 5 // json_value

	// trace/interned_data/interned_data.proto: InternedData; each entry has an iid
	// and its text
	internedCategories = 1
	internedNames      = 2
	internedKeys       = 3  // debug_annotation_names
	internedValues     = 29 // debug_annotation_string_values
	entryID            = 1
	entryText          = 2

	// trace/track_event/track_descriptor.proto: TrackDescriptor
	trackUUID     = 1
	trackName     = 2
	trackProcess  = 3
	trackThread   = 4
	trackParent   = 5
	trackCounter  = 8
	trackStatic   = 10 // static_name
	trackRank     = 12 // sibling_order_rank
	rootProcesses = 19 // process_ordering, of the root; 1: by rank
	rootThreads   = 20 // thread_ordering

	// process_descriptor.proto, thread_descriptor.proto, counter_descriptor.proto
	processPID    = 1
	processName   = 6
	processLabels = 8
	threadPID     = 1
	threadTID     = 2
	threadName    = 5
	counterUnit   = 6 // unit_name

	// trace/track_event/track_event.proto: TrackEvent, LegacyEvent
	eventCategoryIDs = 3
	eventAnnotations = 4 // debug_annotations
	eventLegacy      = 6
	eventType        = 9
	eventNameID      = 10
	eventTrack       = 11
	eventCategories  = 22
	eventName        = 23
	eventInt         = 30 // counter_value
	eventDouble      = 44 // double_counter_value
	legacyPhase      = 2
	legacyID         = 6 // unscoped_id
	legacyLocalID    = 10
	legacyGlobalID   = 11
	legacyEnclosing  = 12 // bind_to_enclosing

	typeBegin   = 1
	typeEnd     = 2
	typeInstant = 3
	typeCounter = 4

	// trace/track_event/debug_annotation.proto: DebugAnnotation
	annotationNameID  = 1
	annotationBool    = 2
	annotationUint    = 3
	annotationInt     = 4
	annotationDouble  = 5
	annotationText    = 6
	annotationPointer = 7
	annotationJSON    = 9
	annotationName    = 10
	annotationTextID  = 17
)
