package peer

// Way is how bytes get from one rank's memory to another's.
type Way uint8

// Ways. Load and Store are those of a kernel's threads, over NVLink or PCIe; Write is an
// RDMA write between nodes, which a GPU or a CPU posts.
const (
	Load Way = iota
	Store
	Write
)

// String is the way's name in listings.
func (w Way) String() string { return [...]string{"load", "store", "write"}[w] }

// Buffer is one of a rank's buffers.
type Buffer uint8

// Buffers: In is what a rank begins with, Out what it ends with, Tmp lies between.
const (
	In Buffer = iota
	Out
	Tmp
)

// Place is a part of the data in a buffer of a rank.
type Place struct {
	Rank   int32
	Buffer Buffer
	Part   int32 // index in Plan.Parts
}

// Part is a piece of the data that moves as one: Items of it (tokens, blocks) in Bytes.
// Of is the part that it is a piece of, -1 for none: who has that has this, too.
type Part struct {
	Bytes, Items int64
	Of           int32
}

// Move is one transfer: what is at the sources is added up and put at the destination. By is
// the rank whose threads or whose NIC does it.
type Move struct {
	By      int32
	Way     Way
	Sources []Place
	To      Place
}

// Phase is what happens between two meetings of all ranks.
type Phase struct {
	Name  string
	Moves []Move
	// Meet: all ranks wait for each other by flags before it.
	Meet bool
	// Serial: a thread loads from one peer after the other; else from all at a time.
	Serial bool
}

// Goal is what must be at a place at the end: the contributions of so many ranks, each once.
type Goal struct {
	Place
	From []int32
}

// Plan is one operation of a kernel of serving.
type Plan struct {
	Op, Kernel string
	Ranks      int
	Parts      []Part
	// Has are the places that are full at the beginning.
	Has    []Place
	Phases []Phase
	Goals  []Goal
	// Meet: all ranks wait for each other at the end.
	Meet bool
	// Blocks of Threads threads each; 0 where no kernel takes part.
	Blocks, Threads int
	// Tokens is the load of a kernel that dispatches or combines; nil for others.
	Tokens *Tokens
	// Assumed says what of the plan is assumed and not known.
	Assumed []string

	owner map[int32]int32 // rank whose tokens a part has, of plans of experts that go by stages
}

// Tokens is what a kernel that moves tokens does on the busiest rank.
type Tokens struct {
	Combine, LowLatency bool
	// Count are a rank's tokens of so many Values. Copies is how many of a token go to ranks,
	// Crossing to nodes where those are several, of Bytes each.
	Count, Values    int64
	Copies, Crossing float64
	Bytes            int64
	// Groups is how many groups of warps a block has, each for an expert (low latency).
	Groups int
	Remote bool // some go between nodes
}
