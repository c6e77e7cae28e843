package plan

import (
	"math/bits"

	"github.com/simccl/simccl/connect"
	"github.com/simccl/simccl/units"
)

// PAT (parallel aggregated trees): rank r exchanges with the ranks at distance
// 2^d. As long as data is small, the blocks of many ranks travel together in
// one step. One program per channel; the lockstep thread groups among which
// NCCL deals the ops are not told apart (they share every barrier).

// patThreads are the workers of a PAT kernel (NCCL_PAT_NWORKERS,
// include/collectives.h:377).
const patThreads = 512

// patDims is the number of distances.
func patDims(nRanks int) int { return bits.Len(uint(nRanks - 1)) }

// patPeer returns the rank at distance 2^dim towards which data flows:
// reduce-scatter sends upwards, all-gather downwards (prims_simple.h:658-671).
func (p *Plan) patPeer(rank int32, dim int) int32 {
	n := int32(p.Comm.NRanks)
	d := int32(1) << dim % n
	if p.kind == patReduceScatter {
		return (rank + d) % n
	}
	return (rank - d + n) % n
}

func (p *Plan) patConn(c *Conn) {
	dims, n := int32(patDims(p.Comm.NRanks)), int32(p.Comm.NRanks)
	c.Kind = connect.TreeRoute
	c.Channel = int32(p.Split.ChannelLo) + c.ID/(dims*n)
	c.Src = c.ID / dims % n
	c.Dst = p.patPeer(c.Src, int(c.ID%dims))
}

// patConnID returns the connection on which src sends at a distance.
func (p *Plan) patConnID(ch, src int32, dim int) int32 {
	dims, n := int32(patDims(p.Comm.NRanks)), int32(p.Comm.NRanks)
	return ((ch-int32(p.Split.ChannelLo))*n+src)*dims + int32(dim)
}

// patPort is one side of the connections of one distance.
type patPort struct {
	steps int64 // posted or released so far
	mark  int64 // how far, in elements of the endless FIFO, data has been put in or taken out
}

// patStep is one piece that the algorithm moves.
type patStep struct {
	recvDim, sendDim   int // -1: local
	recvOff, sendOff   int64
	ahead              int64
	postRecv, postSend bool
	inp, out           int64 // elements
	skip               bool
}

// patState walks through the phases; its arithmetic is that of NCCL's
// PatRSAlgorithm and PatAGAlgorithm (include/collectives.h:411-900), on which
// both ends of a connection must agree.
type patState struct {
	offset, end, count, chunk int64 // elements
	nelem                     int64
	rank, n, pow2             int
	// post pieces share a step; agg blocks are handled together, delta apart.
	post, agg, delta, groups int
	phase, scale, as, a      int
	lastA                    int
	skipped                  int // the a at which the current peer was first met (reduce-scatter)
	ahead                    int64
	done                     bool

	// all-gather: order in which positions are visited
	asDim, v          int
	bitCount, bitStep [32]int

	send, recv [32]patPort
	slot       int64 // elements of a FIFO step
	local      int64 // how far the local buffer has been handled
}

func (c *Cursor) openPAT() {
	p := c.p
	if c.pat == nil {
		c.pat = new(patState)
	}
	*c.pat = patState{
		offset: c.grid / c.es, end: (c.grid + c.total) / c.es, count: c.block / c.es, chunk: c.chunk / c.es,
		rank: int(c.pr.Rank), n: p.Comm.NRanks, pow2: 1 << patDims(p.Comm.NRanks),
		slot: int64(p.Comm.BuffSizes[p.Req.Proto]) / FIFOSteps / c.es,
	}
	c.pat.aggregate(uint64(c.chunk), uint64(c.total))
	c.from, c.to = c.fromBuf[:1], c.toBuf[:1]
	if p.kind == patAllGather {
		c.pat.asDim = bits.Len(uint(c.pat.delta - 1))
		c.pat.resetGather()
		c.next = (*Cursor).nextPATGather
	} else {
		c.pat.resetScatter()
		c.next = (*Cursor).nextPATScatter
	}
}

// aggregate decides how many blocks share a step, and then how many steps are
// in flight at once.
func (s *patState) aggregate(chunkBytes, channelBytes uint64) {
	s.delta, s.agg = s.pow2, 1
	for chunkBytes/(channelBytes*uint64(s.agg)) >= 2 && s.agg < s.n/2 {
		s.agg *= 2
		s.delta /= 2
	}
	s.post = s.agg
	s.groups = min(patThreads/WarpSize, s.post)
	for d := FIFOSteps; d > 1 && s.agg < s.n/2; d /= 2 {
		s.agg *= 2
		s.delta /= 2
	}
}

func (s *patState) full(a int) bool { return a%s.post == s.post-1 }

// lowestBit returns the index of the lowest set bit, -1 where there is none.
func lowestBit(i int) int {
	if i == 0 {
		return -1
	}
	return bits.TrailingZeros(uint(i))
}

// reversed returns i with its bits below size mirrored, inverted on demand.
func reversed(i, size int, invert bool) int {
	r := 0
	for mask, image := 1, size/2; mask < size; mask, image = mask<<1, image>>1 {
		if (i&mask != 0) != invert {
			r += image
		}
	}
	return r
}

// newPeer tells the numbers below pow2 of which only leading bits are set:
// there the next distance starts.
func newPeer(i, pow2 int) bool { return bits.OnesCount(uint((i^(pow2-1))+1)) == 1 }

// block returns the first element of the block of the rank s places away.
func (s *patState) block(away int) int64 {
	return int64((s.rank+s.n+away)%s.n)*s.count + s.offset
}

// emitPAT turns a piece into an op and counts posted and released steps.
func (c *Cursor) emitPAT(op *Op, t *patStep, do Do, step int64) {
	s := c.pat
	dims := func(rank int32, d int) int32 { return c.p.patConnID(c.pr.Channel, rank, d) }
	if t.recvDim >= 0 {
		do |= Recv
		c.fromBuf[0] = dims(c.patSource(t.recvDim), t.recvDim)
		if !t.postRecv {
			do |= HoldRecv
		}
	}
	if t.sendDim >= 0 {
		do |= Send
		c.toBuf[0] = dims(c.pr.Rank, t.sendDim)
		if !t.postSend {
			do |= HoldSend
		}
	}
	c.emit(op, do, s.nelem*c.es)
	op.Step = int32(step)
	op.Chunk = int32((s.offset*c.es - c.grid) / max(c.chunk, 1))
	op.RecvOff, op.SendOff = units.Bytes(t.recvOff*c.es), units.Bytes(t.sendOff*c.es)
	if t.recvDim >= 0 && t.postRecv {
		s.recv[t.recvDim].steps++
	}
	if t.sendDim >= 0 && t.postSend {
		s.send[t.sendDim].steps++
	}
}

// patSource returns the rank from which data comes at a distance.
func (c *Cursor) patSource(dim int) int32 {
	n := int32(c.p.Comm.NRanks)
	d := int32(1) << dim % n
	if c.p.kind == patReduceScatter {
		return (c.pr.Rank - d + n) % n
	}
	return (c.pr.Rank + d) % n
}
