package workload

import (
	"fmt"
	"slices"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/units"
)

// Program is a job: for each rank its streams of steps (compute, collectives, waits), and the communicators
// and calls that they use.
type Program struct {
	// Comms are the communicators.
	Comms []Comm
	// Calls are the distinct operations; Steps refer to them by index, so that an
	// executor plans each once however often it is issued.
	Calls []Call
	// Works are what compute kernels need of a GPU; Steps refer to them by index.
	Works []Work
	// Lists are sequences of steps. Ranks that do the same share one.
	Lists []List
	// Marks name places in lists: the beginnings of training steps.
	Marks []Mark
	// Of is the index into Lists by rank of the job; its length is the number of
	// ranks.
	Of []int32
	// Factor is by how much longer a rank's compute steps take than their Time, by
	// rank; nil for 1 everywhere.
	Factor []float64
	// GPU is what the times of compute steps are of; the zero value: not known.
	GPU GPU
	// Memory is what the fullest GPU holds, an estimate; the zero value: not known.
	Memory Memory
	// Model is what the job trains.
	Model Trained
}

// GPU is what the times of compute steps are of: a GPU by its name, and where times are by its
// roofline what that was made with, so that they can be made for another.
type GPU struct {
	Name string
	// Type is that of matrix products, whose peak it was. Efficiency of these and of memory are
	// fractions of the peaks, 0 for not known; Overhead is what each kernel takes besides.
	Type                         coll.DataType
	Efficiency, MemoryEfficiency float64
	Overhead                     units.Time
	// Class: times are by the compute class of that name, not by a roofline; "" otherwise.
	Class string
}

// Ranks is the number of ranks of the job.
func (p *Program) Ranks() int { return len(p.Of) }

// FactorOf is by how much longer the compute steps of a rank take.
func (p *Program) FactorOf(rank int) float64 {
	if p.Factor == nil {
		return 1
	}
	return p.Factor[rank]
}

// CommKind is a communicator's purpose: the kind of parallelism that it serves.
type CommKind uint8

// Kinds of communicators: tensor, pipeline, data, expert and context parallel,
// fully sharded data parallel; NoKind where nothing says.
const (
	NoKind CommKind = iota
	TP
	PP
	DP
	EP
	CP
	FSDP
	numCommKinds
)

var commKindNames = [numCommKinds]string{"none", "TP", "PP", "DP", "EP", "CP", "FSDP"}

// String is the kind's abbreviation.
func (k CommKind) String() string {
	if k < numCommKinds {
		return commKindNames[k]
	}
	return fmt.Sprintf("CommKind(%d)", uint8(k))
}

// Comm is a communicator over some ranks of the job.
type Comm struct {
	Name string
	// Desc is what a framework calls the group; it decides nothing.
	Desc string
	Kind CommKind
	// Ranks are the members, ranks of the job in the order of their rank in the
	// communicator; nil means all ranks in order.
	Ranks []int32
	// Parent is the index + 1 of the communicator that this one was split from, 0
	// where it was made by itself.
	Parent int32
	// Share: the split shares its parent's resources (ncclConfig_t.splitShare), so
	// that kernels of both run one after the other on a GPU (NCCL 2.28.9,
	// enqueue.cc:1495).
	Share bool
}

// Size is the number of a communicator's ranks in a job of n ranks.
func (c *Comm) Size(n int) int {
	if c.Ranks == nil {
		return n
	}
	return len(c.Ranks)
}

// Rank is the job's rank of a communicator's rank.
func (c *Comm) Rank(i int32) int32 {
	if c.Ranks == nil {
		return i
	}
	return c.Ranks[i]
}

// Resources is the index of the communicator whose streams and connections comm
// uses: its own, or those of the ancestor that it shares with.
func (p *Program) Resources(comm int32) int32 {
	for range p.Comms {
		c := &p.Comms[comm]
		if !c.Share || c.Parent <= 0 || int(c.Parent) > len(p.Comms) {
			break
		}
		comm = c.Parent - 1
	}
	return comm
}

