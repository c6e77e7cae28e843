package peer

// Way is the method by which bytes move from one rank's memory to another's.
type Way uint8

// Ways. Load and Store are executed by a kernel's threads, over NVLink or PCIe; Write is an RDMA write
// between nodes, posted by a GPU or a CPU, Read an RDMA read that the destination posts. Multicast is a load
// that NVLink switches reduce and, if there are several destinations, a store that they copy.
const (
	Load Way = iota
	Store
	Write
	Multicast
	Read
)

// String returns the way's name in listings.
func (w Way) String() string { return [...]string{"load", "store", "write", "multicast", "read"}[w] }

// Buffer is one of a rank's buffers.
type Buffer uint8

// Buffers: In holds the data that a rank begins with, Out its result, Tmp intermediate data, Scratch a copy
// of In that others can read.
const (
	In Buffer = iota
	Out
	Tmp
	Scratch
)

// Place is a part of the data in a buffer of a rank.
type Place struct {
	Rank   int32
	Buffer Buffer
	Part   int32 // index in Plan.Parts
}

// Part is a piece of the data that moves as a unit: Items (tokens, blocks) in Bytes. Of is the part that it
// is a piece of (-1: none): a place that holds Of also holds this part.
type Part struct {
	Bytes, Items int64
	Of           int32
}

// Move is one transfer: the data at the sources are summed and stored at the destination. By is the rank
// whose threads or NIC execute it.
type Move struct {
	By      int32
	Way     Way
	Sources []Place
	To      Place
	Also    []Place // further destinations of a Multicast
}

// Phase is a set of moves between two points at which all ranks synchronize.
type Phase struct {
	Name  string
	Moves []Move
	// Meet: all ranks wait for each other by flags before the phase.
	Meet bool
	// Serial: a thread loads from one peer after the other; otherwise from all at once.
	Serial bool
	// Apart: a copy of its own does it, before the kernel or after it.
	Apart bool
}

// Goal is the required content of a place at the end: the contributions of a number of ranks, each exactly
// once.
type Goal struct {
	Place
	From []int32
}

// Plan is one operation of a serving kernel.
type Plan struct {
	Op, Kernel string
	Ranks      int
	Parts      []Part
	// Has lists the places that hold data at the beginning.
	Has    []Place
	Phases []Phase
	Goals  []Goal
	// Meet: all ranks wait for each other at the end.
	Meet bool
	// Blocks of Threads threads each; 0 if no kernel takes part.
	Blocks, Threads int
	// Tokens is the load of a kernel that dispatches or combines; nil for others.
	Tokens *Tokens
	// Assumed names the properties of the plan that are assumed, not known.
	Assumed []string

	owner map[int32]int32 // part → rank whose tokens it holds, in plans of experts by stages
}

// Tokens is the load on the busiest rank of a kernel that moves tokens.
type Tokens struct {
	Combine, LowLatency bool
	// Count is the number of a rank's tokens, of Values values each. Copies is the number of copies of a
	// token that go to ranks, Crossing the number that go to nodes (if there are several), of Bytes each.
	Count, Values    int64
	Copies, Crossing float64
	Bytes            int64
	// Groups is the number of groups of warps of a block, one for each expert (low latency).
	Groups int
	Remote bool // some copies go between nodes
	// Chunks is the number of writes in which a channel sends a node's tokens (normal kernels between nodes).
	Chunks float64
}
