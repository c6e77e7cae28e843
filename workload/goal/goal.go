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
)

// File is a schedule.
type File struct {
	Ranks []Rank
	Notes []string
}

// Rank is the operations of a rank.
type Rank struct{ Ops []Op }

// Kind is what an operation does; the numbers are those of the binary form.
type Kind uint8

// Kinds of operations.
const (
	Send Kind = iota + 1
	Recv
	Calc
)

// Any is a peer or tag of a receive that takes every one.
const Any = 1<<32 - 1

// Op is an operation.
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

// Error has the place, the problem and the remedy.
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
func (r *Rank) order() (list []uint32, ok bool) {
	n := len(r.Ops)
	left := make([]int32, n)
	after := make([][]uint32, n)
	forward := true
	for i := range r.Ops {
		for _, deps := range [][]uint32{r.Ops[i].Requires, r.Ops[i].Starts} {
			for _, d := range deps {
				left[i]++
				after[d] = append(after[d], uint32(i))
				forward = forward && d < uint32(i)
			}
		}
	}
	list = make([]uint32, 0, n)
	if forward {
		for i := range r.Ops {
			list = append(list, uint32(i))
		}
		return list, true
	}
	var ready heap
	for i := range r.Ops {
		if left[i] == 0 {
			ready.push(uint32(i))
		}
	}
	for len(ready) > 0 {
		i := ready.pop()
		list = append(list, i)
		for _, a := range after[i] {
			if left[a]--; left[a] == 0 {
				ready.push(a)
			}
		}
	}
	return list, len(list) == n
}

// heap is a queue of numbers, the least first.
type heap []uint32

func (h *heap) push(v uint32) {
	*h = append(*h, v)
	q := *h
	for i := len(q) - 1; i > 0; {
		up := (i - 1) / 2
		if q[up] <= q[i] {
			return
		}
		q[up], q[i] = q[i], q[up]
		i = up
	}
}

func (h *heap) pop() uint32 {
	q := *h
	top := q[0]
	n := len(q) - 1
	q[0] = q[n]
	q = q[:n]
	*h = q
	for i := 0; ; {
		l := 2*i + 1
		if l >= n {
			return top
		}
		if l+1 < n && q[l+1] < q[l] {
			l++
		}
		if q[i] <= q[l] {
			return top
		}
		q[i], q[l] = q[l], q[i]
		i = l
	}
}
