// Package chakra reads and writes Chakra execution traces: the nodes of one rank with
// their dependencies, as protobuf messages (.et) and in the JSON form of its feeder.
//
// A program has the host's operations on a host thread, computations on stream 0,
// collectives and sends on stream 1 in the order of their dependencies, as ASTRA-sim
// runs one of each kind at a time, and each receive as soon as its dependencies
// allow.
//
// What it must not know: files, machines.
//
// Source: mlcommons/chakra 21585d8, schema/protobuf/et_def.proto; meaning of
// comm_size (bytes that one rank puts in): astra-sim 518bd51.
package chakra

import "fmt"

// Type is the kind of a node, with the schema's numbers.
type Type int32

// Kinds of nodes.
const (
	Invalid Type = iota
	Metadata
	MemLoad
	MemStore
	Comp
	Send
	Recv
	Coll
)

// CollType is a collective's type, numbered as in the schema.
type CollType int64

// Collectives.
const (
	AllReduce CollType = iota
	Reduce
	AllGather
	Gather
	Scatter
	Broadcast
	AllToAll
	ReduceScatter
	ReduceScatterBlock
	Barrier
)

// Trace is one rank's execution trace.
type Trace struct {
	File    string
	Version string // of the schema; empty where the file does not say
	Nodes   []Node
	// Groups are the members of process groups by name, from metadata nodes.
	Groups map[string][]int32
	Notes  []string
}

// Node is an operation of the trace: compute, memory or communication.
type Node struct {
	ID         uint64
	Name       string
	Type       Type
	Ctrl, Data []uint64 // identifiers of nodes that must have ended
	Start, Dur uint64   // µs
	CPU        bool
	FLOPs      int64 // num_ops
	TensorSize int64 // bytes
	Coll       CollType
	HasColl    bool  // the node says which collective it is
	Bytes      int64 // comm_size: the contribution of one rank
	Src, Dst   int32
	Tag        int32
	Group      string // pg_name; empty for all ranks
	Own        own
}

// own is the attributes that simccl adds so that a program survives a round trip; other readers ignore them.
type own struct {
	Call   string // the call in words: type, reduction, count, root or peer
	Stream int64
	Host   bool
	Time   int64 // ps
	Work   string
	Comm   string // name of the communicator
	Kind   string // and its purpose
	Has    bool
}

// Error is a fault of a file at the offset of a byte.
type Error struct {
	File    string
	Offset  int64
	Node    int // number of the message from 0; -1 outside of messages
	Problem string
	Hint    string
}

// Error states the position, the problem and the remedy.
func (e *Error) Error() string {
	s := fmt.Sprintf("%s: byte %d: %s", e.File, e.Offset, e.Problem)
	if e.Node >= 0 {
		s = fmt.Sprintf("%s: byte %d (message %d): %s", e.File, e.Offset, e.Node, e.Problem)
	}
	if e.Hint != "" {
		s += "; " + e.Hint
	}
	return s
}
