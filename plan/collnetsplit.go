package plan

import (
	"fmt"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/connect"
	"github.com/simccl/simccl/units"
)

// reducesInNetwork tells the algorithms that NCCL schedules as CollNet
// (enqueue.cc:402-413).
func (r *Request) reducesInNetwork(c *connect.Comm) bool {
	return r.Algo == coll.CollNetDirect || r.Algo == coll.CollNetChain || r.Algo == coll.NVLS && c.NNodes > 1
}

// stripe splits an operation for CollNet: as many channels as the cost model
// allows, whatever the size, take chunks in turn (enqueue.cc:568-597).
func (r *Request) stripe(c *connect.Comm) (Split, error) {
	n := min(r.Channels, c.NChannels)
	heads := int64(1)
	switch r.Algo {
	case coll.NVLS:
		n = min(n, c.NVLSChannels)
		heads = int64(nHeads(c))
	case coll.CollNetDirect:
		heads = int64(len(c.CollNet.Heads[0]))
	}
	if n < 1 {
		return Split{}, &RequestError{"Comm", "has no channels"}
	}
	step := int64(c.BuffSizes[coll.Simple]) / FIFOSteps
	if step < leastStep[coll.Simple] {
		return Split{}, &RequestError{"Comm", fmt.Sprintf("Simple buffers of %d bytes hold no chunk; give at least %d", c.BuffSizes[coll.Simple], leastStep[coll.Simple]*FIFOSteps)}
	}
	count, es := r.elements()
	nBytes := count * int64(es)
	if r.Func != coll.AllReduce {
		nBytes *= int64(c.NRanks)
	}
	chunk := r.stripeChunk(c, step, nBytes, int64(n), heads) / grainSimple * grainSimple
	if chunk < grainSimple {
		return Split{}, &RequestError{"Comm", fmt.Sprintf("chunks of NVLS are of %d bytes; give at least %d", c.NVLSChunkSize, grainSimple)}
	}
	loop := int64(n) * heads * chunk
	return Split{ChannelHi: n - 1, NChannels: n, ElemSize: es, Striped: true, Lo: Part{
		Count: count, ChunkSize: units.Bytes(chunk), SliceSize: units.Bytes(chunk), ChunkSteps: 1, SliceSteps: 1,
		NSteps: int(int32(divUp(nBytes, loop))), LoopSize: units.Bytes(loop)}}, nil
}

// stripeChunk sizes the chunks (enqueue.cc:2030-2055): smaller ones where few
// would pass through the stages of an algorithm.
func (r *Request) stripeChunk(c *connect.Comm, chunk, nBytes, channels, heads int64) int64 {
	// halve while there are fewer than so many chunks, down to a limit
	halve := func(few, limit int64) {
		for nBytes/(channels*heads*chunk) < few && chunk > limit {
			chunk /= 2
		}
	}
	switch r.Algo {
	case coll.CollNetDirect:
		stages := int64(2)
		if heads == 1 && c.MaxLocalRanks == 1 { // nothing but the network
			stages = 1
		}
		halve(64*stages, 131072)
		halve(8*stages, 32768)
	case coll.CollNetChain:
		chunk = min(chunk, 256<<10)
		stages := int64(c.NRanks / c.NNodes)
		halve(64*stages, 131072)
		halve(8*stages, 65536)
		halve(stages, 32768)
	default:
		limit := int64(c.NVLSChunkSize)
		if r.SlowNVLS {
			limit = 32768
		}
		chunk = shrinkSteps(min(chunk, limit), nBytes, channels*heads, nvlsTiers)
	}
	return chunk
}
