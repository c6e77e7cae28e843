// Package plan is what an operation consists of: per rank and channel, programs
// of fused primitives that send, receive, reduce and copy over connections. It
// is the interface between decisions and execution: simulator and hardware run the same Plan. It knows
// no topology and no time.
//
// A Plan holds no ops. Its Generator makes them one by one, through a Cursor.
// Package plan/build makes plans as NCCL 2.28.9 does, plan/check proves a plan
// right and executes it on any memory, plan/export writes it as text, CSV or
// GOAL.
package plan

import (
	"fmt"

	"github.com/simccl/simccl/connect"
	"github.com/simccl/simccl/units"
)

// FIFOSteps is the depth of every connection's FIFO in steps (NCCL_STEPS,
// include/device.h:25). A sender may be that many steps ahead of its receiver.
const FIFOSteps = 8

// WarpSize is the number of threads in a warp.
const WarpSize = 32

// Do is what one primitive does: a set of the bits below. The value it makes
// is the received data, the local Src, or (Reduce) their reduction.
type Do uint16

// Primitive bits. NCCL's recvReduceCopySend is Recv|Reduce|Copy|Send.
const (
	Recv   Do = 1 << iota // wait for and read from every Op.From connection
	Reduce                // reduce all operands (received and Src) into one
	Copy                  // store the value at Dst
	Send                  // write the value to every Op.To connection
	PostOp                // apply the reduction's final scaling (avg)
	// The next three appear only in PAT, which packs several pieces into one
	// FIFO step (device/prims_simple.h, patReduce and patCopy).
	HoldRecv // do not release the received step yet: more pieces will be read
	HoldSend // do not post the sent step yet: more pieces will be written
	// the local operand is what the written place already holds, not Src; of RoleBlock without connections
	// both
	Accum
)

// Buffer names a rank's memory.
type Buffer uint8

// Buffers.
const (
	NoBuffer Buffer = iota
	Input
	Output
	Scratch // of a schedule of others: its own memory, undefined at first
)

// Ref is a place in a rank's memory.
type Ref struct {
	Buf Buffer
	Off units.Bytes
}

// String prints a place as in+4096.
func (r Ref) String() string { return fmt.Sprintf("%v+%d", r.Buf, r.Off) }

// Conn is one direction of one connection between two ranks on a channel:
// a FIFO of FIFOSteps slots. The n-th step sent on a Conn meets the n-th
// received.
//
// A Conn of kind NVLSRoute is a rank's part of a head's multicast
// buffer. Data sent into it by the rank (Src is the rank, Dst the head) stays
// in the rank's memory until the head's Reduce pulls it: the switch reduces on
// the path, so however many such Conns an op reads, its head takes in the bytes
// once, and each Src gives them once. Data sent by the head on several of
// them (Src is the head) leaves the head once and the switch copies it.
//
// A Conn of kind CollNetRoute leads from a head to the network that reduces
// (Dst is Network) or back (Src is Network): what is sent on it does not meet a
// receive, but the other Conns of its NetGroup in the network.
type Conn struct {
	ID       int32
	Src, Dst int32 // ranks, or Network; -1 where no op uses the id
	Channel  int32
	Kind     connect.RouteKind
	NetGroup int32 // CollNetRoute: index in Plan.NetGroups
	Route    connect.Route
}

// Op is one fused primitive of a program. Slices From and To point into the
// Cursor that made it; they are valid until its next call and not to be
// changed.
type Op struct {
	Rank    int32
	Channel int32
	Group   int32 // Program.Group
	Seq     int32 // index within the program
	// PAT only: how many steps beyond the next unread (Recv) or unposted (Send) one
	// the piece lies.
	RecvAhead, SendAhead int32
	Do                   Do
	From                 []int32 // Conn ids
	To                   []int32 // Conn ids
	Src                  Ref
	Dst                  Ref
	Bytes                units.Bytes // payload of the primitive (a chunk or its rest)
	Chunk                int32       // chunk index within the channel's part, for names
	// Step is the FIFO step at which the op starts on its To connections (From
	// where it does not send), counted from the start of the program. An op
	// takes Program.OpSteps steps of each of its connections.
	Step int32
	// PAT only: byte offsets of the piece inside the received and the sent step.
	RecvOff, SendOff units.Bytes
}

var doNames = [...]string{"recv", "reduce", "copy", "send", "post", "holdrecv", "holdsend", "accum"}

// String lists the bits in NCCL's order of words, as recv+reduce+send.
func (d Do) String() string {
	s := ""
	for i, name := range doNames {
		if d&(1<<i) != 0 {
			if s != "" {
				s += "+"
			}
			s += name
		}
	}
	if s == "" {
		return "nothing"
	}
	return s
}

var bufferNames = [...]string{"-", "in", "out", "scratch"}

// String is the word of plan text.
func (b Buffer) String() string {
	if int(b) < len(bufferNames) {
		return bufferNames[b]
	}
	return "?"
}
