package torch

import (
	"fmt"
	"slices"

	"github.com/simccl/simccl/workload"
)

// Builder builds a program from recordings that contain only calls. It stores each communicator and each
// distinct call once.
type Builder struct {
	P     *workload.Program
	comms map[string]int32
	calls map[string]int32
}

// NewBuilder returns a Builder of an empty program with a number of ranks.
func NewBuilder(ranks int) *Builder {
	return &Builder{P: &workload.Program{Of: make([]int32, ranks)}, comms: map[string]int32{},
		calls: map[string]int32{}}
}

// Comm returns the communicator of a process group; members nil means all ranks. Groups with one name and
// different members are different communicators.
func (b *Builder) Comm(name, desc string, members []int32) int32 {
	return b.Group(name, members, func(i int32, members []int32) workload.Comm {
		c := workload.Comm{Name: "pg" + name, Desc: desc, Ranks: members}
		if b.Named(c.Name) {
			c.Name = fmt.Sprintf("pg%s.%d", name, i)
		}
		return c
	})
}

// Group returns the communicator with a key and members (nil for all ranks). If it is new, create makes it
// from its index and members.
func (b *Builder) Group(key string, members []int32,
	create func(i int32, members []int32) workload.Comm) int32 {
	all := len(members) == len(b.P.Of)
	for i := range members {
		all = all && members[i] == int32(i)
	}
	if all {
		members = nil
	}
	key += fmt.Sprint(members)
	i, known := b.comms[key]
	if !known {
		i = int32(len(b.P.Comms))
		b.P.Comms = append(b.P.Comms, create(i, members))
		b.comms[key] = i
	}
	return i
}

// Named reports whether the program has a communicator with this name.
func (b *Builder) Named(name string) bool {
	return slices.ContainsFunc(b.P.Comms, func(c workload.Comm) bool { return c.Name == name })
}

// Call returns the index of a call in the program's table, adding it if it is new.
func (b *Builder) Call(c *workload.Call) int32 {
	key := fmt.Sprintf("%+v", *c)
	i, known := b.calls[key]
	if !known {
		i = int32(len(b.P.Calls))
		b.calls[key] = i
		b.P.Calls = append(b.P.Calls, *c)
	}
	return i
}

// Issue returns the step that issues a call on its communicator's stream.
func (b *Builder) Issue(c *workload.Call) workload.Step {
	return workload.Step{Kind: workload.Issue, Stream: c.Comm, Call: b.Call(c)}
}

// Launch encloses several calls in GroupStart and GroupEnd; a single call is returned unchanged.
func Launch(calls []workload.Step) []workload.Step {
	if len(calls) < 2 {
		return calls
	}
	out := []workload.Step{{Kind: workload.GroupStart}}
	return append(append(out, calls...), workload.Step{Kind: workload.GroupEnd})
}
