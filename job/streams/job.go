package streams

import (
	"context"
	"math"

	"github.com/simccl/simccl/units"
	"github.com/simccl/simccl/workload"
)

// Cost is the cost of a call when it runs alone.
type Cost struct {
	// Time is from the begin of all its kernels to the end of the last. A call with Time 0 waits for all its
	// members, too.
	Time units.Time
	// Ends is when each member's kernel ends, by rank of the communicator; nil: all at Time. For a send, the
	// two entries are sender and receiver.
	Ends []units.Time
	// Slack is how much later than the others a member's kernel may begin without delaying them, by rank of
	// the communicator; nil: 0 for all.
	Slack []units.Time
	// Empty: no kernel is launched, for example with a count of 0.
	Empty bool
	// Buffered: the connection's buffers hold the message, so its sender does not wait for the receiver.
	// Receive is then the time of the receiver's kernel once all data have arrived.
	Buffered bool
	Receive  units.Time
	// SMs is the number of SMs that a member's kernel holds: one per channel.
	SMs int32
	// Needs are the resources that the call uses when it runs alone; of a buffered message, until the sender
	// ends.
	Needs []Need
	// Behind lists communicators behind whose calls this call waits on links with room for both, and its rate
	// while such a call is in progress.
	Behind []Behind
	// Slowed lists how much longer the call takes when its kernels are slowed, by ascending Kernels,
	// interpolated linearly. Empty: as much longer as its kernels.
	Slowed []Slowed
}

// Slowed says: a call takes Takes times as long (at least 1) when its kernels and the things they wait for
// take Kernels times as long. If what they wait for takes longer than that by a factor difference of d, the
// call takes another d times Waits longer.
type Slowed struct{ Kernels, Takes, Waits float64 }

// Behind is a call's rate, above 0 and at most 1, while a collective is in progress on the communicators that
// share the resources of communicator Comm.
type Behind struct {
	Comm int32
	Rate float64
}

// Need is a call's use of a resource as a share of its capacity, above 0 and at most 1.
type Need struct {
	Resource int32
	// Share is the need when one other user shares the resource, Bytes the part that the bytes alone explain
	// (0: all of Share). The difference comes from bursts that collide and leave the resource idle in
	// between; it falls with the number of users m, to 2/m of that.
	Share, Bytes float64
}

// beside returns the need when the given number of users share the resource.
func (n *Need) beside(users int) float64 {
	if users <= 2 || n.Bytes == 0 {
		return n.Share
	}
	return n.Bytes + math.Max(0, n.Share-n.Bytes)*2/float64(users)
}

// GPU holds the sharing parameters of a rank's GPU. The zero value shares nothing.
type GPU struct {
	SMs int32
	// Memory is the bandwidth of device memory in GB/s.
	Memory float64
	// Busy is how much longer a collective's kernels take while compute holds all other SMs, and Traffic how
	// much longer in addition while it uses all of the memory bandwidth; 0.5 means half as long again.
	Busy, Traffic float64
	// Wait replaces Traffic for the things that kernels wait for: flags, fences, their begin.
	Wait float64
	// Tail is how much longer a compute kernel with one wave of blocks takes if some of them must wait for
	// SMs that collectives hold: about one tile of a block, at most the kernel's own time.
	Tail units.Time
}

// Input is a job to be run.
type Input struct {
	Program *workload.Program
	// Costs are indexed as Program.Calls. The calls of one operation have equal Costs, or differ in Time only
	// (see longest).
	Costs []Cost
	// Part is, by list and step, the step of the same group whose kernel executes the step's call; -1: none.
	// Lists may be nil.
	Part [][]int32
	// Resources is the number of resources; Needs refer to 0 … Resources-1.
	Resources int
	// GPUs are indexed by rank; nil: compute and collectives do not slow each other.
	GPUs []GPU
	// Backend simulates the calls instead of their Costs; nil: none.
	Backend Backend
}

// Backend simulates calls step by step.
type Backend interface {
	// Open creates an operation of a call, none of whose kernels has begun.
	Open(call int32) (operation int32, err error)
	// Start begins the kernel of a member, a rank of the communicator, at a time.
	Start(operation, member int32, at units.Time)
	// Slow sets the slowdown of the kernels of a rank of the job from now on.
	Slow(rank int32, pace Pace)
	// Next returns the time of the next event; ok is false if there is none.
	Next() (at units.Time, ok bool)
	// Advance handles the events of an instant, and calls ended for each kernel that ends.
	Advance(at units.Time, ended func(operation, member int32)) error
}

// Span is the begin and end of a step. For a call, Begin is when its kernel began, Issued when its stream
// reached it.
type Span struct{ Issued, Begin, End units.Time }

// Result is the outcome of a job.
type Result struct {
	// Finish is when each rank ends.
	Finish []units.Time
	// Spans are the spans of each rank's steps, by rank, then index in its list.
	Spans [][]Span
	// Alone is the time of each call by itself.
	Alone []units.Time
	// Operations is the number of collectives and messages.
	Operations int64
	Events     int64
}

// Elapsed returns when the last rank ends.
func (r *Result) Elapsed() units.Time {
	var t units.Time
	for _, f := range r.Finish {
		t = max(t, f)
	}
	return t
}

// Run runs a job. The Program must have passed Lint. Errors are *DeadlockError, those of the Backend, and the
// context's.
func Run(ctx context.Context, in *Input) (*Result, error) {
	r := newRun(in)
	if err := r.play(ctx); err != nil {
		return nil, err
	}
	return r.result(), nil
}
