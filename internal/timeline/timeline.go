package timeline

import (
	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/internal/session"
	"github.com/simccl/simccl/sim/job"
	"github.com/simccl/simccl/units"
	"github.com/simccl/simccl/workload"
)

// Place is a step of a rank.
type Place struct{ Rank, Step int32 }

// Timeline is a job that ran, with its operations found.
type Timeline struct {
	r   *session.Result
	ops []operation
	of  [][]int32 // by rank, step: index of its operation + 1, 0 for none
	// orders are the predecessors of lists, found when they are asked for.
	orders []*order
}

// operation is a collective, or a message, with all that took part.
type operation struct {
	call  int32
	last  Place // the kernel that began last
	start units.Time
	count int32 // of kernels
}

// messageKey names the n-th message between two ranks of a communicator, or with
// src -1 its n-th collective.
type messageKey struct{ comm, src, dst, n int32 }

// Of finds the operations of a job that ran.
func Of(r *session.Result) *Timeline {
	t := &Timeline{r: r, of: make([][]int32, len(r.Program.Of)), orders: make([]*order, len(r.Program.Lists))}
	known := map[messageKey]int32{}
	counts := map[messageKey]int32{}
	for rank, list := range r.Program.Of {
		steps := r.Program.Lists[list].Steps
		t.of[rank] = make([]int32, len(steps))
		clear(counts)
		for i := range steps {
			if steps[i].Kind != workload.Issue {
				continue
			}
			k := t.key(int32(rank), steps[i].Call)
			n := k
			if k.src == k.dst && t.r.Program.Calls[steps[i].Call].Func == coll.Recv { // from itself
				n.dst = -2
			}
			k.n = counts[n]
			counts[n]++
			o, ok := known[k]
			if !ok {
				o = int32(len(t.ops))
				known[k] = o
				t.ops = append(t.ops, operation{call: steps[i].Call, last: Place{int32(rank), int32(i)}, start: t.span(Place{int32(rank), int32(i)}).Begin})
			}
			t.join(&t.ops[o], Place{int32(rank), int32(i)})
			t.of[rank][i] = o + 1
		}
	}
	return t
}

// key is that of a call of a rank, without its number.
func (t *Timeline) key(rank, call int32) messageKey {
	c := &t.r.Program.Calls[call]
	k := messageKey{comm: c.Comm, src: -1}
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

func (t *Timeline) span(p Place) *job.Span { return &t.r.Spans[p.Rank][p.Step] }

func (t *Timeline) step(p Place) *workload.Step {
	return &t.r.Program.Lists[t.r.Program.Of[p.Rank]].Steps[p.Step]
}

// Met is from when a step, a call, moves data: since its last member began.
func (t *Timeline) Met(rank, step int) units.Time { return t.met(Place{int32(rank), int32(step)}) }

// met is from when a call of a rank moves data: since its last member began, or
// since its own begin where it does not wait for that one.
func (t *Timeline) met(p Place) units.Time {
	s := t.span(p)
	if o := t.of[p.Rank][p.Step]; o > 0 && t.ops[o-1].start < s.End {
		return max(s.Begin, t.ops[o-1].start)
	}
	return s.Begin
}
