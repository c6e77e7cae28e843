package chakra

import (
	"fmt"
	"slices"
	"strings"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/units"
	"github.com/simccl/simccl/workload"
	"github.com/simccl/simccl/workload/internal/torch"
)

// Options supplies what the traces do not state.
type Options struct {
	// Groups lists the members of process groups by name, from a separate file.
	Groups map[string][]int32
	// Ranks is the number of ranks if there are fewer traces; ranks without a trace do what rank 0 does. 0
	// means the number of traces.
	Ranks int
}

// firstRecv is the first stream of receives, which wait for no other operation.
const firstRecv = 256

// Program converts the traces of ranks 0, 1, … to a program. notes names what could not be converted.
func Program(traces []*Trace, o Options) (p *workload.Program, notes []string, err error) {
	ranks := max(o.Ranks, len(traces))
	if len(traces) == 0 || ranks > 1<<24 {
		return nil, nil, fmt.Errorf("%d traces of %d ranks", len(traces), ranks)
	}
	b := &builder{Builder: torch.NewBuilder(ranks), works: map[string]int32{}, notes: map[string]int{},
		groups: map[string][]int32{}}
	for _, t := range traces {
		for name, members := range t.Groups { //lint:sorted entries are independent
			if len(members) > len(b.groups[name]) {
				b.groups[name] = members
			}
		}
	}
	for name, members := range o.Groups { //lint:sorted entries are independent
		b.groups[name] = members
	}
	for i, t := range traces {
		if err := b.rank(int32(i), t); err != nil {
			return nil, nil, fmt.Errorf("%s: %w", t.File, err)
		}
		b.P.Of[i] = int32(i)
	}
	if ranks > len(traces) {
		b.note(fmt.Sprintf("%d ranks have no trace and do what rank 0 does", ranks-len(traces)))
	}
	for _, n := range b.order {
		if c := b.notes[n]; c > 1 {
			n = fmt.Sprintf("%s (%d)", n, c)
		}
		notes = append(notes, n)
	}
	return b.P, notes, nil
}

type builder struct {
	*torch.Builder
	works  map[string]int32
	groups map[string][]int32
	notes  map[string]int
	order  []string
	me     int32
}

func (b *builder) note(text string) {
	if b.notes[text] == 0 {
		b.order = append(b.order, text)
	}
	b.notes[text]++
}

// rank converts the trace of rank r to a list.
func (b *builder) rank(r int32, t *Trace) error {
	b.me = r
	order, err := t.order(b)
	if err != nil {
		return err
	}
	list := workload.List{Name: fmt.Sprintf("rank%d", r)}
	step := make(map[uint64][]int32, len(t.Nodes)) // by node: the steps that end it
	last := map[int32]int32{}
	next := int32(firstRecv)
	for _, i := range order {
		n := &t.Nodes[i]
		var deps []int32
		for _, ids := range [][]uint64{n.Data, n.Ctrl} {
			for _, d := range ids {
				deps = append(deps, step[d]...)
			}
		}
		slices.Sort(deps)
		deps = slices.Compact(deps)
		s, ok, err := b.step(n)
		if err != nil {
			return err
		}
		if !ok {
			step[n.ID] = deps // nodes that depend on it depend on its dependencies
			continue
		}
		s.Deps = deps
		if n.Type == Recv && !n.Own.Has {
			s.Stream = next
			for _, d := range deps {
				if st := list.Steps[d].Stream; st >= firstRecv && !workload.OnHost(st) && last[st] == d {
					s.Stream = st
				}
			}
			if s.Stream == next {
				if next++; next >= workload.HostStream {
					return fmt.Errorf("more than %d receives may be outstanding at once",
						workload.HostStream-firstRecv)
				}
			}
		}
		at := int32(len(list.Steps))
		last[s.Stream] = at
		step[n.ID] = []int32{at}
		list.Steps = append(list.Steps, s)
	}
	b.P.Lists = append(b.P.Lists, list)
	return nil
}

// step converts a node to a step; ok is false for a node that does nothing.
func (b *builder) step(n *Node) (s workload.Step, ok bool, err error) {
	if n.Own.Has && n.Own.Stream >= 0 && n.Own.Stream < 1<<30 {
		s.Stream = int32(n.Own.Stream)
	} else if n.CPU {
		s.Stream = workload.HostStream
	} else if n.Type == Send || n.Type == Coll {
		s.Stream = 1
	}
	s.Kind, s.Time = workload.Compute, units.Time(min(n.Dur, uint64(workload.MaxTime)/1e6))*1e6
	if n.Own.Has {
		s.Time = units.Time(min(max(n.Own.Time, 0), int64(workload.MaxTime)))
	}
	switch n.Type {
	case Metadata, Invalid:
		return s, false, nil
	case Comp, MemLoad, MemStore:
		s.Work = b.work(n)
		if s.Time == 0 && n.FLOPs > 0 {
			b.note("computations have operations and no time; they take none here (a roofline needs the GPU)")
		}
		return s, true, nil
	}
	if n.CPU {
		// the framework's operator; the kernel that moves the data has its own node
		return s, true, nil
	}
	c, ok := b.call(n)
	if !ok {
		s.Work = b.work(n)
		return s, true, nil
	}
	s.Kind, s.Time, s.Call = workload.Issue, 0, b.Call(&c)
	return s, true, nil
}

