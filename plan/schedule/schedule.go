// Package schedule makes plans of custom schedules: the operations of each thread block of each GPU on chunks
// of buffers, which a Body expresses in the language of a file (plan/msccl, plan/mscclpp).
//
// In: a Schedule, and an operation on a communicator. Out: a plan.Plan whose programs are the schedule's
// thread blocks, and helper programs that store the data others put and send the data others read. Check
// proves a schedule, or names the first wrong element. The package knows no files and no time.
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

// Bounds of a schedule that is read: a larger one is a mistake, or an attack.
const (
	MaxRanks  = 1 << 12
	MaxChunks = 1 << 20
	MaxSteps  = 1 << 21 // of all GPUs
)

// Pos is a position in the text: line and column count from 1.
type Pos struct{ Line, Col int }

// Element identifies a part of a schedule: the whole if GPU is -1, a GPU if Block is -1, a thread block if
// Step is -1. Pos is its position in the text.
type Element struct {
	GPU, Block, Step int
	Pos              Pos
}

// Whole returns the element that represents a whole schedule.
func Whole(at Pos) Element { return Element{-1, -1, -1, at} }

// Error reports a fault of a schedule, with the element and its position in the file.
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

// Schedule is the content of a file. Chunks are counted per loop, as in the file.
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

// GPU holds the buffer sizes and thread blocks of one rank.
type GPU struct {
	Input, Output, Scratch int // chunks
	Blocks                 []Block
	Pos                    Pos
}

// Block is a thread block's name and position in the file.
type Block struct {
	Steps int
	Pos   Pos
}

// Body holds the operations of the thread blocks.
type Body interface {
	// Lower writes their programs. For a proof, units of pipelines are so small that small sizes have
	// several.
	Lower(p *Programs, proof bool) error
	// ProofChunk returns a chunk size in bytes at which a proof holds for every size; 0: each size is proved
	// by itself.
	ProofChunk(elem int64) int64
	// Describe returns the name of a step, as seen from gpu, and how to order another step after it.
	Describe(at Element, gpu int) (name, order string)
}

// Fault returns an Error of an element; the position comes from the innermost part that has one.
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

// FuncWord returns the word of both languages for an operation.
func FuncWord(f coll.Func) string { return strings.ReplaceAll(f.TestName(), "_", "") }

// ParseFunc returns the operation of such a word; reduce_scatter is accepted, too.
func ParseFunc(word string) (f coll.Func, known bool) {
	for _, f := range coll.Funcs() {
		if word == FuncWord(f) || word == f.TestName() && f == coll.ReduceScatter {
			return f, true
		}
	}
	return 0, false
}

// FuncHint lists the words that ParseFunc accepts, for errors.
const FuncHint = "write allreduce, allgather, reducescatter, alltoall, broadcast, reduce, gather, " +
	"scatter or sendrecv"

// PerRank reports whether a buffer of the operation has a block for each rank.
func (s *Schedule) PerRank() bool {
	return s.Func == coll.AllGather || s.Func == coll.ReduceScatter || s.Func == coll.AllToAll ||
		s.Func == coll.Gather || s.Func == coll.Scatter
}

// ChunksOf returns the number of chunks of a buffer: scratch by the file, input and output by the operation.
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

// Unit returns the least count (NCCL's count, in elements) that the schedule can divide: one element per
// chunk.
func (s *Schedule) Unit() int64 {
	if s.PerRank() {
		return int64(s.Chunks / len(s.GPUs))
	}
	return int64(s.Chunks)
}

// Request returns the request that the schedule executes for count elements (NCCL's count). An error for an
// unsuitable size names the possible ones.
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

// Alone returns a communicator on which to prove a schedule if no machine is given: that many ranks on one
// node, with NCCL's default buffers.
func (s *Schedule) Alone() *connect.Layout {
	n := len(s.GPUs)
	return &connect.Layout{Rules: rules.Default(), NRanks: n, NNodes: 1, NodeOf: make([]int32, n),
		BuffSizes: [3]units.Bytes{524288, 4915200, 4194304}}
}

// Plan makes the plan of an operation, as returned by Request, on a communicator with the schedule's number
// of ranks. A chunk of MSCCL that is larger than a FIFO step is processed in several rounds of the whole
// schedule, as MSCCL's interpreter does; a chunk of MSCCL++ is divided into pieces.
func (s *Schedule) Plan(c *connect.Layout, r plan.Request) (*plan.Plan, error) {
	p, _, err := s.lower(c, r, false)
	return p, err
}

// ProofPlan makes the plan at the size at which a proof holds.
func (s *Schedule) ProofPlan(c *connect.Layout, r plan.Request) (*plan.Plan, error) {
	p, _, err := s.lower(c, s.proofSize(r), true)
	return p, err
}

// Simple returns a copy of the schedule that uses the Simple protocol.
func (s *Schedule) Simple() *Schedule {
	c := *s
	c.Proto = coll.Simple
	return &c
}
