package plan

import (
	"errors"
	"fmt"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/connect"
	"github.com/simccl/simccl/units"
)

// Request is the operation and what the tuner (or a user) chose for it.
type Request struct {
	Func     coll.Func
	Count    int64 // elements, with NCCL's meaning of count per operation
	Type     coll.DataType
	Op       coll.RedOp // AllReduce, ReduceScatter and Reduce only
	Root     int32      // rooted operations only
	InPlace  bool
	Algo     coll.Algorithm // ignored for send/recv operations
	Proto    coll.Protocol  // likewise
	Channels int            // nMaxChannels of the cost model
	Warps    int            // nWarps of the cost model
	// SlowNVLS is set where the cost model gives NVLS all-reduce less than 150
	// GB/s: between nodes NCCL then cuts it smaller (enqueue.cc:2046).
	SlowNVLS bool
	Params   Params
}

// Params are the settings that bear on how work is split. The zero value is
// NCCL's default.
type Params struct {
	P2PLLThreshold   units.Opt[int64] // NCCL_P2P_LL_THRESHOLD, 16384 bytes per channel
	ChunkSize        units.Opt[int64] // NCCL_CHUNK_SIZE of send/recv, 0 = computed
	P2PGroupSize     units.Opt[int64] // NCCL_P2P_SCHEDULE_GROUP_SIZE, 8
	NVLSTreeMaxChunk units.Opt[int64] // NCCL_NVLSTREE_MAX_CHUNKSIZE, 64 KiB from 4 nodes on, else none
	NetSharedBuffers units.Opt[int64] // NCCL_NET_SHARED_BUFFERS: 0 gives send/recv over the network LL buffers
	AllocP2PNetLL    units.Opt[int64] // NCCL_ALLOC_P2P_NET_LL_BUFFERS: 1 gives them beside the shared ones

	// Cancelled is asked now and then by Build, Check and Execute: nil to go on, else why to end,
	// as a context's Err. It decides nothing. Nil: never.
	Cancelled func() error
}

