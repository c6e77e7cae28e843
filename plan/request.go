package plan

import (
	"errors"
	"fmt"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/units"
)

// Request is the operation and what the tuner (or a user) chose for it.
type Request struct {
	Func     coll.Func
	Count    int64 // elements, with NCCL's meaning of count per operation
	Type     coll.DataType
	Op       coll.RedOp // AllReduce, ReduceScatter and Reduce only
	Root     int32      // rooted operations only; of coll.Send, a message, the sender
	Peer     int32      // of coll.Send: the receiver
	InPlace  bool
	Algo     coll.Algorithm // ignored for send/recv operations
	Proto    coll.Protocol  // likewise
	Channels int            // nMaxChannels of the cost model
	Warps    int            // nWarps of the cost model
	// SlowNVLS is set where the cost model gives NVLS all-reduce less than the
	// rules' SlowNVLS: between nodes NCCL then cuts it smaller.
	SlowNVLS bool
	// Cut is what each channel does where the operation shares its kernel with
	// others (plan/launch); nil for an operation alone.
	Cut *Cut
	// Direct: the buffers are registered, so that a peer on the node stores into the
	// receiver's own; nothing is copied out of a FIFO.
	Direct bool
	// Apart is how many bytes the ranks' blocks begin behind each other in a part of an
	// operation (Plan.Shorten): as in the whole; 0: as many as a block has.
	Apart int64
	// Misalign is by how many bytes the buffers begin behind an aligned address.
	Misalign int64
	// Pairs are the counts of an AllToAll between unequal ranks, of which Count is the
	// mean, rounded up; nil: all are Count.
	Pairs *coll.Pairs
	// Way is how RCCL does it in place of an algorithm, empty where by one; Otherwise is what to set
	// so that an algorithm does it.
	Way, Otherwise string
	Params         Params
}

// BlockStep is how many bytes the blocks of two ranks in a row are apart.
func (r *Request) BlockStep() int64 {
	if r.Apart > 0 {
		return r.Apart
	}
	return r.Count * int64(r.Type.Size())
}

// Params are the settings that bear on how work is split. The zero value is
// NCCL's default.
type Params struct {
	P2PLLThreshold   units.Opt[int64] // NCCL_P2P_LL_THRESHOLD, 16384 bytes per channel
	ChunkSize        units.Opt[int64] // NCCL_CHUNK_SIZE of send/recv, 0 = computed
	P2PGroupSize     units.Opt[int64] // NCCL_P2P_SCHEDULE_GROUP_SIZE, 8
	NVLSTreeMaxChunk units.Opt[int64] // NCCL_NVLSTREE_MAX_CHUNKSIZE, 64 KiB from 4 nodes on, else none
	// NCCL_NET_SHARED_BUFFERS: 0 gives send/recv over the network LL buffers
	NetSharedBuffers units.Opt[int64]
	AllocP2PNetLL    units.Opt[int64] // NCCL_ALLOC_P2P_NET_LL_BUFFERS: 1 gives them beside the shared ones

	// Cancelled is polled by build.Plan, check.Plan and check.Execute:
	// nil to continue, else the reason to stop, as a context's Err. It decides nothing. Nil:
	// never.
	Cancelled func() error
}

// Poll checks Cancelled.
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

// UnsupportedError says which combination cannot be planned, and why: NCCL
// has no such kernel, or simccl does not model it.
type UnsupportedError struct {
	What string // "broadcast with Tree"
	Why  string // "NCCL has only Ring for it"
}

func (e *UnsupportedError) Error() string { return fmt.Sprintf("%s: %s", e.What, e.Why) }

// Is makes errors.Is(err, ErrUnsupported) hold.
func (e *UnsupportedError) Is(target error) bool { return target == ErrUnsupported }

// RequestError is a request that contradicts itself or its communicator.
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
