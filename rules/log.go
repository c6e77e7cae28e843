package rules

// Log is the form of the lines that NCCL_DEBUG=INFO prints.
type Log struct {
	// RawIDs: links, the heads of path lines and the nets of a graph name a node
	// by its whole id in hexadecimal ("NVS/0", "NET/100000000000001"); else by host
	// and id in it ("NVS/0-0").
	RawIDs bool
	// FirstNetTwice: the net by which a channel leaves is printed with the number of
	// that by which it enters.
	FirstNetTwice bool
	// GPURanks: a graph names its GPUs by rank, all of them for NVLS too; else by
	// bus id, for NVLS the first.
	GPURanks bool
	// SkipLOC: links of kind LOC are left out of the system.
	SkipLOC bool
	// NoColl: nets are printed without whether they support CollNet.
	NoColl bool
	// WideRings: ranks of a ring have three digits at least and are twenty at most; else
	// as many digits as the last rank, in 128 bytes.
	WideRings bool
	// NVLSTuning: channels and chunks of NVLS have a line of their own.
	NVLSTuning bool
	// OpTime: the line of an operation has the numbers of algorithm and protocol
	// and the time of the cost model; else their names and the channels.
	// OpNoFunc: it does not name the operation.
	OpTime, OpNoFunc bool
}