// poll asks whether to go on.
func (p *Params) poll() error {
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

// isP2P tells the operations that NCCL runs as a group of sends and receives.
func isP2P(f coll.Func) bool { return f >= coll.SendRecv }

// maxBytes bounds a buffer so that no offset can overflow.
const maxBytes = 1 << 56

func (r *Request) validate(c *connect.Comm) error {
	switch {
	case c == nil || c.NRanks < 1:
		return &RequestError{"Comm", "has no ranks"}
	case r.Func >= coll.NumFuncs:
		return &RequestError{"Func", fmt.Sprintf("%d is no operation", r.Func)}
	case r.Type >= coll.NumDataTypes:
		return &RequestError{"Type", fmt.Sprintf("%d is no data type", r.Type)}
	case r.Count < 0:
		return &RequestError{"Count", fmt.Sprintf("%d is negative", r.Count)}
	case r.Count > maxBytes/int64(r.Type.Size())/int64(c.NRanks):
		return &RequestError{"Count", fmt.Sprintf("%d elements per rank are more than any memory", r.Count)}
	case r.Func.Rooted() && (r.Root < 0 || int(r.Root) >= c.NRanks):
		return &RequestError{"Root", fmt.Sprintf("%d is not a rank of %d; give 0 to %d", r.Root, c.NRanks, c.NRanks-1)}
	case r.Func.Reduces() && r.Op >= coll.NumRedOps:
		return &RequestError{"Op", fmt.Sprintf("%d is no reduction", r.Op)}
	}
	if c.NRanks == 1 || isP2P(r.Func) || r.Count == 0 { // nothing was chosen
		return nil
	}
	switch {
	case r.Algo >= coll.NumAlgorithms:
		return &RequestError{"Algo", fmt.Sprintf("%d is no algorithm", r.Algo)}
	case r.Proto >= coll.NumProtocols:
		return &RequestError{"Proto", fmt.Sprintf("%d is no protocol", r.Proto)}
	case r.Channels < 1:
		return &RequestError{"Channels", fmt.Sprintf("%d; give at least 1", r.Channels)}
	case r.Warps < 1 || r.Warps > 20:
		return &RequestError{"Warps", fmt.Sprintf("%d; a kernel has 1 to 20 warps", r.Warps)}
	}
	return r.supported(c)
}

// supported refuses what NCCL has no kernel for (device/generate.py) and what
// is not modelled here.
func (r *Request) supported(c *connect.Comm) error {
	what := fmt.Sprintf("%v with %v/%v", r.Func, r.Algo, r.Proto)
	no := func(why string) error { return &UnsupportedError{what, why} }
	if r.Proto != coll.Simple && r.Algo != coll.Ring && r.Algo != coll.Tree {
		return no("only Ring and Tree have LL and LL128 kernels")
	}
	avg := r.Func.Reduces() && r.Op == coll.Avg
	switch r.Algo {
	case coll.Ring:
		return nil
	case coll.Tree:
		if r.Func != coll.AllReduce {
			return no("only all_reduce has a Tree kernel")
		}
		return nil
	case coll.PAT:
		if r.Func != coll.AllGather && r.Func != coll.ReduceScatter {
			return no("PAT is for all_gather and reduce_scatter")
		}
		if avg {
			return no("PAT does not scale (enqueue.cc:1805)")
		}
		return nil
	case coll.NVLS:
		if r.Func == coll.Broadcast || r.Func == coll.Reduce {
			return no("NVLS has no rooted operations")
		}
		if c.NNodes > 1 && !c.CollNet.Enabled {
			return no("between nodes NVLS needs CollNet (in-network reduction), which the communicator has not")
		}
	case coll.NVLSTree:
		if r.Func != coll.AllReduce {
			return no("NVLSTree is for all_reduce")
		}
	default:
		return r.collNetSupported(c, no)
	}
	if avg {
		return no("the switch reduces sum, min and max only (device.h, ncclNvlsSupported)")
	}
	if len(c.NVLS) == 0 || len(c.NVLS[0].Heads) == 0 {
		return no("the communicator has no NVLS channels")
	}
	return nil
}

// Fewest warps that CollNet kernels divide among their groups.
const (
	directWarps = 12
	chainWarps  = 2
)

func (r *Request) collNetSupported(c *connect.Comm, no func(string) error) error {
	warps := func(least int) error {
		if r.Warps < least {
			return &RequestError{"Warps", fmt.Sprintf("%d; a kernel of %v has at least %d", r.Warps, r.Algo, least)}
		}
		return nil
	}
	switch {
	case !c.CollNet.Enabled:
		return no("the communicator has no CollNet (in-network reduction)")
	case c.MaxLocalRanks > maxDirect+1:
		return no(fmt.Sprintf("a node has %d ranks, and CollNet is for %d at most (enqueue.cc:1797)", c.MaxLocalRanks, maxDirect+1))
	case r.Algo == coll.CollNetChain && r.Func != coll.AllReduce:
		return no("only all_reduce has a CollNetChain kernel")
	case r.Algo == coll.CollNetChain:
		return warps(chainWarps)
	case r.Func == coll.Broadcast || r.Func == coll.Reduce:
		return no("CollNetDirect has no rooted operations")
	case len(c.CollNet.Heads) == 0 || len(c.CollNet.Heads[0]) == 0:
		return no("the communicator has no CollNetDirect heads")
	case len(c.CollNet.Heads[0]) == 1 && c.MinLocalRanks == 1 && c.MaxLocalRanks > 1:
		return no("nodes of one rank and of more cut chunks of different size (connect.cc:232, enqueue.cc:2032)")
	}
	return warps(directWarps)
}

// maxDirect is the most ranks that a head exchanges with (NCCL_MAX_DIRECT_ARITY,
// include/device.h:184).
const maxDirect = 7
