package perfetto

import (
	"bytes"
	"fmt"

	"github.com/simccl/simccl/internal/protowire"
	"github.com/simccl/simccl/trace"
	"github.com/simccl/simccl/units"
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

// Event is one event as a Chrome trace has it, with the number of its packet.
type Event struct {
	Packet   int
	Phase    byte // as Chrome's: B E X i C M s f; 0: none that is known
	PID, TID int64
	TS, Dur  units.Time
	HasTS    bool
	HasDur   bool
	BadTS    string // the time that cannot be
	Cat      string
	Name     string
	ID       string
	Bind     string // "e" for the end of an arrow that binds to the slice that is open
	Args     []trace.Arg
}

// Sink takes what a file has.
type Sink struct {
	// Time places a time of the file's clock, in ns, by the first event; problem says why it
	// cannot.
	Time func(ns int64) (t units.Time, problem string)
	// Event takes an event, which is used again for the next.
	Event func(*Event) error
	// Meta takes what a trace of simccl says of itself, JSON.
	Meta func([]byte) error
}

// Begins reports whether a file begins with a packet of Perfetto's format: its
// first byte is a line feed, which in JSON blanks and a brace follow.
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