// work returns the index + 1 of the Work that describes a kernel's operations and bytes; 0 if the node has
// none.
func (b *builder) work(n *Node) int32 {
	if n.CPU || n.Own.Has && n.Own.Work == "" {
		return 0
	}
	name := n.Name
	if n.Own.Has {
		name = n.Own.Work
	}
	key := fmt.Sprint(name, n.FLOPs, n.TensorSize)
	i, known := b.works[key]
	if !known {
		b.P.Works = append(b.P.Works, workload.Work{Name: name, FLOPs: n.FLOPs, Bytes: n.TensorSize})
		i = int32(len(b.P.Works))
		b.works[key] = i
	}
	return i
}

// call returns the call of a communication node; ok is false if the node does not determine one.
func (b *builder) call(n *Node) (c workload.Call, ok bool) {
	c.Comm = b.comm(n.Group, &n.Own)
	c.Recorded = units.Time(min(n.Dur, uint64(workload.MaxTime)/1e6)) * 1e6
	if n.Own.Call != "" {
		if own, err := parseCall(n.Own.Call, c.Comm); err == nil {
			own.Recorded = units.Time(n.Own.Time)
			return own, true
		}
	}
	size := int64(b.P.Comms[c.Comm].Size(len(b.P.Of)))
	c.Count, c.Type = n.Bytes, coll.Int8
	switch {
	case n.Bytes < 0:
		return c, false
	case n.Type == Send:
		c.Func, c.Peer = coll.Send, b.member(c.Comm, n.Dst)
	case n.Type == Recv:
		c.Func, c.Peer = coll.Recv, b.member(c.Comm, n.Src)
	case !n.HasColl:
		b.note("collectives do not say what they are; they take their recorded time and wait for no other " +
			"rank")
		return c, false
	default:
		if c.Func, c.Count, ok = collective(n.Coll, n.Bytes, size); !ok {
			b.note(fmt.Sprintf("collectives of type %d are not known; they take their recorded time", n.Coll))
			return c, false
		}
	}
	if c.Count%2 == 0 {
		c.Count, c.Type = c.Count/2, coll.BFloat16
	}
	return c, true
}

// collective translates a type and the bytes that a rank puts in to a count of bytes.
func collective(t CollType, bytes, size int64) (coll.Func, int64, bool) {
	switch t {
	case AllReduce:
		return coll.AllReduce, bytes, true
	case Reduce:
		return coll.Reduce, bytes, true
	case AllGather:
		return coll.AllGather, bytes, true
	case Gather:
		return coll.Gather, bytes, true
	case Scatter:
		return coll.Scatter, (bytes + size - 1) / size, true
	case Broadcast:
		return coll.Broadcast, bytes, true
	case AllToAll:
		return coll.AllToAll, (bytes + size - 1) / size, true
	case ReduceScatter, ReduceScatterBlock:
		return coll.ReduceScatter, (bytes + size - 1) / size, true
	case Barrier:
		return coll.AllReduce, max(bytes, 4), true
	}
	return 0, 0, false
}

// comm returns the communicator of a process group, with the name and kind that a trace of
// ours has.
func (b *builder) comm(group string, o *own) int32 {
	members := b.groups[group]
	if len(members) == 0 || !b.fits(members) {
		if group != "" && group != "0" && members == nil {
			b.note(fmt.Sprintf("process group %s is not described and is taken for all ranks", group))
		}
		members = nil
	}
	return b.Group(group, members, func(i int32, members []int32) workload.Comm {
		c := workload.Comm{Name: "pg" + group, Ranks: members}
		if group == "" {
			c.Name = "world"
		}
		if strings.ContainsFunc(group, func(r rune) bool { return r <= ' ' }) || b.Named(c.Name) {
			c.Name = fmt.Sprintf("comm%d", i)
		}
		if o.Comm != "" && !b.Named(o.Comm) {
			c.Name = o.Comm
		}
		for k := workload.TP; k <= workload.FSDP; k++ {
			if k.String() == o.Kind {
				c.Kind = k
			}
		}
		return c
	})
}

// member returns the rank within a communicator of a job's rank; -1 if it is no member.
func (b *builder) member(comm, rank int32) int32 {
	if r := b.P.Comms[comm].Ranks; r != nil {
		return int32(slices.Index(r, rank))
	}
	return rank
}

// fits reports whether members are distinct ranks of the job and this one is among
// them.
func (b *builder) fits(members []int32) bool {
	seen := map[int32]bool{}
	for _, m := range members {
		if m < 0 || int(m) >= len(b.P.Of) || seen[m] {
			b.note("a process group has ranks that have no trace; it is taken for all ranks")
			return false
		}
		seen[m] = true
	}
	return seen[b.me]
}
