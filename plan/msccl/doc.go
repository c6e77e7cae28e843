// Package msccl reads schedules in MSCCL's XML and MSCCL++'s JSON and makes plans of
// them.
//
// In: the text of an algo element (microsoft/msccl-tools) or of an execution plan
// (microsoft/mscclpp), and an operation on a communicator. Out: a Schedule, and a
// plan.Plan whose programs are its thread blocks, beside those that receive what
// others put and give what others read. Check proves a schedule, or names the first element that is wrong.
// The package knows no files and no time.
package msccl

import (
	"fmt"

	"github.com/simccl/simccl/coll"
)

// Pos is a place in the text: line and column count from 1.
type Pos struct{ Line, Col int }

// Error is a fault of a schedule with its element: the whole algo where GPU is -1, a
// gpu where Block is -1, a tb where Step is -1.
type Error struct {
	File             string
	Pos              Pos
	GPU, Block, Step int
	Problem          string
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
	Name                string
	Func                coll.Func
	Proto               coll.Protocol
	Channels            int
	Chunks              int // nchunksperloop
	InPlace, OutOfPlace bool
	MinBytes, MaxBytes  int64 // MaxBytes 0: no bound
	GPUs                []GPU
	Pos                 Pos

	plus *plus // a plan of MSCCL++: what its steps are is there
}

// GPU is what one rank does.
type GPU struct {
	Input, Output, Scratch int // chunks
	Blocks                 []Block
	Pos                    Pos
}

// Block is a thread block. Send and Recv are ranks, -1 for none.
type Block struct {
	Send, Recv, Channel int
	Steps               []Step
	Pos                 Pos
}

// Kind is what a step does.
type Kind uint8

// Kinds of steps, in the order of kindWords.
const (
	Nop Kind = iota
	Send
	Recv
	RecvCopySend
	RecvReduceSend
	RecvReduceCopy
	RecvReduceCopySend
	Copy
	Reduce
)

var kindWords = [...]string{"nop", "s", "r", "rcs", "rrs", "rrc", "rrcs", "cpy", "re"}

// String is MSCCL's word.
func (k Kind) String() string { return kindWords[k] }

func (k Kind) sends() bool {
	return k == Send || k == RecvCopySend || k == RecvReduceSend || k == RecvReduceCopySend
}
func (k Kind) receives() bool { return k >= Recv && k <= RecvReduceCopySend }

// reads reports whether the step reads Src.
func (k Kind) reads() bool {
	return k == Send || k == RecvReduceSend || k == RecvReduceCopy || k == RecvReduceCopySend || k == Copy ||
		k == Reduce
}

// writes reports whether the step writes Dst.
func (k Kind) writes() bool {
	return k == Recv || k == RecvCopySend || k == RecvReduceCopy || k == RecvReduceCopySend || k == Copy ||
		k == Reduce
}

// Place is a chunk of a buffer: i, o or s.
type Place struct {
	Buf byte
	Off int
}

// Step is one step. It waits until DepStep of DepBlock has ended, of the same GPU;
// -1 for none.
type Step struct {
	Kind              Kind
	Src, Dst          Place
	Count             int // chunks
	DepBlock, DepStep int
	Pos               Pos
}

// fault makes an Error of an element.
func (s *Schedule) fault(g, b, k int, format string, args ...any) error {
	return s.faultAt(element{gpu: g, block: b, step: k}, format, args...)
}

// faultAt is fault of an element that has a place of its own, or that of its step.
func (s *Schedule) faultAt(at element, format string, args ...any) error {
	g, b, k := at.gpu, at.block, at.step
	e := &Error{File: s.File, Pos: s.Pos, GPU: g, Block: b, Step: k, Problem: fmt.Sprintf(format, args...)}
	switch {
	case at.pos.Line > 0:
		e.Pos = at.pos
	case k >= 0:
		e.Pos = s.GPUs[g].Blocks[b].Steps[k].Pos
	case b >= 0:
		e.Pos = s.GPUs[g].Blocks[b].Pos
	case g >= 0:
		e.Pos = s.GPUs[g].Pos
	}
	return e
}
