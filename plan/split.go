package plan

import (
	"fmt"
	"math/bits"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/connect"
	"github.com/simccl/simccl/units"
)

// minTrafficPerChannel is the least traffic for which a further channel is
// used (enqueue.cc:528).
const minTrafficPerChannel = 16 << 10

// Bytes that one grain of each protocol holds; chunks are whole grains
// (ncclProtoGrainSize, include/device.h:336).
const (
	grainLL     = 16
	grainLL128  = 1920
	grainSimple = 512
)

// Part is how one channel cuts its share.
type Part struct {
	Count      int64       // elements (of Split.ElemSize bytes) of one channel; of each rank's block for all_gather and reduce_scatter
	ChunkSize  units.Bytes // payload of a full chunk
	SliceSize  units.Bytes // payload of a full slice
	ChunkSteps int         // FIFO steps of a chunk
	SliceSteps int         // FIFO steps of a slice
	NSteps     int         // FIFO steps of the whole part, as proxies count them
	LoopSize   units.Bytes // bytes of one turn of the loop over chunks
}

// Split is how an operation is spread over channels: the first channel does
// Lo, the last (where there are two or more) Hi, those between Mid each.
type Split struct {
	ChannelLo, ChannelHi int // inclusive
	NChannels            int // 0: nothing to do
	ElemSize             units.Bytes
	Lo, Mid, Hi          Part // zero where there is no such channel
	// Striped is CollNet's way: Lo is the whole operation, of which every
	// channel takes a chunk (of every head) in turn.
	Striped bool
}

// Schedule computes the split of r over the channels of c (enqueue.cc:519-783,
// calcCollChunking 1979-2243). Send/recv operations have no Split: the zero
// Split is returned for them, for one rank and for an empty operation.
func Schedule(c *connect.Comm, r Request) (Split, error) {
	if err := r.validate(c); err != nil {
		return Split{}, err
	}
	if isP2P(r.Func) || c.NRanks == 1 || r.Count == 0 {
		return Split{}, nil
	}
	return schedule(c, &r)
}

// elements returns the count and element size that NCCL works with: all_gather
// and broadcast are counted in bytes (enqueue.cc:2471).
func (r *Request) elements() (int64, units.Bytes) {
	if r.Func == coll.AllGather || r.Func == coll.Broadcast {
		return r.Count * int64(r.Type.Size()), 1
	}
	return r.Count, r.Type.Size()
}

// trafficPerByte is how often a byte of count crosses a rank's ports
// (enqueue.cc:86).
func trafficPerByte(f coll.Func, nRanks int) int64 {
	switch f {
	case coll.AllReduce:
		return 2
	case coll.AllGather, coll.ReduceScatter:
		return int64(nRanks)
	}
	return 1
}

func divUp[T ~int64 | ~int](a, b T) T   { return (a + b - 1) / b }
func alignUp[T ~int64 | ~int](a, b T) T { return divUp(a, b) * b }

// cells is a division of a channel range by whole cells of data.
type cells struct{ lo, mid, hi, nMid int64 }

// divide gives each channel the cells that match its share of the traffic,
// following enqueue.cc:596-625 for the only task of a launch (which starts on
// channel 0 with no traffic yet).
func divide(total, perChannel, want int64, maxChannels int) cells {
	perChannel = min(total, perChannel)
	lo := want
	if maxChannels == 1 {
		lo = total
	}
	lo = min(total, lo)
	d := cells{lo: lo}
	d.nMid = (total - lo) / perChannel
	d.hi = (total - lo) % perChannel
	n := d.nMid + 1
	if d.hi != 0 {
		n++
	}
	if int64(maxChannels) < n {
		d.nMid = int64(maxChannels) - 2
		perChannel = (total - lo) / (d.nMid + 1)
		d.hi = perChannel + (total-lo)%(d.nMid+1)
	}
	if d.hi == 0 && d.nMid != 0 {
		d.hi = perChannel
		d.nMid--
	}
	if d.nMid != 0 {
		d.mid = perChannel
	}
	return d
}

// leastStep is the least step of a buffer that holds a grain, by protocol: LL has
// a flag beside each word, LL128 fills 120 of 128 bytes.
var leastStep = [...]int64{coll.LL: 2 * grainLL, coll.LL128: grainLL128 / 15 * 16, coll.Simple: grainSimple}

func schedule(c *connect.Comm, r *Request) (Split, error) {
	if r.reducesInNetwork(c) {
		return r.stripe(c)
	}
	count, es := r.elements()
	elem := int64(es)
	maxChannels := c.NChannels
	if r.Algo == coll.NVLS || r.Algo == coll.NVLSTree {
		maxChannels = c.NVLSChannels
	}
	if maxChannels < 1 {
		return Split{}, &RequestError{"Comm", "has no channels"}
	}
	// An LL byte is counted fourfold, both in the task's traffic and in the
	// size of a cell (enqueue.cc:422, 595).
	perByte := trafficPerByte(r.Func, c.NRanks)
	traffic := count * elem * perByte
	if r.Proto == coll.LL {
		traffic *= 4
		perByte *= 4
	}
	n := int64(min(r.Channels, maxChannels))
	perChannel := max(minTrafficPerChannel, max(minTrafficPerChannel, traffic)/n)

	cell := alignUp(divUp(minTrafficPerChannel, perByte), 16)
	perCell := cell * perByte
	d := divide(divUp(count*elem, cell), divUp(perChannel, perCell), divUp(perChannel, perCell), maxChannels)
	elems := cell / elem
	lo, mid, hi := d.lo*elems, d.mid*elems, d.hi*elems
	rest := divUp(count*elem, cell)*elems - count
	if hi != 0 {
		hi -= rest
	} else {
		lo -= rest
	}
	if step := int64(c.BuffSizes[r.Proto]) / FIFOSteps; step < leastStep[r.Proto] {
		return Split{}, &RequestError{"Comm", fmt.Sprintf("%v buffers of %d bytes hold no chunk; give at least %d", r.Proto, c.BuffSizes[r.Proto], leastStep[r.Proto]*FIFOSteps)}
	}
	s := Split{ElemSize: es}
	parts := int64(1)
	if r.Func == coll.AllGather || r.Func == coll.ReduceScatter {
		parts = int64(c.NRanks)
	}
	s.Lo = r.chunking(c, lo, lo*elem*parts)
	s.NChannels = 1
	if d.nMid != 0 {
		s.Mid = r.chunking(c, mid, mid*elem*parts)
		s.NChannels += int(d.nMid)
	}
	if hi != 0 {
		s.Hi = r.chunking(c, hi, hi*elem*parts)
		s.NChannels++
	}
	s.ChannelHi = s.NChannels - 1
	return s, nil
}

