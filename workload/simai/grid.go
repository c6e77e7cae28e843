package simai

import (
	"fmt"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/workload"
)

// groupKind is a family of groups: tensor, pipeline, data, ….
type groupKind uint8

// Families of groups.
const (
	Tensor groupKind = iota
	Data
	Expert
	DataExpert // the ranks of a data group with the same expert
	Pipeline
	All
	numKinds
)

// Grid is a job's layout and the communicators that were asked for.
type Grid struct {
	Tensor, Expert, Data, Pipeline int
	p                              *workload.Program
	index                          map[[2]int]int32 // by kind and group
	calls                          map[callKey]int32
}

type callKey struct {
	comm  int32
	fn    coll.Func
	typ   coll.DataType
	count int64
	root  int32
	peer  int32
}

// GridError reports a layout whose degrees do not divide the ranks.
type GridError struct{ Problem, Hint string }

// Error states the problem and what to write instead.
func (e *GridError) Error() string { return e.Problem + "; " + e.Hint }

// newGrid lays ranks out: data parallel groups have ranks / (tensor · pipeline) members.
// Communicators and calls are added to p as they are used.
func newGrid(p *workload.Program, ranks, tensor, expert, pipeline int) (*Grid, error) {
	tensor, expert, pipeline = max(tensor, 1), max(expert, 1), max(pipeline, 1)
	if tensor > 1<<20 || expert > 1<<20 || pipeline > 1<<20 || ranks < 1 || ranks > 1<<24 {
		return nil, &GridError{fmt.Sprintf("%d ranks in groups of %d (tensor), %d (pipeline) and %d (expert)",
			ranks, tensor, pipeline, expert), "each is at least 1"}
	}
	if ranks%(tensor*pipeline) != 0 {
		return nil, &GridError{fmt.Sprintf("%d ranks are no multiple of %d (tensor) times %d (pipeline)",
			ranks,
			tensor, pipeline), "give a number of ranks that is"}
	}
	g := &Grid{Tensor: tensor, Expert: expert, Data: ranks / (tensor * pipeline), Pipeline: pipeline, p: p,
		index: map[[2]int]int32{}, calls: map[callKey]int32{}}
	if g.Data%g.Expert != 0 {
		return nil, &GridError{fmt.Sprintf("data parallel groups of %d ranks are no multiple of %d experts",
			g.Data, g.Expert), "give a number of ranks with which they are"}
	}
	return g, nil
}

// Size returns the number of members of a family's groups.
func (g *Grid) Size(k groupKind) int {
	return [numKinds]int{g.Tensor, g.Data, g.Expert, g.Data / g.Expert, g.Pipeline,
		g.Tensor * g.Data * g.Pipeline}[k]
}

var kinds = [numKinds]struct {
	name string
	kind workload.CommKind
}{{"tp", workload.TP}, {"dp", workload.DP}, {"ep", workload.EP}, {"dp_ep", workload.DP}, {"pp", workload.PP},
	{"world", workload.NoKind}}

// place returns the group of a rank in a family, its first rank and the distance between
// members.
func (g *Grid) place(k groupKind, rank int) (group, first, stride int) {
	t, d, p := rank%g.Tensor, rank/g.Tensor%g.Data, rank/(g.Tensor*g.Data)
	base := p * g.Data * g.Tensor
	switch k {
	case Tensor:
		return rank / g.Tensor, rank - t, 1
	case Data:
		return p*g.Tensor + t, base + t, g.Tensor
	case Expert:
		b := d / g.Expert
		return (p*g.Tensor+t)*(g.Data/g.Expert) + b, base + b*g.Expert*g.Tensor + t, g.Tensor
	case DataExpert:
		e := d % g.Expert
		return (p*g.Tensor+t)*g.Expert + e, base + e*g.Tensor + t, g.Expert * g.Tensor
	case Pipeline:
		return d*g.Tensor + t, d*g.Tensor + t, g.Tensor * g.Data
	}
	return 0, 0, 1
}

// Comm returns the communicator of a family that a rank is in, and its rank there.
func (g *Grid) Comm(k groupKind, rank int) (comm, member int32) {
	group, first, stride := g.place(k, rank)
	member = int32((rank - first) / stride)
	i, known := g.index[[2]int{int(k), group}]
	if known {
		return i, member
	}
	n := g.Size(k)
	c := workload.Comm{Name: fmt.Sprintf("%s%d", kinds[k].name, group), Kind: kinds[k].kind,
		Ranks: make([]int32, n)}
	if n == g.Size(All) {
		c.Ranks = nil
	}
	if k == All {
		c.Name = kinds[k].name
	}
	for m := range c.Ranks {
		c.Ranks[m] = int32(first + m*stride)
	}
	i = int32(len(g.p.Comms))
	g.p.Comms = append(g.p.Comms, c)
	g.index[[2]int{int(k), group}] = i
	return i, member
}

// Call returns the index of a call, which is added once.
func (g *Grid) Call(c workload.Call) int32 {
	key := callKey{c.Comm, c.Func, c.Type, c.Count, c.Root, c.Peer}
	i, known := g.calls[key]
	if !known {
		i = int32(len(g.p.Calls))
		g.p.Calls = append(g.p.Calls, c)
		g.calls[key] = i
	}
	return i
}

// elementsOf converts nccl-tests' size of an operation on n ranks, in bytes, to a count and a type: two-byte
// elements if the size is divisible, else single bytes. A size that is no multiple is rounded up.
func elementsOf(f coll.Func, bytes int64, n int) (count int64, t coll.DataType) {
	t = coll.BFloat16
	per := int64(1)
	switch f {
	case coll.AllGather, coll.ReduceScatter, coll.AllToAll, coll.Gather, coll.Scatter:
		per = int64(n)
	}
	if bytes%(2*per) != 0 {
		t = coll.Int8
	}
	size := int64(t.Size()) * per
	return (bytes + size - 1) / size, t
}

// bytesOf returns the size of a call on n ranks in the sense of nccl-tests; it is the inverse of Elements.
func bytesOf(c *workload.Call, n int) int64 {
	per := int64(1)
	switch c.Func {
	case coll.AllGather, coll.ReduceScatter, coll.AllToAll, coll.Gather, coll.Scatter:
		per = int64(n)
	}
	return c.Count * int64(c.Type.Size()) * per
}
