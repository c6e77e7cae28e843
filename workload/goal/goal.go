// Package goal reads and writes GOAL schedules (Group Operation Assembly Language),
// the input of LogGOPSim and ATLAHS: on each rank sends, receives and computations
// with the dependencies between them, as text or in its binary form.
//
// What it must not know: files, machines.
//
// Source: spcl/LogGOPSim 76451de, src/LogGOPSim: txt2bin.re (text), Parser.hpp
// (binary).
package goal

import (
	"errors"
	"fmt"

	"github.com/simccl/simccl/internal/heap"
)

// File is a GOAL schedule: one list of operations per rank.
type File struct {
	Ranks []Rank
	Notes []string
}

// Rank is a rank's operations, in the order of the file.
type Rank struct{ Ops []Op }

// Kind is the kind of an operation, numbered as in the binary form.
type Kind uint8

// Kinds of operations.
const (
	Send Kind = iota + 1
	Recv
	Calc
)

// Any is a peer or tag of a receive that takes every one.
const Any = 1<<32 - 1

// Op is a send, a receive or a computation, with its dependencies.
type Op struct {
	Kind Kind
	Peer uint32 // of Send and Recv
	Size uint64 // bytes, of Calc nanoseconds
	Tag  uint32
	CPU  uint8
	NIC  uint8
	// Requires are operations of the rank that must have ended, Starts those that must
	// have begun; in the order of the file.
	Requires, Starts []uint32
}

// Error is a fault of a file: of text with line and column, of the binary form with
// the offset of a byte.
type Error struct {
	File      string
	Line, Col int   // from 1; Line is 0 in the binary form
	Offset    int64 // of the binary form
	Problem   string
	Hint      string
}

// Error states the position, the problem and the remedy.
func (e *Error) Error() string {
	s := fmt.Sprintf("%s:%d:%d: %s", e.File, e.Line, e.Col, e.Problem)
	if e.Line == 0 {
		s = fmt.Sprintf("%s: byte %d: %s", e.File, e.Offset, e.Problem)
	}
	if e.Hint != "" {
		s += "; " + e.Hint
	}
	return s
}

// ErrAny is matched by the error of a schedule with receives from any rank or of any
// tag, whose partners only a run decides.
var ErrAny = errors.New("a receive takes any source or tag")

// Bounds of a schedule.
const (
	maxRanks = 1 << 20
	maxOps   = 1 << 27
)

// order sorts the operations of a rank so that each follows what it requires,
// else as the file has them. ok is false when dependencies are a cycle.
func (r *Rank) order() (list []int32, ok bool) {
	return heap.Order(len(r.Ops), func(i int32, yield func(int32)) {
		for _, deps := range [][]uint32{r.Ops[i].Requires, r.Ops[i].Starts} {
			for _, d := range deps {
				yield(int32(d))
			}
		}
	})
}
