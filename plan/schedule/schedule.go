// Package schedule makes plans of schedules of others: what each thread block of each GPU does with
// chunks of buffers, as a Body says it in the language of a file (plan/msccl, plan/mscclpp).
//
// In: a Schedule, and an operation on a communicator. Out: a plan.Plan whose programs are its
// thread blocks, beside those that receive what others put and give what others read. Check
// proves a schedule, or names the first element that is wrong. The package knows no files and
// no time.
package schedule

import (
	"fmt"
	"strings"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/connect"
	"github.com/simccl/simccl/plan"
	"github.com/simccl/simccl/rules"
	"github.com/simccl/simccl/units"
)

// Bounds of what is read: more is a mistake, or an attack.
const (
	MaxRanks  = 1 << 12
	MaxChunks = 1 << 20
	MaxSteps  = 1 << 21 // of all GPUs
)

// Pos is a place in the text: line and column count from 1.
type Pos struct{ Line, Col int }

// Element is a part of a schedule: the whole where GPU is -1, a GPU where Block is -1, a
// thread block where Step is -1. A step has its Pos.
type Element struct {
	GPU, Block, Step int
	Pos              Pos
}

// Whole is the element of a whole schedule.
func Whole(at Pos) Element { return Element{-1, -1, -1, at} }

// Error is a fault of a schedule with its element.
type Error struct {
	File string
	Element
	Problem string
}

func (e *Error) Error() string {
	at := ""
	if e.Pos.Line > 0 {
		at = fmt.Sprintf("%s:%d:%d: ", e.File, e.Pos.Line, e.Pos.Col)
	} else if e.File != "" {
		at = e.File + ": "
	}
	switch {
	case e.GPU < 0:
		return at + e.Problem
	case e.Block < 0:
		return fmt.Sprintf("%sgpu %d: %s", at, e.GPU, e.Problem)
	case e.Step < 0:
		return fmt.Sprintf("%sgpu %d tb %d: %s", at, e.GPU, e.Block, e.Problem)
	}
	return fmt.Sprintf("%sgpu %d tb %d step %d: %s", at, e.GPU, e.Block, e.Step, e.Problem)
}

// Schedule is what a file says. Chunks are counted per loop, as the file does.
type Schedule struct {
	File                string // its name in errors
	Format              string // msccl or mscclpp
	Name                string
	Func                coll.Func
	Proto               coll.Protocol
	Channels            int
	Chunks              int // of the larger buffer
	InPlace, OutOfPlace bool
	MinBytes, MaxBytes  int64 // MaxBytes 0: no bound
	GPUs                []GPU
	Pos                 Pos
	Body                Body
}

// GPU is what one rank has.
type GPU struct {
	Input, Output, Scratch int // chunks
	Blocks                 []Block
	Pos                    Pos
}

// Block is a thread block.
type Block struct {
	Steps int
	Pos   Pos
}

// Body is what the thread blocks do.
type Body interface {
	// Lower writes their programs. A proof has units of pipelines so small that small sizes
	// have several of them.
	Lower(p *Programs, proof bool) error
	// ProofChunk is a size of chunks, in bytes, at which a proof holds for every size; 0: each
	// proves its own.
	ProofChunk(elem int64) int64
	// Describe names a step, as one of gpu sees it, and says what orders another after it.
	Describe(at Element, gpu int) (name, order string)
}

// Fault makes an Error of an element.
func (s *Schedule) Fault(at Element, format string, args ...any) error {
	switch {
	case at.Pos.Line > 0:
	case at.Block >= 0:
		at.Pos = s.GPUs[at.GPU].Blocks[at.Block].Pos
	case at.GPU >= 0:
		at.Pos = s.GPUs[at.GPU].Pos
	default:
		at.Pos = s.Pos
	}
	return &Error{s.File, at, fmt.Sprintf(format, args...)}
}

// FuncWord is what both languages call an operation.
func FuncWord(f coll.Func) string { return strings.ReplaceAll(f.TestName(), "_", "") }

// ParseFunc finds an operation by that word; reduce_scatter is also written so.
func ParseFunc(word string) (f coll.Func, known bool) {
	for _, f := range coll.Funcs() {
		if word == FuncWord(f) || word == f.TestName() && f == coll.ReduceScatter {
			return f, true
		}
	}
	return 0, false
}

// FuncHint says which words ParseFunc knows.
const FuncHint = "write allreduce, allgather, reducescatter, alltoall, broadcast, reduce, gather, " +
	"scatter or sendrecv"

// PerRank reports whether a buffer of the operation has a block for each rank.
func (s *Schedule) PerRank() bool {
	return s.Func == coll.AllGather || s.Func == coll.ReduceScatter || s.Func == coll.AllToAll ||
		s.Func == coll.Gather || s.Func == coll.Scatter
}

// ChunksOf is how many chunks a buffer has: those of scratch as the file says, those of
// the operation as it needs them.
func (s *Schedule) ChunksOf(g int, buf byte) int {
	switch {
	case buf == 's':
		return s.GPUs[g].Scratch
	case buf == 'i' && (s.Func == coll.AllGather || s.Func == coll.Gather),
		buf == 'o' && (s.Func == coll.ReduceScatter || s.Func == coll.Scatter):
		return s.Chunks / len(s.GPUs)
	}
	return s.Chunks
}

// Unit is the least count of elements, of NCCL's count, that the schedule can cut: one in each
// chunk.
func (s *Schedule) Unit() int64 {
	if s.PerRank() {
		return int64(s.Chunks / len(s.GPUs))
	}
	return int64(s.Chunks)
}

// Request is the operation of so many elements of a rank's message (NCCL's count) that a
// schedule does. It says what sizes are possible where it refuses one.
func (s *Schedule) Request(count int64, t coll.DataType) (plan.Request, error) {
	r := plan.Request{Func: s.Func, Count: count, Type: t, InPlace: !s.OutOfPlace, Algo: coll.Ring,
		Proto: s.Proto, Channels: s.Channels}
	if unit := s.Unit(); count < 1 || count%unit != 0 {
		return r,
			fmt.Errorf("%d elements cannot be cut into the %d chunks of %s; take a multiple of %d elements",
				count, s.Chunks, s.File, unit)
	}
	return r, nil
}

// Alone is a communicator to prove a schedule on where no machine is given: as many
// ranks of one node, with NCCL's own buffers.
func (s *Schedule) Alone() *connect.Layout {
	n := len(s.GPUs)
	return &connect.Layout{Rules: rules.Default(), NRanks: n, NNodes: 1, NodeOf: make([]int32, n),
		BuffSizes: [3]units.Bytes{524288, 4915200, 4194304}}
}

// Plan makes the plan of an operation, as Request gives it, on a communicator of as
// many ranks. A chunk of MSCCL that is larger than a step of the FIFO is done in several
// rounds of the whole schedule, as MSCCL's interpreter does; one of MSCCL++ is cut into
// pieces.
func (s *Schedule) Plan(c *connect.Layout, r plan.Request) (*plan.Plan, error) {
	p, _, err := s.lower(c, r, false)
	return p, err
}

// ProofPlan is a plan at a size at which a proof holds.
func (s *Schedule) ProofPlan(c *connect.Layout, r plan.Request) (*plan.Plan, error) {
	p, _, err := s.lower(c, s.proofSize(r), true)
	return p, err
}

// Simple is the schedule by the Simple protocol.
func (s *Schedule) Simple() *Schedule {
	c := *s
	c.Proto = coll.Simple
	return &c
}
