package perfetto

import (
	"bytes"
	"fmt"

	"github.com/simccl/simccl/internal/protowire"
	"github.com/simccl/simccl/trace"
	"github.com/simccl/simccl/units"
)

// PacketError reports a place where a file of Perfetto's format cannot be read.
type PacketError struct {
	Packet  int   // counted from 1
	Offset  int64 // of the packet in the file, decompressed
	Problem string
}

// Error prints packet, place and problem.
func (e *PacketError) Error() string {
	return fmt.Sprintf("packet %d (byte %d): %s", e.Packet, e.Offset, e.Problem)
}

// Event is one event in the form of a Chrome trace, with the number of its packet.
type Event struct {
	Packet   int
	Phase    byte // as Chrome's: B E X i C M s f; 0: unknown
	PID, TID int64
	TS, Dur  units.Time
	HasTS    bool
	HasDur   bool
	BadTS    string // text of an invalid time
	Cat      string
	Name     string
	ID       string
	Bind     string // "e" for the end of an arrow that binds to the enclosing slice
	Args     []trace.Arg
}

// Sink receives the content of a file.
type Sink struct {
	// Time converts a time of the file's clock, in ns, to one relative to the first event; problem says why
	// it cannot.
	Time func(ns int64) (t units.Time, problem string)
	// Event receives an event, which is reused for the next.
	Event func(*Event) error
	// Meta receives the self-description of a trace of simccl, as JSON.
	Meta func([]byte) error
}

// Begins reports whether a file begins with a packet of Perfetto's format. The first byte of a packet is a
// line feed; in JSON only blanks and a brace may follow one.
func Begins(head []byte) bool {
	if len(head) < 2 || head[0] != tracePacket<<3|protowire.Bytes {
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
