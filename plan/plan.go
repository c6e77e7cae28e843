// Package plan represents an operation as programs: per rank and channel, a sequence of fused primitives that
// send, receive, reduce and copy over connections. It is the interface between decisions and execution:
// simulator and hardware run the same Plan. It knows no topology and no time.
//
// A Plan holds no ops. Its Generator makes them one by one, through a Cursor. Package plan/build makes plans
// as NCCL 2.28.9 does, plan/check proves a plan right and executes it on any memory, plan/export writes it as
// text, CSV or GOAL.
package plan

import (
	"fmt"

	"github.com/simccl/simccl/connect"
	"github.com/simccl/simccl/units"
)

// FIFOSteps is the depth of every connection's FIFO in steps (NCCL_STEPS, include/device.h:25). A sender may
// be this many steps ahead of its receiver.
const FIFOSteps = 8

// WarpSize is the number of threads in a warp.
const WarpSize = 32

// Do is the action of one primitive: a set of the bits below. The value that it makes is the received data,
// the local Src, or (Reduce) their reduction.
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
	// the local operand is the present content of the written place, not Src; for a RoleBlock op without
	// connections, both
	Accum
)

// Buffer identifies one of a rank's buffers.
type Buffer uint8

// Buffers.
const (
	NoBuffer Buffer = iota
	Input
	Output
	Scratch // of schedules other than NCCL's: memory of their own, undefined at first
)

// Ref is an offset in one of a rank's buffers.
type Ref struct {
	Buf Buffer
	Off units.Bytes
}

// String formats a place as in+4096.
func (r Ref) String() string { return fmt.Sprintf("%v+%d", r.Buf, r.Off) }

// Conn is one direction of one connection between two ranks on a channel: a FIFO of FIFOSteps slots. The n-th
// receive reads the step that the n-th send wrote.
//
// A Conn of kind NVLSRoute is a rank's part of a head's multicast buffer. Data that the rank sends into it
// (Src is the rank, Dst the head) stays in the rank's memory until the head's Reduce pulls it: the switch
// reduces on the path, so the head receives the bytes once, however many such Conns an op reads, and each Src
// sends them once. Data that the head sends on several of them (Src is the head) leaves the head once and the
// switch copies it.
//
// A Conn of kind CollNetRoute leads from a head to the network that reduces (Dst is Network) or back (Src is
// Network). Data sent on it has no matching receive: the network combines it with the other Conns of its
// NetGroup.
type Conn struct {
	ID       int32
	Src, Dst int32 // ranks, or Network; -1 if no op uses the id
	Channel  int32
	Kind     connect.RouteKind
	NetGroup int32 // CollNetRoute: index in Plan.NetGroups
	Route    connect.Route
}

// Op is one fused primitive of a program. The slices From and To belong to the Cursor that made the op; they
// are valid until its next call and must not be changed.
type Op struct {
	Rank    int32
	Channel int32
	Group   int32 // Program.Group
	Seq     int32 // index within the program
	// PAT only: number of steps between the next unread (Recv) or unposted (Send) step and that of the piece
	RecvAhead, SendAhead int32
	Do                   Do
	From                 []int32 // Conn ids
	To                   []int32 // Conn ids
	Src                  Ref
	Dst                  Ref
	Bytes                units.Bytes // payload of the primitive: a full chunk, or the rest
	Chunk                int32       // chunk index within the channel's part, for names
	// Step is the FIFO step at which the op starts on its To connections (From if it does not send), counted
	// from the start of the program. An op takes Program.OpSteps steps of each of its connections.
	Step int32
	// PAT only: byte offsets of the piece inside the received and the sent step.
	RecvOff, SendOff units.Bytes
}

var doNames = [...]string{"recv", "reduce", "copy", "send", "post", "holdrecv", "holdsend", "accum"}

// String lists the bits in the order of NCCL's names, as recv+reduce+send.
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

// String returns the buffer's name in plan text.
func (b Buffer) String() string {
	if int(b) < len(bufferNames) {
		return bufferNames[b]
	}
	return "?"
}