// Call is an operation of a communicator, as its members issue it. Members issue
// one collective with one Call; a send or receive names the other rank.
type Call struct {
	Comm  int32 // index into Comms
	Func  coll.Func
	Type  coll.DataType
	RedOp coll.RedOp
	// Count is NCCL's count argument, in elements.
	Count   int64
	Root    int32 // of rooted operations, rank in the communicator
	Peer    int32 // of coll.Send and coll.Recv: rank in the communicator
	InPlace bool
	// Window: the buffers are in a window that all members registered together
	// (ncclCommWindowRegister). Registered: they are registered (ncclCommRegister).
	Window, Registered bool
	// Kernel is what moves the data in place of NCCL.
	Kernel Kernel
	// Splits are the elements that the caller sends to each rank of the
	// communicator in an alltoall of variable counts; nil for Count to each.
	Splits []int64
	// Recorded is how long the operation took by itself where the workload was
	// recorded, 0 for unknown.
	Recorded units.Time
}

// Equal reports whether two calls are the same in every member.
func (c Call) Equal(o Call) bool {
	return c.plain() == o.plain() && slices.Equal(c.Splits, o.Splits) &&
		(c.Splits == nil) == (o.Splits == nil)
}

// Matches reports whether two members that issue c and o issue one operation:
// counts of an alltoall of variable counts, registration and recorded times may
// differ.
func (c *Call) Matches(o *Call) bool {
	a, b := c.plain(), o.plain()
	if (c.Splits == nil) != (o.Splits == nil) {
		return false
	}
	if c.Splits != nil {
		a.count, b.count = 0, 0
	}
	a.registered, b.registered, a.recorded, b.recorded = false, false, 0, 0
	return a == b
}

// plainCall is a Call without its Splits: what == compares.
type plainCall struct {
	comm                        int32
	fn                          coll.Func
	typ                         coll.DataType
	op                          coll.RedOp
	count                       int64
	root, peer                  int32
	inPlace, window, registered bool
	kernel                      Kernel
	recorded                    units.Time
}

func (c *Call) plain() plainCall {
	return plainCall{c.Comm, c.Func, c.Type, c.RedOp, c.Count, c.Root, c.Peer, c.InPlace, c.Window,
		c.Registered, c.Kernel, c.Recorded}
}

// Bytes returns the bytes that a call moves out of one rank's buffer.
func (c *Call) Bytes() units.Bytes {
	n := c.Count
	if c.Splits != nil {
		n = 0
		for _, s := range c.Splits {
			n += s
		}
	}
	return units.Bytes(n) * c.Type.Size()
}

// Rate is what the links of each member of a call carry at least, in or out, in bytes a
// second of its recorded time: what it receives of others where nothing on the way
// copies or sums up, and the result or the contribution once where something does. 0
// where no time was recorded or a member is alone.
func (p *Program) Rate(c *Call) float64 {
	n := int64(p.Comms[c.Comm].Size(p.Ranks()))
	if c.Recorded <= 0 || n < 2 {
		return 0
	}
	bytes := float64(c.Bytes())
	switch {
	case c.Splits != nil: // a part stays on the rank
		bytes *= float64(n-1) / float64(n)
	case c.Func == coll.AllGather, c.Func == coll.ReduceScatter, c.Func == coll.AllToAll:
		bytes *= float64(n - 1)
	}
	return bytes / float64(c.Recorded) * 1e12
}

