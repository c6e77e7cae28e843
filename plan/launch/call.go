package launch

import (
	"fmt"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/connect"
	"github.com/simccl/simccl/plan"
	"github.com/simccl/simccl/plan/sym"
	"github.com/simccl/simccl/units"
)

// Call is one call of a group on its communicator. All members issue the same calls in the same order, except
// coll.Send and coll.Recv, which only Rank issues.
type Call struct {
	Func  coll.Func
	Type  coll.DataType
	Op    coll.RedOp // of calls that reduce
	Count int64      // NCCL's count argument, in elements
	Root  int32      // of rooted calls
	// Rank issues a coll.Send to, or a coll.Recv from, Peer.
	Rank, Peer int32
	InPlace    bool
	// Windows says which buffers are in symmetric windows (ncclCommWindowRegister with
	// NCCL_WIN_COLL_SYMMETRIC).
	Windows sym.Windows
	// Registered: all buffers are registered (ncclCommRegister).
	Registered bool
	// Misalign is copied to plan.Request.
	Misalign int64
	// Same: an AllToAll of one block to all (plan.Request).
	Same bool
}

// Bytes returns the size of a call as NCCL prints it: count times the size of its type.
func (c *Call) Bytes() units.Bytes { return units.Bytes(c.Count) * c.Type.Size() }

// p2p reports whether NCCL executes a call as sends and receives.
func (c *Call) p2p() bool { return c.Func.IsP2P() }

// request returns the call as a plan's request, without a choice of algorithm.
func (c *Call) request() plan.Request {
	return plan.Request{Func: c.Func, Count: c.Count, Type: c.Type, Op: c.Op, Root: c.Root,
		InPlace: c.InPlace, Misalign: c.Misalign}
}

// Op is the input for a choice of algorithm: a call, or several of one function, reduction and type with the
// sum of their counts.
type Op struct {
	Func  coll.Func
	Type  coll.DataType
	RedOp coll.RedOp
	Count int64
	Pipe  int // collectives of the group per channel, at least 1
}

// Choice is an algorithm with its protocol and numbers of channels and warps.
type Choice struct {
	Algo     coll.Algorithm
	Proto    coll.Protocol
	Channels int // largest number of channels
	Warps    int
}

// Comm is a communicator with its cost model and settings.
type Comm struct {
	Layout *connect.Layout
	// Choose is the communicator's cost model.
	Choose func(Op) (Choice, error)
	// Params and SlowNVLS are copied to every plan.Request.
	Params   plan.Params
	SlowNVLS bool
	// Symmetric chooses kernels for calls whose buffers are in windows; nil if the communicator has no
	// symmetric kernels.
	Symmetric *sym.Comm
	// Register changes the request of a call for registered buffers, as NCCL does after its choice: fewer
	// channels, data stored into the receiver's buffer. nil: no buffer is registered.
	Register func(*plan.Request, *Call) error
	// ArgsBytes is the space for works in a kernel's arguments, FIFOBytes the space for the works of launched
	// kernels; 0: NCCL's defaults (NCCL_WORK_ARGS_BYTES, NCCL_WORK_FIFO_BYTES; init.cc:348).
	ArgsBytes, FIFOBytes int64
}

// Mode is how a group is launched.
type Mode uint8

// Modes: launched at once, or captured in a CUDA graph, whose works have memory of their own.
const (
	Eager Mode = iota
	Captured
)

// CallError reports a call that contradicts itself or the group.
type CallError struct {
	Call    int // index of the call
	Problem string
}

func (e *CallError) Error() string { return fmt.Sprintf("call %d of the group: %s", e.Call, e.Problem) }

func badCall(i int, format string, args ...any) error {
	return &CallError{Call: i, Problem: fmt.Sprintf(format, args...)}
}

// validate returns a *CallError for a call that is invalid on a communicator of n ranks.
func (c *Call) validate(i, n int) error {
	switch {
	case !c.Func.Valid() && c.Func != coll.Send && c.Func != coll.Recv:
		return badCall(i, "%d is no operation", c.Func)
	case !c.Type.Valid():
		return badCall(i, "%d is no data type", c.Type)
	case c.Func.Reduces() && !c.Op.Valid():
		return badCall(i, "%d is no reduction", c.Op)
	case c.Count < 0 || c.Count > maxCount/int64(n):
		return badCall(i, "%d elements; give 0 to %d", c.Count, maxCount/int64(n))
	case c.Func.Rooted() && (c.Root < 0 || int(c.Root) >= n):
		return badCall(i, "root %d is not a rank of %d; give 0 to %d", c.Root, n, n-1)
	case c.Func == coll.Send || c.Func == coll.Recv:
		if c.Rank < 0 || int(c.Rank) >= n || c.Peer < 0 || int(c.Peer) >= n {
			return badCall(i, "%v of rank %d with rank %d: ranks are 0 to %d", c.Func, c.Rank, c.Peer, n-1)
		}
	}
	return nil
}

// maxCount bounds counts so that no sum of traffic overflows.
const maxCount = 1 << 50
