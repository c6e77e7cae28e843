package streams

import (
	"context"
	"math"

	"github.com/simccl/simccl/units"
	"github.com/simccl/simccl/workload"
)

// Cost is what a call takes by itself.
type Cost struct {
	// Time is from the begin of all its kernels until the last of them ends. A call of no
	// time waits for all its members, too.
	Time units.Time
	// Ends is when each member's kernel ends, by rank of the communicator; nil: all
	// at Time. Of a send they are those of sender and receiver.
	Ends []units.Time
	// Slack is by how much a member's kernel may begin later than the others'
	// without delaying them, by rank of the communicator; nil: not at all.
	Slack []units.Time
	// Empty: nothing is launched, as of a count of 0.
	Empty bool
	// Buffered: the connection's buffers hold the message, and its sender does not wait for
	// the receiver. Receive is how long the receiver's kernel takes then, where all data are
	// there.
	Buffered bool
	Receive  units.Time
	// SMs is how many SMs a member's kernel holds: one a channel.
	SMs int32
	// Needs are the resources that the call uses while it runs alone; of a buffered message,
	// until the sender ends.
	Needs []Need
	// Behind are communicators' calls that the call waits behind on links that have room
	// for both: of each its rate while such a call is in progress.
	Behind []Behind
	// Slowed is by how much longer it takes where its kernels take longer, by ascending
	// factors of that; between them it grows evenly. Empty: as much as its kernels.
	Slowed []Slowed
}

// Slowed is that a call takes Takes times as long where its kernels take Kernels times as
// long, and what they wait for too, both at least 1; and Waits times its time more for each
// time more that what they wait for takes.
type Slowed struct{ Kernels, Takes, Waits float64 }

// Behind is a call's rate, above 0 and at most 1, while a collective is in progress of the
// communicators that have the resources of one, by its index.
type Behind struct {
	Comm int32
	Rate float64
}

// Need is a share of a resource, above 0 and at most 1.
type Need struct {
	Resource int32
	// Share is the need beside one other user, Bytes what the bytes alone are, 0 for the
	// same. What Share is more comes of bursts that meet and leave the resource idle
	// between them: the more users there are the less, so of m it is 2/m of that.
	Share, Bytes float64
}

// beside is the need of one of so many users.
func (n *Need) beside(users int) float64 {
	if users <= 2 || n.Bytes == 0 {
		return n.Share
	}
	return n.Bytes + math.Max(0, n.Share-n.Bytes)*2/float64(users)
}

// GPU is what kernels share on a rank's GPU. The zero value shares nothing.
type GPU struct {
	SMs int32
	// Memory is the rate of device memory, in GB/s.
	Memory float64
	// Busy is by how much longer a collective's kernels take while compute holds all
	// other SMs, and Traffic by how much on top while it uses all of the memory's
	// rate; 0.5 is half as long again.
	Busy, Traffic float64
	// Wait takes Traffic's place for what kernels wait for: flags, fences, their begin.
	Wait float64
	// Tail is by how much longer a compute kernel takes, of one wave of blocks, if
	// some of them have to wait for SMs that collectives hold: about a tile of a
	// block's, at most the kernel's own time.
	Tail units.Time
	// Unknown is how many times as long compute takes beside collectives where its
	// blocks are not known, at least 1.
	Unknown float64
}

// Input is a job.
type Input struct {
	Program *workload.Program
	// Costs are those of Program.Calls, by index. Calls of one operation have the same, or
	// differ in Time alone (see longest).
	Costs []Cost
	// Part is, by list and step, the step of the same group whose kernel has its call, -1
	// for none; nil lists have none.
	Part [][]int32
	// Resources is how many there are.
	Resources int
	// GPUs are those of the ranks; nil: compute and collectives do not slow each
	// other.
	GPUs []GPU
	// Backend carries out calls in place of their Costs; nil: none does.
	Backend Backend
}

// Backend carries out calls step by step.
type Backend interface {
	// Open begins an operation, of which no kernel has begun.
	Open(call int32) (operation int32, err error)
	// Start begins the kernel of a member, a rank of the communicator.
	Start(operation, member int32, at units.Time)
	// Slow is the pace of the kernels of a rank of the job from now on.
	Slow(rank int32, pace Pace)
	// Next is the time of the next event, ok false without one.
	Next() (at units.Time, ok bool)
	// Advance handles the events of an instant, and reports the kernels that end.
	Advance(at units.Time, ended func(operation, member int32)) error
}

// Span is when a step began and ended. Of a call, Begin is when its kernel began,
// Issued when its stream came to it.
type Span struct{ Issued, Begin, End units.Time }

// Result is what became of a job.
type Result struct {
	// Finish is when each rank is through.
	Finish []units.Time
	// Spans are those of each rank's steps, by rank, then index in its list.
	Spans [][]Span
	// Alone is, by call, how long it takes by itself.
	Alone []units.Time
	// Operations counts collectives, and messages of sends and receives.
	Operations int64
	Events     int64
}

// Elapsed is when the last rank is through.
func (r *Result) Elapsed() units.Time {
	var t units.Time
	for _, f := range r.Finish {
		t = max(t, f)
	}
	return t
}

// Run runs a job. The Program has passed Lint. Errors are *DeadlockError, those of
// the Backend, and the context's.
func Run(ctx context.Context, in *Input) (*Result, error) {
	r := newRun(in)
	if err := r.play(ctx); err != nil {
		return nil, err
	}
	return r.result(), nil
}
