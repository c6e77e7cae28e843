// Package play carries a program out with a time for each call and nothing
// shared: streams in order, dependencies, events, groups, and collectives that
// begin when their last member does. It finds deadlocks, bounds what any network
// could do (all calls at no time), and is what a reconstruction is compared with.
//
// What it must not know: topologies, plans, how long a call takes.
package play

import (
	"fmt"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/units"
	"github.com/simccl/simccl/workload"
)

// Result is when each step of each rank began and ended.
type Result struct {
	// Start and End are by rank and step. Of a collective, Start is when the rank
	// itself was there.
	Start, End [][]units.Time
	// Last is the end of all.
	Last units.Time
}

// DeadlockError names ranks that wait forever.
type DeadlockError struct {
	Rank int
	List string
	Step int    // of the list, from 0
	What string // what the rank waits for
	More int    // further ranks that wait
}

// Error says who waits where for what.
func (e *DeadlockError) Error() string {
	s := fmt.Sprintf("deadlock: rank %d waits at step %d of list %s for %s", e.Rank, e.Step, e.List, e.What)
	if e.More > 0 {
		s += fmt.Sprintf("; %d other ranks wait too", e.More)
	}
	return s
}

// Cost is how long a call takes once all its members have begun. Both halves of a
// message are asked for; the longer counts.
type Cost func(c *workload.Call) units.Time

// nothing is the Cost of an ideal network.
func nothing(*workload.Call) units.Time { return 0 }

// Recorded is the Cost that a recording found.
func Recorded(c *workload.Call) units.Time { return c.Recorded }

// Options say how calls behave.
type Options struct {
	// Cost is how long a call takes; nil for Nothing.
	Cost Cost
	// Buffered is the largest message, in bytes, that its sender does not wait with
	// until it is received: what fits into the buffers of the connection. 0: every
	// sender waits.
	Buffered units.Bytes
}

// Play carries out a program that Lint accepts. The error is a *DeadlockError.
func Play(p *workload.Program, o Options) (*Result, error) {
	if o.Cost == nil {
		o.Cost = nothing
	}
	x := &player{p: p, cost: o.Cost, buffered: o.Buffered,
		res:   &Result{Start: make([][]units.Time, p.Ranks()), End: make([][]units.Time, p.Ranks())},
		meets: map[meetKey]*meet{}}
	for r := range p.Of {
		n := len(p.Lists[p.Of[r]].Steps)
		x.ranks = append(x.ranks, &rank{id: int32(r), left: n, done: make([]bool, n), joined: make([]bool, n),
			met:     make([]bool, n),
			streams: map[int32]*queue{}, records: map[int32]int32{}, counts: map[meetKey]int32{}})
		x.res.Start[r], x.res.End[r] = make([]units.Time, n), make([]units.Time, n)
	}
	for r := range p.Of {
		x.prepare(x.ranks[r])
	}
	for r := range p.Of {
		x.ready = append(x.ready, int32(r))
	}
	for len(x.ready) > 0 {
		r := x.ranks[x.ready[len(x.ready)-1]]
		x.ready = x.ready[:len(x.ready)-1]
		x.advance(r)
	}
	return x.res, x.stuck()
}

type player struct {
	p        *workload.Program
	cost     Cost
	buffered units.Bytes
	ranks    []*rank
	ready    []int32 // ranks that may go on
	res      *Result
	meets    map[meetKey]*meet
}

// rank is the state of a rank: a queue of steps a stream.
type rank struct {
	id      int32
	left    int
	done    []bool // by step
	joined  []bool // by step: the rank has begun its call
	met     []bool // by step: all members have
	streams map[int32]*queue
	order   []int32         // streams in order of appearance
	records map[int32]int32 // by step of a wait: the record that it waits for
	groups  []group         // by first step, of outermost groups
	counts  map[meetKey]int32
}

// group is a launch of several calls: steps from first to last are its calls.
type group struct{ first, last int32 }

type queue struct {
	steps []int32
	at    int
	free  units.Time
}

