package workload

import (
	"fmt"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/units"
)

// Program is what the ranks of a job do.
type Program struct {
	// Comms are the communicators.
	Comms []Comm
	// Calls are the distinct operations; Steps refer to them by index, so that an
	// executor plans each once however often it is issued.
	Calls []Call
	// Lists are sequences of steps. Ranks that do the same share one.
	Lists []List
	// Of is the index into Lists by rank of the job; its length is the number of
	// ranks.
	Of []int32
}

// Ranks is the number of ranks of the job.
func (p *Program) Ranks() int { return len(p.Of) }

// Comm is a communicator over some ranks of the job.
type Comm struct {
	Name string
	// Ranks are the members, ranks of the job in the order of their rank in the
	// communicator; nil means all ranks in order.
	Ranks []int32
}

// Size is the number of a communicator's ranks in a job of n ranks.
func (c *Comm) Size(n int) int {
	if c.Ranks == nil {
		return n
	}
	return len(c.Ranks)
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
	InPlace bool
}

// Kind is what a Step does.
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

// Step is one entry of a List.
type Step struct {
	Kind   Kind
	Stream int32      // 0 is the first; groups have none of their own
	Call   int32      // of Issue: index into Program.Calls
	Time   units.Time // of Compute
	Event  int32      // of Record and Wait: a number, private to the rank
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
	if len(p.Comms) != 1 || p.Comms[0].Ranks != nil || len(p.Calls) != 1 || len(p.Lists) != 1 || len(p.Of) == 0 {
		return Call{}, false
	}
	s := p.Lists[0].Steps
	return p.Calls[0], len(s) == 1 && s[0] == Step{Kind: Issue}
}
