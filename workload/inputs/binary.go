package inputs

import (
	"bytes"
	"encoding/binary"

	"github.com/simccl/simccl/workload/chakra"
	"github.com/simccl/simccl/workload/flight"
	"github.com/simccl/simccl/workload/goal"
)

// binaryKind recognises what is no text by its first bytes.
func binaryKind(data []byte) Kind {
	head := data[:min(len(data), headSize)]
	switch {
	case bytes.HasPrefix(head, []byte("\x7fELF")):
		return ELF
	case bytes.HasPrefix(head, []byte("SQLite format 3\x00")):
		if bytes.Contains(head, []byte("CUPTI_")) || bytes.Contains(head, []byte("TARGET_INFO_")) {
			return Nsight
		}
		return SQLite
	case bytes.HasPrefix(head, []byte("PK\x03\x04")):
		return Zip
	case len(head) > 262 && string(head[257:262]) == "ustar":
		return Tar
	case goal.RecogniseBinary(head):
		return GOALBinary
	case flight.RecognisePickle(head):
		return FlightPickle
	case printable(head):
		return Unknown
	case chakra.Recognise(head):
		return Chakra
	case isPerfetto(head):
		return Perfetto
	case isPprof(data):
		return Pprof
	}
	return Unknown
}

// printable reports whether a head is text: it has no control characters but white space and terminal
// escapes.
func printable(head []byte) bool {
	for _, c := range head {
		if c < ' ' && c != '\t' && c != '\n' && c != '\r' && c != '\x1b' && c != '\f' && c != '\b' {
			return false
		}
	}
	return true
}

// isPerfetto reports whether data begins with a packet of a Perfetto trace: field 1, a message
// whose first field is one of TracePacket's (trace/trace_packet.proto has none below 3).
func isPerfetto(head []byte) bool {
	if len(head) < 4 || head[0] != 0x0a {
		return false
	}
	n, k := binary.Uvarint(head[1:])
	if k <= 0 || n == 0 || len(head) <= 1+k {
		return false
	}
	tag, k2 := binary.Uvarint(head[1+k:])
	return k2 > 0 && tag>>3 >= 3
}

// isPprof reports whether data is a profile of pprof (profile.proto): value types, and the
// strings of the kinds that such files have.
func isPprof(data []byte) bool {
	if len(data) < 8 || data[0] != 0x0a {
		return false
	}
	tail := data[max(0, len(data)-headSize):]
	return bytes.Contains(tail, []byte("nanoseconds")) || bytes.Contains(tail, []byte("samples"))
}
