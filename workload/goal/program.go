package goal

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/units"
	"github.com/simccl/simccl/workload"
)

// maxTags is the largest number of tags that become communicators.
const maxTags = 4096

// Program converts a schedule to a program. The computations of a CPU run in order on a stream of their own;
// sends and receives run on streams that follow their dependencies. If sender and receiver order tags
// differently, each tag becomes a communicator.
func (f *File) Program() (*workload.Program, error) {
	if len(f.Ranks) == 0 {
		return nil, fmt.Errorf("the schedule has no ranks")
	}
	orders := make([][]int32, len(f.Ranks))
	for r := range f.Ranks {
		var ok bool
		if orders[r], ok = f.Ranks[r].order(); !ok {
			return nil, fmt.Errorf("rank %d: operations wait for each other in a cycle", r)
		}
	}
	p := &workload.Program{Of: make([]int32, len(f.Ranks))}
	tags, err := f.tags(p, orders)
	if err != nil {
		return nil, err
	}
	b := builder{p: p, tags: tags, calls: map[workloadKey]int32{}}
	starts := 0
	for r := range f.Ranks {
		if err := b.rank(r, &f.Ranks[r], orders[r]); err != nil {
			return nil, err
		}
		starts += b.starts
		p.Of[r] = int32(r)
	}
	if starts > 0 {
		f.Notes = append(f.Notes, fmt.Sprintf("%d operations wait for the beginning of another "+
			"(irequires); they wait for what the other waits for", starts))
	}
	return p, nil
}

// message is a send or receive in order of issue.
type message struct {
	src, dst uint32
	tag      uint32
}

// tags assigns a communicator to each tag: one for all tags if senders and receivers have the same order.
func (f *File) tags(p *workload.Program, orders [][]int32) (map[uint32]int32, error) {
	var sends, recvs []message
	seen := map[uint32]int32{}
	var list []uint32
	for r := range f.Ranks {
		for _, i := range orders[r] {
			op := &f.Ranks[r].Ops[i]
			switch op.Kind {
			case Send:
				sends = append(sends, message{uint32(r), op.Peer, op.Tag})
			case Recv:
				if op.Peer == Any || op.Tag == Any {
					return nil, fmt.Errorf("rank %d, operation %d: %w; a program needs to know the sender", r,
						i+1, ErrAny)
				}
				recvs = append(recvs, message{op.Peer, uint32(r), op.Tag})
			default:
				continue
			}
			if _, known := seen[op.Tag]; !known {
				seen[op.Tag] = 0
				list = append(list, op.Tag)
			}
		}
	}
	pair := func(a, b message) int { return cmp.Or(cmp.Compare(a.src, b.src), cmp.Compare(a.dst, b.dst)) }
	slices.SortStableFunc(sends, pair)
	slices.SortStableFunc(recvs, pair)
	if len(list) == 0 || slices.Equal(sends, recvs) {
		p.Comms = []workload.Comm{{Name: "world"}}
		return seen, nil
	}
	if len(list) > maxTags {
		return nil, fmt.Errorf("%d tags are in different orders on senders and receivers; at most %d can be",
			len(list), maxTags)
	}
	for i, tag := range list {
		seen[tag] = int32(i)
		p.Comms = append(p.Comms, workload.Comm{Name: fmt.Sprintf("tag%d", tag)})
	}
	return seen, nil
}

type workloadKey struct {
	comm  int32
	send  bool
	peer  uint32
	bytes uint64
}

type builder struct {
	p      *workload.Program
	tags   map[uint32]int32
	calls  map[workloadKey]int32
	starts int
}

// rank converts the operations of a rank to a list of steps.
func (b *builder) rank(r int, in *Rank, order []int32) error {
	b.starts = 0
	steps := make([]workload.Step, 0, len(order))
	at := make([]int32, len(in.Ops))
	last := map[int32]int32{} // by stream: its last step
	next := int32(256)        // streams of CPUs are before
	for _, i := range order {
		op := &in.Ops[i]
		var deps []int32
		for _, d := range op.Requires {
			deps = append(deps, at[d])
		}
		for _, d := range op.Starts {
			deps = append(deps, steps[at[d]].Deps...)
			b.starts++
		}
		slices.Sort(deps)
		s := workload.Step{Deps: slices.Compact(deps), Stream: int32(op.CPU)}
		if op.Kind == Calc {
			s.Kind, s.Time = workload.Compute, units.Time(op.Size)*1000
			if s.Time > workload.MaxTime || op.Size > uint64(workload.MaxTime)/1000 {
				return fmt.Errorf("rank %d, operation %d: %d ns is too long", r, i+1, op.Size)
			}
		} else {
			s.Call = b.call(op)
			s.Stream = -1
			for _, d := range s.Deps {
				if st := steps[d].Stream; st >= 256 && last[st] == d {
					s.Stream = st
					break
				}
			}
			if s.Stream < 0 {
				s.Stream = next
				if next++; next >= workload.HostStream {
					return fmt.Errorf("rank %d: more than %d sends and receives may be outstanding at once",
						r, workload.HostStream-256)
				}
			}
		}
		at[i] = int32(len(steps))
		last[s.Stream] = at[i]
		steps = append(steps, s)
	}
	b.p.Lists = append(b.p.Lists, workload.List{Name: fmt.Sprintf("rank%d", r), Steps: steps})
	return nil
}

