package plan

import "github.com/simccl/simccl/units"

// Part is how one channel cuts its share into chunks.
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
	// sets parts apart that are equal, but not in the operation that this is a piece of (Plan.DividedAs);
	// else 0
	Kind uint8
}

// Split is how an operation is spread over channels: the first channel does
// Lo, the last (where there are two or more) Hi, those between Mid each.
type Split struct {
	ChannelLo, ChannelHi int // inclusive
	NChannels            int // 0: nothing to do
	ElemSize             units.Bytes
	Lo, Mid, Hi          Part // zero where there is no such channel
	// Striped is how CollNet divides: Lo is the whole operation, and its chunks
	// go to the channels round-robin, one of every head to each.
	Striped bool
}
