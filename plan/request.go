package plan

import (
	"errors"
	"fmt"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/units"
)

// Request is an operation with the choices that the tuner (or a user) made for it.
type Request struct {
	Func     coll.Func
	Count    int64 // elements, with NCCL's meaning of count for each operation
	Type     coll.DataType
	Op       coll.RedOp // AllReduce, ReduceScatter and Reduce only
	Root     int32      // rooted operations only; of coll.Send, a message, the sender
	Peer     int32      // of coll.Send: the receiver
	InPlace  bool
	Algo     coll.Algorithm // ignored for send/recv operations
	Proto    coll.Protocol  // likewise
	Channels int            // nMaxChannels of the cost model
	Warps    int            // nWarps of the cost model
	// SlowNVLS is set if the cost model gives NVLS all-reduce less bandwidth than the rules' SlowNVLS:
	// between nodes NCCL then uses smaller chunks.
	SlowNVLS bool
	// Cut is the share of each channel if the operation shares its kernel with others (plan/launch); nil for
	// an operation alone.
	Cut *Cut
	// Direct: the buffers are registered, so that a peer on the node stores into the receiver's own buffer;
	// no data is copied out of a FIFO.
	Direct bool
	// Apart is the distance in bytes between the starts of consecutive ranks' blocks in a shortened plan
	// (Plan.Shorten), as in the whole; 0: the size of a block.
	Apart int64
	// Misalign is the offset in bytes of the buffers from an aligned address.
	Misalign int64
	// Pairs are the counts of an AllToAll between unequal ranks; Count is their mean, rounded up. nil: all
	// are Count.
	Pairs *coll.Pairs
	// Same: an AllToAll in which each rank sends one block to all: RCCL's direct AllGather.
	Same bool
	// Sums: an AllToAll whose blocks each rank then adds up by a kernel of SumBlocks blocks of SumThreads
	// threads: RCCL's direct ReduceScatter.
	Sums                  bool
	SumBlocks, SumThreads int
	// Way names the method by which RCCL executes the operation without an algorithm; empty: by an algorithm.
	// Otherwise says what to set so that an algorithm is used.
	Way, Otherwise string
	Params         Params
}

// BlockStep returns the distance in bytes between the blocks of consecutive ranks.
func (r *Request) BlockStep() int64 {
	if r.Apart > 0 {
		return r.Apart
	}
	return r.Count * int64(r.Type.Size())
}

// Params are the settings that affect how work is split. The zero value is NCCL's default.
type Params struct {
	P2PLLThreshold   units.Opt[int64] // NCCL_P2P_LL_THRESHOLD, 16384 bytes per channel
	ChunkSize        units.Opt[int64] // NCCL_CHUNK_SIZE of send/recv, 0 = computed
	P2PGroupSize     units.Opt[int64] // NCCL_P2P_SCHEDULE_GROUP_SIZE, 8
	NVLSTreeMaxChunk units.Opt[int64] // NCCL_NVLSTREE_MAX_CHUNKSIZE, 64 KiB from 4 nodes on, else none
	// NCCL_NET_SHARED_BUFFERS: with 0, send/recv over the network has LL buffers
	NetSharedBuffers units.Opt[int64]
	AllocP2PNetLL    units.Opt[int64] // NCCL_ALLOC_P2P_NET_LL_BUFFERS: 1 adds them to shared ones

	// Cancelled is polled by build.Plan, check.Plan and check.Execute: it returns nil to continue, else the
	// reason to stop, like a context's Err. It affects no decision. nil: never cancelled.
	Cancelled func() error
}

// Poll returns the result of Cancelled; nil without one.
func (p *Params) Poll() error {
	if p.Cancelled == nil {
		return nil
	}
	if err := p.Cancelled(); err != nil {
		return fmt.Errorf("plan: %w", err)
	}
	return nil
}

// ErrUnsupported is matched by every UnsupportedError.
var ErrUnsupported = errors.New("unsupported plan")

// UnsupportedError says which combination cannot be planned, and why: NCCL has no such kernel, or simccl does
// not model it.
type UnsupportedError struct {
	What string // "broadcast with Tree"
	Why  string // "NCCL has only Ring for it"
}

func (e *UnsupportedError) Error() string { return fmt.Sprintf("%s: %s", e.What, e.Why) }

// Is makes errors.Is(err, ErrUnsupported) hold.
func (e *UnsupportedError) Is(target error) bool { return target == ErrUnsupported }

// RequestError reports a request that contradicts itself or its communicator.
type RequestError struct {
	Field   string // "Root"
	Problem string // "7 is not a rank of 4; give 0 to 3"
}

func (e *RequestError) Error() string { return fmt.Sprintf("plan request: %s: %s", e.Field, e.Problem) }

// Elements returns the count and element size that NCCL works with: all_gather
// and broadcast are counted in bytes (enqueue.cc:2471).
func (r *Request) Elements() (count int64, size units.Bytes) {
	if r.Func == coll.AllGather || r.Func == coll.Broadcast {
		return r.Count * int64(r.Type.Size()), 1
	}
	return r.Count, r.Type.Size()
}