// meetKey names an operation that members join: the n-th collective of a
// communicator, or the n-th message of a pair of ranks.
type meetKey struct{ comm, src, dst, n int32 }

type meet struct {
	need    int
	arrived []arrival
	start   units.Time
	cost    units.Time
}

type arrival struct{ rank, step int32 }

// prepare puts the steps of a rank into the queues of its streams. Waits become
// dependencies on the record that precedes them in the list.
func (x *player) prepare(r *rank) {
	last := map[int32]int32{} // record by event
	steps := x.p.Lists[x.p.Of[r.id]].Steps
	depth, first := 0, 0
	for i := range steps {
		s := &steps[i]
		switch s.Kind {
		case workload.Record:
			last[s.Event] = int32(i)
		case workload.Wait:
			r.records[int32(i)] = last[s.Event]
		case workload.GroupStart:
			if depth == 0 {
				first = i
			}
			depth++
		case workload.GroupEnd:
			if depth--; depth == 0 {
				r.groups = append(r.groups, group{int32(first), int32(i)})
			}
		}
		if s.Kind == workload.GroupStart || s.Kind == workload.GroupEnd {
			r.done[i] = true
			r.left--
			continue
		}
		q := r.streams[s.Stream]
		if q == nil {
			q = &queue{}
			r.streams[s.Stream] = q
			r.order = append(r.order, s.Stream)
		}
		q.steps = append(q.steps, int32(i))
	}
}

// groupOf finds the group that holds a step; -1 none.
func (r *rank) groupOf(step int32) int {
	lo, hi := 0, len(r.groups)
	for lo < hi {
		if m := (lo + hi) / 2; r.groups[m].last < step {
			lo = m + 1
		} else {
			hi = m
		}
	}
	if lo < len(r.groups) && r.groups[lo].first <= step {
		return lo
	}
	return -1
}

// advance carries out what a rank can.
func (x *player) advance(r *rank) {
	steps := x.p.Lists[x.p.Of[r.id]].Steps
	for again := true; again; {
		again = false
		for _, st := range r.order {
			q := r.streams[st]
			for q.at < len(q.steps) && x.try(r, q, steps, q.steps[q.at]) {
				again = true
			}
		}
	}
}

// begin returns the time at which a step can start; false: something that it depends on has not ended.
func (x *player) begin(r *rank, q *queue, steps []workload.Step, i int32) (units.Time, bool) {
	at := q.free
	end := x.res.End[r.id]
	for _, d := range steps[i].Deps {
		if !r.done[d] {
			return 0, false
		}
		at = max(at, end[d])
	}
	if steps[i].Kind == workload.Wait {
		rec := r.records[i]
		if !r.done[rec] {
			return 0, false
		}
		at = max(at, end[rec])
	}
	return at, true
}

// try carries out the step at the head of a stream; it reports whether the stream
// went on.
func (x *player) try(r *rank, q *queue, steps []workload.Step, i int32) bool {
	s := &steps[i]
	if s.Kind == workload.Issue {
		if g := r.groupOf(i); g >= 0 {
			return x.launch(r, steps, r.groups[g])
		}
		return x.launch(r, steps, group{i, i})
	}
	at, ok := x.begin(r, q, steps, i)
	if !ok {
		return false
	}
	d := units.Time(0)
	if s.Kind == workload.Compute {
		d = s.Time
		if f := x.p.FactorOf(int(r.id)); f != 1 && !workload.OnHost(s.Stream) {
			d = units.Time(float64(d) * f)
		}
	}
	x.finish(r, q, i, at, at+d)
	return true
}

func (x *player) finish(r *rank, q *queue, i int32, start, end units.Time) {
	x.res.Start[r.id][i], x.res.End[r.id][i] = start, end
	x.res.Last = max(x.res.Last, end)
	r.done[i] = true
	r.left--
	q.at++
	q.free = end
}