func (b *builder) call(op *Op) int32 {
	k := workloadKey{b.tags[op.Tag], op.Kind == Send, op.Peer, op.Size}
	i, known := b.calls[k]
	if !known {
		c := workload.Call{Comm: k.comm, Func: coll.Recv, Type: coll.Int8, Count: int64(op.Size),
			Peer: int32(op.Peer)}
		if k.send {
			c.Func = coll.Send
		}
		i = int32(len(b.p.Calls))
		b.p.Calls = append(b.p.Calls, c)
		b.calls[k] = i
	}
	return i
}

// From converts a program to a schedule. GOAL has no collectives: they become computations of their recorded
// time that wait for no other rank. lost names what the format cannot express.
func From(p *workload.Program) (f *File, lost []string, err error) {
	f = &File{Ranks: make([]Rank, len(p.Of))}
	e := exporter{p: p, lost: map[string]int{}}
	for r := range p.Of {
		e.rank(&f.Ranks[r], &p.Lists[p.Of[r]], p.FactorOf(r))
	}
	for range p.Marks {
		e.lose("marks of iterations")
	}
	for _, what := range e.order {
		lost = append(lost, fmt.Sprintf("%s (%d)", what, e.lost[what]))
	}
	return f, lost, nil
}

type exporter struct {
	p     *workload.Program
	lost  map[string]int
	order []string
}

func (e *exporter) lose(what string) {
	if e.lost[what] == 0 {
		e.order = append(e.order, what)
	}
	e.lost[what]++
}

func (e *exporter) rank(to *Rank, list *workload.List, factor float64) {
	last := map[int32]uint32{}    // by stream
	records := map[int32]uint32{} // by event
	at := make([]uint32, len(list.Steps))
	has := make([]bool, len(list.Steps))
	for i := range list.Steps {
		s := &list.Steps[i]
		op := Op{Kind: Calc}
		switch s.Kind {
		case workload.GroupStart, workload.GroupEnd:
			e.lose("groups of calls")
			continue
		case workload.Compute:
			op.Size = uint64((float64(s.Time)*factor + 500) / 1000)
			if s.Work > 0 {
				e.lose("names and needs of kernels")
			}
		case workload.Issue:
			e.call(&op, &e.p.Calls[s.Call])
		}
		if d, ok := last[s.Stream]; ok {
			op.Requires = append(op.Requires, d)
		}
		for _, d := range s.Deps {
			if has[d] {
				op.Requires = append(op.Requires, at[d])
			}
		}
		if s.Kind == workload.Wait {
			op.Requires = append(op.Requires, records[s.Event])
		}
		slices.Sort(op.Requires)
		op.Requires = slices.Compact(op.Requires)
		at[i], has[i] = uint32(len(to.Ops)), true
		last[s.Stream] = at[i]
		if s.Kind == workload.Record {
			records[s.Event] = at[i]
		}
		switch {
		case workload.OnHost(s.Stream):
			op.CPU = 255
		case s.Stream < 255: // others carry messages only, of which a CPU has many outstanding
			op.CPU = uint8(s.Stream)
		}
		to.Ops = append(to.Ops, op)
	}
}

// call sets op to a send or receive, or for a collective to a computation of its recorded time.
func (e *exporter) call(op *Op, c *workload.Call) {
	comm := &e.p.Comms[c.Comm]
	switch c.Func {
	case coll.Send, coll.Recv:
		op.Kind, op.Peer, op.Size, op.Tag = Send, uint32(comm.Rank(c.Peer)), uint64(c.Bytes()), uint32(c.Comm)
		if c.Func == coll.Recv {
			op.Kind = Recv
		}
	default:
		op.Size = uint64(c.Recorded / 1000)
		e.lose(c.Func.String() + ": a computation of its recorded time")
	}
}
