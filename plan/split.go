package plan

import "github.com/simccl/simccl/units"

// Part is one channel's share and its division into chunks.
type Part struct {
	// elements (of Split.ElemSize bytes) of one channel; of each rank's block for all_gather and
	// reduce_scatter
	Count      int64
	ChunkSize  units.Bytes // payload of a full chunk
	SliceSize  units.Bytes // payload of a full slice
	ChunkSteps int         // FIFO steps of a chunk
	SliceSteps int         // FIFO steps of a slice
	NSteps     int         // FIFO steps of the whole part, as proxies count them
	LoopSize   units.Bytes // bytes of one iteration of the loop over chunks
	// distinguishes equal parts that differ in the operation from which the plan was shortened
	// (Plan.DividedAs); else 0
	Kind uint8
}

// Split is the distribution of an operation over channels: the first channel has part Lo, the last (if there
// are two or more) Hi, those between Mid each.
type Split struct {
	ChannelLo, ChannelHi int // inclusive
	NChannels            int // 0: the operation is empty
	ElemSize             units.Bytes
	Lo, Mid, Hi          Part // zero if there is no such channel
	// Striped is CollNet's division: Lo is the whole operation, and its chunks go to the channels
	// round-robin, one for each head.
	Striped bool
}
