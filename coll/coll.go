package coll

// Func is a collective or point-to-point operation. The first five keep
// NCCL's numbering (nccl_common.h, ncclFunc_t).
type Func uint8

// Operations, as nccl-tests names them.
const (
	Broadcast Func = iota
	Reduce
	AllGather
	ReduceScatter
	AllReduce
	SendRecv
	AllToAll
	Gather
	Scatter
	NumFuncs
)

// Send and Recv are the halves of a message between two ranks, as a program
// issues them (ncclSend, ncclRecv). They are operations of a workload alone: no
// table of operations lists them, and Valid is false.
const (
	Send = NumFuncs + iota
	Recv
	numWords
)

// NumCollFuncs counts the operations that NCCL's cost model covers.
const NumCollFuncs = 5

// Algorithm is NCCL's algorithm index (nccl_common.h, NCCL_ALGO_*).
type Algorithm uint8

// Algorithms in NCCL's order.
const (
	Tree Algorithm = iota
	Ring
	CollNetDirect
	CollNetChain
	NVLS
	NVLSTree
	PAT
	NumAlgorithms
)

// Protocol is NCCL's protocol index (NCCL_PROTO_*).
type Protocol uint8

// Protocols in NCCL's order.
const (
	LL Protocol = iota
	LL128
	Simple
	NumProtocols
)

// DataType is an element type with NCCL's numbering (ncclDataType_t).
type DataType uint8

// Element types.
const (
	Int8 DataType = iota
	Uint8
	Int32
	Uint32
	Int64
	Uint64
	Float16
	Float32
	Float64
	BFloat16
	Float8e4m3
	Float8e5m2
	NumDataTypes
)

// RedOp is a reduction with NCCL's numbering (ncclRedOp_t).
type RedOp uint8

// Reductions.
const (
	Sum RedOp = iota
	Prod
	Max
	Min
	Avg
	NumRedOps
)

// IsFloat reports whether t is a floating-point type.
func (t DataType) IsFloat() bool { return t >= Float16 && t < NumDataTypes }