// chunking sizes the chunks of a channel's part of count elements, nBytes over
// all ranks.
func (r *Request) chunking(c *connect.Comm, count, nBytes int64) Part {
	p := Part{Count: count, ChunkSteps: 1, SliceSteps: 1}
	step := int64(c.BuffSizes[r.Proto]) / FIFOSteps
	if r.Proto == coll.Simple && r.Algo == coll.Ring {
		p.ChunkSteps, p.SliceSteps = ringSteps(r.Func)
	}
	chunk := step * int64(p.ChunkSteps)
	grain := int64(grainSimple)
	switch r.Proto {
	case coll.LL: // half of a line is flags
		chunk /= 2
		grain = grainLL
	case coll.LL128: // the last 8 bytes of a 128-byte line are flags
		chunk = chunk / 16 * 15
		grain = grainLL128
	}
	chunk = r.shrink(c, chunk, nBytes)
	chunk = chunk / grain * grain

	stepsPerLoop, chunksPerLoop := int64(1), int64(1)
	switch {
	case r.Algo == coll.NVLS || r.Algo == coll.NVLSTree:
		chunksPerLoop = int64(nHeads(c))
	case r.Algo == coll.Ring && r.Func == coll.AllReduce:
		stepsPerLoop, chunksPerLoop = int64(2*(c.NRanks-1)), int64(c.NRanks)
	case r.Algo == coll.Ring && (r.Func == coll.AllGather || r.Func == coll.ReduceScatter):
		stepsPerLoop, chunksPerLoop = int64(c.NRanks-1), int64(c.NRanks)
	}
	loop := chunksPerLoop * chunk
	p.NSteps = int(int32(stepsPerLoop * divUp(nBytes, max(loop, 1)) * int64(p.ChunkSteps)))
	p.ChunkSize = units.Bytes(chunk)
	p.SliceSize = units.Bytes(chunk / int64(p.ChunkSteps) * int64(p.SliceSteps))
	p.LoopSize = units.Bytes(loop)
	return p
}

// ringSteps gives the FIFO steps per chunk and per slice of a Simple ring
// (include/collectives.h:19-36).
func ringSteps(f coll.Func) (chunk, slice int) {
	switch f {
	case coll.AllReduce, coll.AllGather, coll.ReduceScatter:
		return FIFOSteps / 2, FIFOSteps / 4
	}
	return 1, 1
}

// shrink halves chunks where few of them would fill a part, so that the
// stages of a tree overlap (enqueue.cc:2031-2100). NCCL computes the products
// in 32 bits.
func (r *Request) shrink(c *connect.Comm, chunk, nBytes int64) int64 {
	switch {
	case r.Algo == coll.NVLS:
		chunk = min(chunk, int64(c.NVLSChunkSize))
		return shrinkSteps(chunk, nBytes, int64(nHeads(c)), nvlsTiers)
	case r.Algo == coll.NVLSTree:
		chunk = int64(c.NVLSChunkSize)
		limit := chunk
		if c.NNodes >= 4 {
			limit = 65536
		}
		chunk = min(chunk, int64(int32(r.Params.NVLSTreeMaxChunk.Or(limit))))
		return shrinkSteps(chunk, nBytes, int64(nHeads(c)), []tier{{32, 262144}, {16, 131072}, {4, 65536}, {1, 32768}})
	case r.Algo == coll.Tree && r.Proto == coll.LL128:
		ppn := float32(c.NRanks) / float32(c.NNodes)
		stages := float32(float64(1+bits.Len(uint(c.NNodes))-1) + float64(0.1*float64(ppn)))
		for float32(uint64(nBytes)/uint64(chunk)) < stages*64/ppn && chunk > 131072 {
			chunk /= 2
		}
		for float32(uint64(nBytes)/uint64(chunk)) < stages*16/ppn && chunk > 32768 {
			chunk /= 2
		}
	case r.Algo == coll.PAT:
		times := int32(32)
		if r.Func == coll.ReduceScatter {
			times = 16
		}
		for uint64(int64(int32(chunk)*times)) > uint64(nBytes) && chunk > 65536 {
			chunk /= 2
		}
	}
	return chunk
}

// nvlsTiers are the chunks of NVLS (enqueue.cc:2052).
var nvlsTiers = []tier{{64, 65536}, {8, 32768}, {2, 16384}}

// tier says: below times·heads·chunk bytes use chunks of at most size.
type tier struct{ times, size int64 }

func shrinkSteps(chunk, nBytes, heads int64, tiers []tier) int64 {
	for _, t := range tiers {
		if nBytes < t.times*heads*chunk && chunk > t.size {
			chunk = t.size
		}
	}
	return chunk
}

// nHeads returns the number of NVLS heads of a node.
func nHeads(c *connect.Comm) int { return len(c.NVLS[0].Heads) }
