package build

import (
	"math/bits"

	"github.com/simccl/simccl/plan"
)

// patThreads is the number of worker threads of a PAT kernel (NCCL_PAT_NWORKERS, include/collectives.h:377).
const patThreads = 512

// patPiece is one piece of a block that moves: from a received step or the rank's own input, to a sent step
// or its own output.
type patPiece struct {
	RecvDim, SendDim   int   // distances 2^Dim; -1: local
	RecvOff, SendOff   int64 // elements in the step
	Ahead              int64 // number of steps beyond the next one
	PostRecv, PostSend bool  // the step ends with this piece
	In, Out            int64 // elements in the input, in the output
	Elems              int64 // of the piece
	Offset             int64 // element of a block at which the chunk begins
	skip               bool  // no rank has this block
}

// patConfig is the share of one rank and channel, in elements unless a name says otherwise.
type patConfig struct {
	Scatters     bool // reduce-scatter; false: all-gather
	Rank, Ranks  int
	Block        int64 // elements of a rank's block
	Begin, End   int64 // of the channel's share in a block
	Chunk        int64 // full chunk
	ChunkBytes   uint64
	ChannelBytes uint64 // the channel's share of a block
}

// patDims returns the number of distances among the given number of ranks.
func patDims(ranks int) int { return bits.Len(uint(ranks - 1)) }

// patWalk visits the pieces that PAT (parallel aggregated trees) moves on one rank and channel, for
// all-gather and reduce-scatter. It counts in ranks, blocks and elements and knows no buffer or connection.
// Its arithmetic is that of NCCL's PatRSAlgorithm and PatAGAlgorithm (include/collectives.h:411-900), on
// which both ends of a connection must agree.
//
// A rank names a block by the distance of its owner. Blocks are processed in aggregates of agg blocks that
// are delta places apart, of which post share a FIFO step. With 8 ranks agg is 4 and delta 2: blocks 0, 2, 4
// and 6 are one aggregate, blocks 1, 3, 5 and 7 the other. With little data post is 4 too and an aggregate
// travels as one step; with much data it is 1, and each block is a step of its own. as is the aggregate (its
// first block), a the index of the block in it.
type patWalk struct {
	scatters bool
	// elements: of the chunk, of the share, of a rank's block, of a full chunk
	offset, end, count, chunk int64
	nelem                     int64 // elements of this chunk
	rank, n, pow2             int
	post, agg, delta, groups  int
	phase, scale, as, a       int
	lastA                     int   // number of blocks of the phase
	firstMet                  int   // the a at which the current peer was first met (reduce-scatter)
	ahead                     int64 // steps filled beyond the next one to be posted (reduce-scatter)
	done                      bool

	// All-gather: the order in which aggregates are visited.
	asDim, v          int
	bitCount, bitStep [32]int
}

// start begins at the first piece.
func (w *patWalk) start(c *patConfig) {
	*w = patWalk{scatters: c.Scatters, offset: c.Begin, end: c.End, count: c.Block, chunk: c.Chunk,
		rank: c.Rank, n: c.Ranks, pow2: 1 << patDims(c.Ranks)}
	w.aggregate(c.ChunkBytes, c.ChannelBytes)
	if w.scatters {
		w.resetScatter()
	} else {
		w.resetGather()
	}
}

// next returns the next piece; false at the end.
func (w *patWalk) next(t *patPiece) bool {
	for !w.done {
		t.skip = w.a >= w.lastA
		if !t.skip {
			*t = patPiece{RecvDim: -1, SendDim: -1, Elems: w.nelem, Offset: w.offset}
		}
		if w.scatters {
			if !t.skip {
				w.scatterPiece(t)
			}
			w.advanceScatter()
		} else {
			if !t.skip {
				w.gatherPiece(t)
			}
			w.advanceGather()
		}
		if !t.skip {
			return true
		}
	}
	return false
}

// aggregate computes how many blocks share a step, and then how many steps are in flight at once: first as
// many blocks as fit into the bytes of one chunk, then up to FIFOSteps such steps.
func (w *patWalk) aggregate(chunkBytes, channelBytes uint64) {
	w.delta, w.agg = w.pow2, 1
	for chunkBytes/(channelBytes*uint64(w.agg)) >= 2 && w.agg < w.n/2 {
		w.agg *= 2
		w.delta /= 2
	}
	w.post = w.agg
	w.groups = min(patThreads/plan.WarpSize, w.post)
	for d := plan.FIFOSteps; d > 1 && w.agg < w.n/2; d /= 2 {
		w.agg *= 2
		w.delta /= 2
	}
}

// resetBlocks begins a phase: phases 2 and later process 1/(2·scale) of the aggregate.
func (w *patWalk) resetBlocks() {
	w.a, w.lastA = 0, w.agg
	if w.phase >= 2 {
		w.lastA /= 2 * w.scale
	}
}

// inStep returns the offset in elements of the i-th block within its FIFO step.
func (w *patWalk) inStep(i int) int64 { return int64(i%w.post) * w.nelem }

// fills reports whether the i-th block is the last of its step.
func (w *patWalk) fills(i int) bool { return i%w.post == w.post-1 }

// block returns the first element of the block of the rank at a distance.
func (w *patWalk) block(away int) int64 {
	return int64((w.rank+w.n+away)%w.n)*w.count + w.offset
}

// lowestBit returns the index of the lowest set bit; -1 for 0.
func lowestBit(i int) int {
	if i == 0 {
		return -1
	}
	return bits.TrailingZeros(uint(i))
}

// mirrored returns i with its bits below size in opposite order and inverted:
// with size 8, 1 (001) gives 3 (011), for its mirror image is 100.
func mirrored(i, size int) int {
	r := 0
	for mask, image := 1, size/2; mask < size; mask, image = mask<<1, image>>1 {
		if i&mask == 0 {
			r += image
		}
	}
	return r
}

// newPeer reports whether a new distance starts at block i: at the numbers below pow2 in which only leading
// bits are set; with 8 these are 0, 4, 6 and 7.
func newPeer(i, pow2 int) bool { return bits.OnesCount(uint((i^(pow2-1))+1)) == 1 }
