package timeline

import (
	"github.com/simccl/simccl/coll"
	session "github.com/simccl/simccl/job"
	"github.com/simccl/simccl/job/streams"
	"github.com/simccl/simccl/units"
	"github.com/simccl/simccl/workload"
)

// Place identifies a step of a rank.
type Place struct{ Rank, Step int32 }

// Timeline is a job's result, with the operation of each call.
type Timeline struct {
	r   *session.Result
	ops []operation
	of  [][]int32 // by rank, step: index of its operation + 1; 0: none
	// orders holds the predecessors by list, computed on first use.
	orders []*order
}

// operation is a collective or a message, with the kernels that took part.
type operation struct {
	call  int32
	last  Place // the kernel that began last, and where
	start units.Time
	count int32 // number of kernels
}

// messageKey names the n-th message between two ranks of a communicator.
type messageKey struct{ comm, src, dst, n int32 }

// Of finds the operations of a job's calls and returns its Timeline.
func Of(r *session.Result) *Timeline {
	t := &Timeline{r: r, of: make([][]int32, len(r.Program.Of)), orders: make([]*order, len(r.Program.Lists))}
	f := finder{t: t, collectives: make([][]int32, len(r.Program.Comms)),
		seen: make([]int32, len(r.Program.Comms)), messages: map[messageKey]int32{},
		counts: map[messageKey]int32{}}
	for rank := range r.Program.Of {
		f.rank(int32(rank))
	}
	return t
}

// finder matches calls to operations: the n-th collective of each member of a communicator is one operation,
// and so are the n-th send and receive between two ranks.
type finder struct {
	t           *Timeline
	collectives [][]int32 // by communicator, number: operation + 1
	messages    map[messageKey]int32
	seen        []int32 // by communicator: collectives of the present rank so far
	counts      map[messageKey]int32
}

// rank finds the operations of a rank's calls.
func (f *finder) rank(rank int32) {
	t := f.t
	steps := t.r.Program.Lists[t.r.Program.Of[rank]].Steps
	of := make([]int32, len(steps))
	t.of[rank] = of
	clear(f.counts)
	for i := range steps {
		if steps[i].Kind != workload.Issue {
			continue
		}
		p, c := Place{rank, int32(i)}, &t.r.Program.Calls[steps[i].Call]
		if message(c) {
			of[i] = f.message(p, c)
		} else {
			list := &f.collectives[c.Comm]
			n := f.seen[c.Comm]
			if f.seen[c.Comm]++; int(n) == len(*list) {
				*list = append(*list, t.operation(p, steps[i].Call))
			}
			of[i] = (*list)[n]
		}
		t.join(&t.ops[of[i]-1], p)
	}
	for i := range steps { // reset for the next rank
		if steps[i].Kind == workload.Issue {
			f.seen[t.r.Program.Calls[steps[i].Call].Comm] = 0
		}
	}
}

// message returns the index + 1 of the operation to which a send or receive belongs.
func (f *finder) message(p Place, c *workload.Call) int32 {
	k := f.t.key(p.Rank, f.t.step(p).Call)
	n := k
	if k.src == k.dst && c.Func == coll.Recv { // from the rank itself
		n.dst = -2
	}
	k.n = f.counts[n]
	f.counts[n]++
	o, ok := f.messages[k]
	if !ok {
		o = f.t.operation(p, f.t.step(p).Call)
		f.messages[k] = o
	}
	return o
}

// operation adds an operation that a kernel begins, and returns its index + 1.
func (t *Timeline) operation(p Place, call int32) int32 {
	t.ops = append(t.ops, operation{call: call, last: p, start: t.span(p).Begin})
	return int32(len(t.ops))
}

// key returns the messageKey of a rank's call, without its number n.
func (t *Timeline) key(rank, call int32) messageKey {
	c := &t.r.Program.Calls[call]
	k := messageKey{comm: c.Comm}
	switch peer := t.r.Program.Comms[c.Comm].Rank(c.Peer); c.Func {
	case coll.Send:
		k.src, k.dst = rank, peer
	case coll.Recv:
		k.src, k.dst = peer, rank
	}
	return k
}

func (t *Timeline) join(o *operation, p Place) {
	o.count++
	if at := t.span(p).Begin; at > o.start {
		o.start, o.last = at, p
	}
}

func (t *Timeline) span(p Place) *streams.Span { return &t.r.Spans[p.Rank][p.Step] }

func (t *Timeline) step(p Place) *workload.Step {
	return &t.r.Program.Lists[t.r.Program.Of[p.Rank]].Steps[p.Step]
}

// Met returns when a call, a step of a rank, begins to move data: when its last member began.
func (t *Timeline) Met(rank, step int) units.Time { return t.met(Place{int32(rank), int32(step)}) }

// met returns when a rank's call begins to move data: when its last member began, or when its own kernel
// began if it does not wait for that member.
func (t *Timeline) met(p Place) units.Time {
	s := t.span(p)
	if o := t.of[p.Rank][p.Step]; o > 0 && t.ops[o-1].start < s.End {
		return max(s.Begin, t.ops[o-1].start)
	}
	return s.Begin
}
