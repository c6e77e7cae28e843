package simai

import (
	"fmt"
	"reflect"
	"slices"
	"testing"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/workload"
)

// TestGroupsAreMegatrons: rank = (pipeline · D + data) · T + tensor; experts are neighbours in a data group,
// and those who have the same expert are a group, too.
func TestGroupsAreMegatrons(t *testing.T) {
	var p workload.Program
	g, err := newGrid(&p, 16, 2, 2, 2) // tensor, expert, pipeline: data groups of 4
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		kind   groupKind
		rank   int
		name   string
		member int32
		ranks  []int32
	}{
		{Tensor, 13, "tp6", 1, []int32{12, 13}}, {Tensor, 0, "tp0", 0, []int32{0, 1}},
		{Data, 13, "dp3", 2, []int32{9, 11, 13, 15}}, {Data, 4, "dp0", 2, []int32{0, 2, 4, 6}},
		{Expert, 13, "ep7", 0, []int32{13, 15}}, {Expert, 2, "ep0", 1, []int32{0, 2}},
		{Expert, 9, "ep6", 0, []int32{9, 11}},
		{DataExpert, 13, "dp_ep6", 1, []int32{9, 13}}, {DataExpert, 11, "dp_ep7", 0, []int32{11, 15}},
		{DataExpert, 0, "dp_ep0", 0, []int32{0, 4}},
		{Pipeline, 13, "pp5", 1, []int32{5, 13}}, {Pipeline, 2, "pp2", 0, []int32{2, 10}},
		{All, 13, "world", 13, nil},
	} {
		comm, member := g.Comm(c.kind, c.rank)
		of := p.Comms[comm]
		if of.Name != c.name || member != c.member || !slices.Equal(of.Ranks, c.ranks) ||
			of.Kind != kinds[c.kind].kind {
			t.Errorf("family %d of rank %d: %s %v, place %d; want %s %v, %d", c.kind, c.rank, of.Name,
				of.Ranks,
				member, c.name, c.ranks, c.member)
		}
		if c.ranks != nil && g.Size(c.kind) != len(c.ranks) {
			t.Errorf("groups of family %d have %d, want %d", c.kind, g.Size(c.kind), len(c.ranks))
		}
		if again, m := g.Comm(c.kind, c.rank); again != comm || m != member {
			t.Errorf("family %d of rank %d is added twice", c.kind, c.rank)
		}
	}
	if n := g.Size(All); n != 16 {
		t.Errorf("all are %d", n)
	}
}

// TestGroupsThatAreAllHaveNoList: a group of every rank is the world, whatever its family.
func TestGroupsThatAreAllHaveNoList(t *testing.T) {
	var p workload.Program
	g, err := newGrid(&p, 4, 0, 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	if comm, member := g.Comm(Data, 3); p.Comms[comm].Ranks != nil || p.Comms[comm].Name != "dp0" ||
		member != 3 {
		t.Errorf("%+v, place %d", p.Comms[comm], member)
	}
}

// TestDegreesDivideTheRanks: and each is 1 to its most.
func TestDegreesDivideTheRanks(t *testing.T) {
	for _, c := range []struct {
		ranks, tensor, expert, pipeline int
		ok                              bool
	}{
		{8, 2, 2, 2, true}, {1, 1, 1, 1, true}, {8, -1, 0, -5, true}, {0, 1, 1, 1, false}, {-1, 1, 1, 1,
			false},
		{8, 3, 1, 1, false}, {8, 1, 1, 3, false}, {8, 2, 1, 8, false}, {8, 2, 3, 2, false}, {8, 2, 4, 2,
			false},
		{1 << 24, 1 << 20, 1, 1, true}, {1<<24 + 1, 1, 1, 1, false}, {1 << 24, 1, 1 << 20, 1, true},
		{1 << 24, 1, 1, 1 << 20, true}, {1 << 24, 1 << 21, 1, 1, false}, {1 << 24, 1, 1 << 21, 1, false},
		{1 << 24, 1, 1, 1 << 21, false},
	} {
		if _, err := newGrid(new(workload.Program), c.ranks, c.tensor, c.expert,
			c.pipeline); (err == nil) != c.ok {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

// TestCallsAreAddedOnce: those that differ in any of what makes a call are two.
func TestCallsAreAddedOnce(t *testing.T) {
	var p workload.Program
	g, err := newGrid(&p, 2, 1, 1, 1)
	if err != nil {
		t.Fatal(err)
	}
	one := workload.Call{Comm: 1, Func: coll.Reduce, Type: coll.Int8, Count: 4, Root: 1, Peer: 1}
	seen := map[int32]string{}
	for i, change := range []func(*workload.Call){func(*workload.Call) {},
		func(c *workload.Call) { c.Comm = 0 },
		func(c *workload.Call) { c.Func = coll.Broadcast }, func(c *workload.Call) { c.Type = coll.Float32 },
		func(c *workload.Call) { c.Count = 5 }, func(c *workload.Call) { c.Root = 0 },
		func(c *workload.Call) { c.Peer = 0 }} {
		c := one
		change(&c)
		at := g.Call(c)
		if seen[at] != "" || g.Call(c) != at || int(at) != i || !reflect.DeepEqual(p.Calls[at], c) {
			t.Errorf("call %d is at %d", i, at)
		}
		seen[at] = fmt.Sprint(i)
	}
}

// TestElementsRoundUp: two bytes each where they divide the size, else one, a share of each rank where the
// operation has one; Bytes is the inverse.
func TestElementsRoundUp(t *testing.T) {
	for _, c := range []struct {
		f     coll.Func
		bytes int64
		count int64
		typ   coll.DataType
	}{
		{coll.AllReduce, 10, 5, coll.BFloat16}, {coll.AllReduce, 11, 11, coll.Int8},
		{coll.AllGather, 16, 2, coll.BFloat16}, {coll.AllGather, 12, 3, coll.Int8},
		{coll.ReduceScatter, 13, 4, coll.Int8}, {coll.AllToAll, 24, 3, coll.BFloat16},
		{coll.Gather, 17, 5, coll.Int8}, {coll.Scatter, 8, 1, coll.BFloat16}, {coll.Broadcast, 8, 4,
			coll.BFloat16},
		{coll.Send, 7, 7, coll.Int8},
	} {
		count, typ := elementsOf(c.f, c.bytes, 4)
		if count != c.count || typ != c.typ {
			t.Errorf("%v of %d bytes: %d %v, want %d %v", c.f, c.bytes, count, typ, c.count, c.typ)
		}
		back := bytesOf(&workload.Call{Func: c.f, Count: count, Type: typ}, 4)
		if back < c.bytes || back >= c.bytes+4 {
			t.Errorf("%v of %d bytes becomes %d", c.f, c.bytes, back)
		}
	}
}