// launch lets a rank join the operations of a group of calls, when every call is
// at the head of its stream but for calls of the same group. It reports whether
// any stream went on.
func (x *player) launch(r *rank, steps []workload.Step, g group) bool {
	at := units.Time(0)
	seen := map[int32]int{}
	for i := g.first; i <= g.last; i++ {
		if steps[i].Kind != workload.Issue {
			continue
		}
		q := r.streams[steps[i].Stream]
		k := q.at + seen[steps[i].Stream]
		if k >= len(q.steps) || q.steps[k] != i {
			return false
		}
		seen[steps[i].Stream]++
		b, ok := x.begin(r, q, steps, i)
		if !ok {
			return false
		}
		at = max(at, b)
	}
	for i := g.first; i <= g.last; i++ {
		if steps[i].Kind == workload.Issue {
			x.arrive(r, steps, i, at)
		}
	}
	return x.complete(r, steps, g)
}

// arrive notes that a rank has begun a call. The last member to come lets all end.
func (x *player) arrive(r *rank, steps []workload.Step, i int32, at units.Time) {
	if r.joined[i] {
		return
	}
	r.joined[i] = true
	c := &x.p.Calls[steps[i].Call]
	key := meetKey{comm: c.Comm}
	comm := &x.p.Comms[c.Comm]
	need := comm.Size(x.p.Ranks())
	switch c.Func {
	case coll.Send:
		key.src, key.dst, need = r.id, comm.Rank(c.Peer), 2
	case coll.Recv:
		key.src, key.dst, need = comm.Rank(c.Peer), r.id, 2
	default:
		key.src, key.dst = -1, -1
	}
	count := key
	key.n = r.counts[count]
	r.counts[count]++
	if key.src == key.dst && key.src >= 0 { // to itself: both halves are the rank's own
		need = 1
	}
	m := x.meets[key]
	if m == nil {
		m = &meet{need: need}
		x.meets[key] = m
	}
	x.res.Start[r.id][i] = at
	m.arrived = append(m.arrived, arrival{r.id, i})
	m.start = max(m.start, at)
	m.cost = max(m.cost, x.cost(c))
	if c.Func == coll.Send && c.Bytes() <= x.buffered {
		r.met[i] = true
		x.res.End[r.id][i] = at + x.cost(c)
	}
	if len(m.arrived) >= m.need {
		for _, a := range m.arrived {
			if !x.ranks[a.rank].met[a.step] {
				x.res.End[a.rank][a.step] = m.start + m.cost
			}
			x.ranks[a.rank].met[a.step] = true
			if a.rank != r.id {
				x.ready = append(x.ready, a.rank)
			}
		}
		delete(x.meets, key)
	}
}

// complete lets the streams of a group go on when all its calls have ended.
func (x *player) complete(r *rank, steps []workload.Step, g group) bool {
	end := units.Time(0)
	for i := g.first; i <= g.last; i++ {
		if steps[i].Kind != workload.Issue {
			continue
		}
		if !r.met[i] {
			return false
		}
		end = max(end, x.res.End[r.id][i])
	}
	for i := g.first; i <= g.last; i++ {
		if steps[i].Kind == workload.Issue {
			x.finish(r, r.streams[steps[i].Stream], i, x.res.Start[r.id][i], end)
		}
	}
	return true
}

// stuck is the error of ranks that have steps left.
func (x *player) stuck() error {
	var first *DeadlockError
	for _, r := range x.ranks {
		if r.left == 0 {
			continue
		}
		if first != nil {
			first.More++
			continue
		}
		first = x.describe(r)
	}
	if first == nil {
		return nil
	}
	return first
}

func (x *player) describe(r *rank) *DeadlockError {
	list := &x.p.Lists[x.p.Of[r.id]]
	e := &DeadlockError{Rank: int(r.id), List: list.Name, What: "a step before it"}
	for _, st := range r.order {
		q := r.streams[st]
		if q.at >= len(q.steps) {
			continue
		}
		e.Step = int(q.steps[q.at])
		if s := &list.Steps[e.Step]; s.Kind == workload.Issue {
			c := &x.p.Calls[s.Call]
			e.What = fmt.Sprintf("other ranks of %s to join %s of %d bytes", x.p.Comms[c.Comm].Name,
				c.Func.TestName(), c.Bytes())
			return e
		}
	}
	return e
}
