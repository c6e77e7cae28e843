// Package plan turns one chosen operation into per-rank, per-channel programs
// of primitives exactly as NCCL 2.28.9 splits the work (enqueue.cc,
// device/*.h). It is the waist of the house: simulator and hardware run the
// same Plan. It knows no topology and no time.
package plan

import (
	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/connect"
	"github.com/simccl/simccl/units"
)

// Request is the operation and what the tuner (or a user) chose for it.
type Request struct {
	Func     coll.Func
	Count    int64 // elements, with NCCL's meaning of count per operation
	Type     coll.DataType
	Op       coll.RedOp
	Root     int32
	InPlace  bool
	Algo     coll.Algorithm // ignored for send/recv operations
	Proto    coll.Protocol  // likewise, unless ForceProto
	Channels int            // nMaxChannels of the cost model
	Warps    int            // nWarps of the cost model
}

// Do is what one primitive does: a set of the bits below. The value it makes
// is the received data, the local Src, or (Reduce) their reduction.
type Do uint8

// Primitive bits. NCCL's recvReduceCopySend is Recv|Reduce|Copy|Send.
const (
	Recv   Do = 1 << iota // wait for and read from every Op.From connection
	Reduce                // reduce all operands (received and Src) into one
	Copy                  // store the value at Dst
	Send                  // write the value to every Op.To connection
	PostOp                // apply the reduction's final scaling (avg)
)

// Buffer names a rank's memory.
type Buffer uint8

// Buffers. Scratch is the algorithm's own (PAT accumulators, NVLS).
const (
	NoBuffer Buffer = iota
	Input
	Output
	Scratch
)

// Ref is a place in a rank's memory.
type Ref struct {
	Buf Buffer
	Off units.Bytes
}

// Conn is one direction of one connection between two ranks on a channel:
// a FIFO of connect/NCCL_STEPS slots. The n-th transfer sent on a Conn meets
// the n-th received.
type Conn struct {
	ID       int32 // dense within the Plan
	Src, Dst int32 // ranks; -1 is the NVLink switch (NVLS)
	Channel  int32
	Kind     connect.RouteKind
	Route    connect.Route
}

// Op is one fused primitive of a program. Slices From and To point into the
// Program and are not to be changed or kept.
type Op struct {
	Rank    int32
	Channel int32
	Group   int32 // thread group within the channel (tree: reduce, broadcast)
	Seq     int32 // index within the program
	Do      Do
	From    []int32 // Conn ids
	To      []int32 // Conn ids
	Src     Ref
	Dst     Ref
	Bytes   units.Bytes // payload of the primitive (a chunk or its rest)
	Chunk   int32       // chunk index within the collective, for names
	Step    int32       // FIFO step at which it starts on its connections
}

// Plan is one operation of a communicator, ready to run. Programs are
// generated on demand: a 1,024-rank ring has tens of millions of ops.
type Plan struct {
	Req   Request
	Comm  *connect.Comm
	Conns []Conn
}