// Work is a compute kernel's demand: operations, memory traffic, thread blocks. 0 is unknown throughout.
type Work struct {
	Name string
	// FLOPs and Bytes are what the kernel computes, and what it moves between the
	// GPU and its memory.
	FLOPs, Bytes int64
	// Extra are those of Bytes that are moved beside a matrix product, element by element, before or
	// after it: they take their time on top.
	Extra int64
	// Comm: the kernel is one of NCCL, or of another library that communicates, whose call is not
	// known; its time is what it took.
	Comm bool
	// Blocks is the grid; PerSM how many blocks an SM holds at a time.
	Blocks, PerSM int32
	// Persistent: blocks loop over tiles until none is left, so the grid is as
	// large as the GPU and not as the problem.
	Persistent bool
	// Tiles is how many tiles a persistent kernel's blocks, or its clusters of so many
	// blocks, take; 0: not known. A Cluster of 0 is one block.
	Tiles    int64
	Cluster  int32
	Priority int8 // of its stream; higher goes first, 0 is CUDA's default
	// Shape is what it computes, by which its time on another GPU is known; Kernels are how many there
	// are beside the product, which move Extra.
	Shape   Shape
	Kernels int32
}

// Communicates reports whether a compute step is a kernel that communicates though its call is not
// known.
func (p *Program) Communicates(s *Step) bool {
	return s.Kind == Compute && s.Work > 0 && p.Works[s.Work-1].Comm
}

// Mark is a named place in a list, before one of its steps.
type Mark struct {
	List, Step int32
	Name       string
}

// Kind is the kind of a Step.
type Kind uint8

// Kinds of steps.
const (
	// Issue launches Step.Call on the stream; within a group, when it ends.
	Issue Kind = iota
	// Compute occupies the stream for Step.Time.
	Compute
	// Record marks Step.Event when all before it on the stream has ended.
	Record
	// Wait holds the stream until Step.Event of the same rank has been marked.
	Wait
	// GroupStart and GroupEnd enclose calls that are launched together.
	GroupStart
	GroupEnd
	numKinds
)

var kindNames = [numKinds]string{"call", "compute", "record", "wait", "group", "end"}

// String is the kind's word in the text form.
func (k Kind) String() string {
	if k < numKinds {
		return kindNames[k]
	}
	return fmt.Sprintf("Kind(%d)", uint8(k))
}

// HostStream is the number of the first host thread. Streams from it on are
// threads of the host: steps on them occupy no GPU, and they issue no call.
const HostStream int32 = 1 << 16

// OnHost reports whether a stream is a thread of the host.
func OnHost(stream int32) bool { return stream >= HostStream }

// Step is one entry of a List.
type Step struct {
	Kind   Kind
	Stream int32      // 0 is the first; groups have none of their own
	Call   int32      // of Issue: index into Program.Calls
	Time   units.Time // of Compute: alone on the GPU
	Event  int32      // of Record and Wait: a number, private to the rank
	Work   int32      // of Compute: index + 1 into Program.Works, 0 for none
	// Deps are earlier steps of the same list that must have ended before this one
	// begins, in addition to those before it on its stream. Within a group the
	// launch waits for the Deps of all its calls.
	Deps []int32
	// Recorded is when the step began where the workload was recorded, 0 for
	// unknown. It decides nothing.
	Recorded units.Time
}

// List is a sequence of steps.
type List struct {
	Name  string
	Steps []Step
}

// One is the Program of a single operation of one communicator over all ranks.
// c.Comm is 0.
func One(ranks int, c Call) *Program {
	return &Program{Comms: []Comm{{Name: "world"}}, Calls: []Call{c},
		Lists: []List{{Name: "all", Steps: []Step{{Kind: Issue}}}}, Of: make([]int32, ranks)}
}

// Single reports whether a program is a single operation: one communicator over
// all ranks, one list with one call on stream 0. An executor that cannot do more
// calls it.
func (p *Program) Single() (Call, bool) {
	if len(p.Comms) != 1 || p.Comms[0].Ranks != nil || len(p.Calls) != 1 || len(p.Lists) != 1 ||
		len(p.Of) == 0 {
		return Call{}, false
	}
	s := p.Lists[0].Steps
	return p.Calls[0], len(s) == 1 && s[0].Kind == Issue && s[0].Stream == 0 && s[0].Call == 0 &&
		len(s[0].Deps) == 0 &&
		p.Calls[0].Func != coll.Recv && p.Calls[0].Splits == nil
}
