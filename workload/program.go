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
	// Comms lists the communicators; Calls refer to them by index.
	Comms []Comm
	// Calls are the distinct operations; Steps refer to them by index, so that an
	// executor plans each once however often it is issued.
	Calls []Call
	// Works lists the demands of compute kernels on a GPU; Steps refer to them by index + 1.
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
	// GPU is the GPU on which the compute times hold; the zero value: unknown.
	GPU GPU
	// Memory is the estimated memory use of the fullest GPU; the zero value: unknown.
	Memory Memory
	// Model is the model that the job trains or serves.
	Model Trained
}

// GPU names the GPU on which compute times hold. Times computed by a roofline also have its parameters, so
// that they can be converted to another GPU.
type GPU struct {
	Name string
	// Type is the element type of matrix products, which selects the peak. Efficiency (of products) and
	// MemoryEfficiency are fractions of the peaks, 0 if unknown; Overhead is the fixed cost of each kernel.
	Type                         coll.DataType
	Efficiency, MemoryEfficiency float64
	Overhead                     units.Time
	// Class: times are by the compute class of that name, not by a roofline; "" otherwise.
	Class string
}

// Ranks returns the number of ranks of the job.
func (p *Program) Ranks() int { return len(p.Of) }

// FactorOf returns the factor by which the compute steps of a rank take longer.
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

// String returns the kind's abbreviation.
func (k CommKind) String() string {
	if k < numCommKinds {
		return commKindNames[k]
	}
	return fmt.Sprintf("CommKind(%d)", uint8(k))
}

// Comm is a communicator over some ranks of the job.
type Comm struct {
	Name string
	// Desc is the framework's description of the group; it has no effect.
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

// Size returns the number of a communicator's ranks in a job of n ranks.
func (c *Comm) Size(n int) int {
	if c.Ranks == nil {
		return n
	}
	return len(c.Ranks)
}

// Rank returns the job's rank of rank i of the communicator.
func (c *Comm) Rank(i int32) int32 {
	if c.Ranks == nil {
		return i
	}
	return c.Ranks[i]
}

// Resources returns the index of the communicator whose streams and connections comm uses: its own, or those
// of the ancestor that it shares resources with.
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
	// Kernel is the kernel that moves the data instead of NCCL; the zero value: NCCL.
	Kernel Kernel
	// Splits lists the elements that the caller sends to each rank of the communicator in an alltoall of
	// variable counts; nil: Count to each.
	Splits []int64
	// Recorded is the time that the operation took alone in the recording; 0 for unknown.
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

// plainCall is a Call without Splits, which == can compare.
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

// Rate returns a lower bound of the bandwidth that the links of each member of a call reached in one
// direction, in bytes per second of its recorded time. The volume is what a member receives from others if
// nothing on the way copies or reduces, else its result or contribution once. It is 0 without a recorded
// time, and for a single member.
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
	// FLOPs is the number of operations of the kernel, Bytes its traffic between GPU and device memory.
	FLOPs, Bytes int64
	// Extra is the part of Bytes that elementwise work before or after a matrix product moves; its time is
	// added.
	Extra int64
	// Comm: the kernel belongs to NCCL or another communication library, but its call is unknown; it takes
	// its recorded time.
	Comm bool
	// Blocks is the size of the grid in CTAs; PerSM the number of CTAs that fit on an SM.
	Blocks, PerSM int32
	// Persistent: blocks loop over tiles until none is left, so the grid is as
	// large as the GPU and not as the problem.
	Persistent bool
	// Tiles is the number of tiles that a persistent kernel's CTAs share, or its clusters of Cluster CTAs; 0:
	// unknown. A Cluster of 0 is one CTA.
	Tiles    int64
	Cluster  int32
	Priority int8 // of its stream; higher goes first, 0 is CUDA's default
	// Shape is the dimensions of the computation, from which its time on another GPU follows. Kernels is the
	// number of kernels besides the product, which move Extra.
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

// Kind is the type of a Step.
type Kind uint8

// Kinds of steps.
const (
	// Issue launches Step.Call on the stream; within a group, when it ends.
	Issue Kind = iota
	// Compute occupies the stream for Step.Time.
	Compute
	// Record marks Step.Event when all before it on the stream has ended.
	Record
	// Wait blocks the stream until Step.Event of the same rank has been recorded.
	Wait
	// GroupStart and GroupEnd enclose calls that are launched together.
	GroupStart
	GroupEnd
	numKinds
)

var kindNames = [numKinds]string{"call", "compute", "record", "wait", "group", "end"}

// String returns the kind's word in the text form.
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
	// Recorded is the time at which the step began in the recording; 0 for unknown. It has no effect.
	Recorded units.Time
}

// List is the sequence of steps that one or more ranks execute.
type List struct {
	Name  string
	Steps []Step
}

// One returns the Program of a single operation on one communicator of all ranks; c.Comm is 0.
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
