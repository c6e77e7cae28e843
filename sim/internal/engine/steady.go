package engine

import (
	"math"
	"slices"

	"github.com/simccl/simccl/plan"
	"github.com/simccl/simccl/sim/gpu"
	"github.com/simccl/simccl/sim/internal/event"
	"github.com/simccl/simccl/sim/internal/host"
	"github.com/simccl/simccl/sim/wire"
	"github.com/simccl/simccl/units"
)

// A run in a steady state repeats itself: at two times all that decides what
// happens next is the same, relative to the time, and the ops that groups took
// up in between come again. Such periods are counted, not simulated: their time,
// bytes, waits and events are added, and every group goes on so many ops later.
// Nothing is assumed: states are compared in full, and ops one by one, as far as
// periods are skipped. The result is that of the whole run, to the picosecond.
//
// Example: a ring of 16 ranks takes 31 ops for a loop of 32 MiB a channel. If all
// groups, links and threads are at the end of loop 3 as they were at the end of
// loop 2, and loops 4 to 30 have ops of the same sizes as loop 3, 27 loops last 27
// times as long as it did.
//
// The clock does not jump: what is skipped is kept aside (Skipped) and added to
// the ends of kernels. So nothing else has to be moved, queued events included.

// steady looks for periods. A state is kept, and later ones are compared with it
// where the lead group takes up an op; it is replaced by a newer one after twice
// as many ops as the one before (R. P. Brent, An improved Monte Carlo
// factorization algorithm, BIT 20, 1980).
type steady struct {
	on    bool
	wire  wire.Steady
	lead  int32 // the group whose ops give the times of comparisons, -1: the next one
	due   bool  // it has taken up an op in this instant
	since int64 // comparisons since the state was kept
	limit int64 // of since

	kept   bool
	key    steadyKey
	state  []int64
	at     units.Time
	taken  []int64 // by group
	counts []int64
	waits  host.Waits
	events int64
	ops    int64

	cost  int64 // spent so far, in words of state that were written
	most  int64 // ops that it may take where other processors wait, 0: not known
	tried bool  // it took more

	now    []int64 // scratch
	delta  []int64
	queued []event.Event
}

// steadyKey is a part of a state that is quickly found: where it differs, so do
// the states.
type steadyKey struct {
	queued   int
	event    units.Time // until the next
	flow     units.Time
	do       plan.Do
	bytes    units.Bytes
	fetching int32
}

// What the search may cost: so many words of state for each event handled, of
// which one takes some 300 times as long as a word. An op that is compared costs
// as much as a few words.
const (
	wordsPerEvent = 4
	wordsPerOp    = 8
	firstWords    = 1 << 16
)

// Skip lets the run look for a steady state. It has no effect where draws of
// chance make each period its own, where an observer wants all of them, and where the model of links
// does not offer it.
func (e *Engine) Skip() {
	w, ok := e.Wire.(wire.Steady)
	if !ok || e.Observer != nil && !e.Observer.Repeats() || e.Jitter != (gpu.JitterCost{}) || e.down != nil ||
		!e.Net.Repeats() {
		return
	}
	e.steady = steady{on: true, wire: w, lead: -1, limit: 1, taken: make([]int64, len(e.Groups))}
}

// took notes that a group has taken up an op.
func (e *Engine) took(gi int32) {
	s := &e.steady
	if s.lead < 0 || e.Groups[s.lead].state == ended {
		s.lead, s.kept, s.limit = gi, false, 1
	}
	if gi == s.lead {
		s.due = true
	}
}

// repeat compares the state of the run with the one that is kept, and skips the
// periods that follow from their being equal. It is called between two instants,
// with the time of the next event, and of the next completion where bytes flow.
func (e *Engine) repeat(next, flow units.Time, flows bool) {
	s := &e.steady
	if !flows {
		flow = next
	}
	s.due = false
	if s.cost+e.largeState() > firstWords+wordsPerEvent*e.Queue.Handled() {
		return
	}
	g := &e.Groups[s.lead]
	key := steadyKey{e.Queue.Len(), next - e.Queue.Now, flow - e.Queue.Now, g.Op.Do, g.Op.Bytes,
		e.Devices[g.Rank].Done}
	if s.kept && key == s.key {
		s.now = e.appendState(s.now[:0])
		s.cost += int64(len(s.now))
		if slices.Equal(s.now, s.state) && e.skip() {
			s.kept, s.limit = false, 1
			return
		}
	}
	if s.since++; !s.kept || s.since >= s.limit {
		s.limit *= 2
		e.keep(key)
	}
}

// searchShare is after which part of its ops a run that may use several processors looks for
// no steady state any more: what has one mostly has come to it by then.
const searchShare = 8

// hopeless reports, once, whether the search is to end because it keeps other processors
// from taking part.
func (s *steady) hopeless(e *Engine) bool {
	if e.Cores < 2 || e.Periods > 0 || s.tried {
		return false
	}
	if s.most == 0 {
		s.most = max(1, e.CountOps()/searchShare)
	}
	s.tried = e.fetched >= s.most
	return s.tried
}

// largeState is about how many words a state takes, where that is so much that
// it counts before it is written: the first one of a hundred thousand sends would
// take 100 MB. 0 for others.
func (e *Engine) largeState() int64 {
	const perGroup, perConn, large = 9, 28, 1 << 20
	if n := perGroup*int64(len(e.Groups)) + perConn*int64(len(e.Conns)); n > large {
		return n
	}
	return 0
}

// keep makes the present state the one that later ones are compared with.
func (e *Engine) keep(key steadyKey) {
	s := &e.steady
	s.kept, s.since, s.key, s.at = true, 0, key, e.Queue.Now
	s.state = e.appendState(s.state[:0])
	s.counts = s.wire.AppendCounts(s.counts[:0], e.Queue.Now)
	s.waits = e.Net.KeepWaits(s.waits)
	s.events, s.ops = e.Queue.Handled(), e.fetched
	for i := range e.Groups {
		s.taken[i] = e.Groups[i].taken
	}
	s.cost += int64(len(s.state) + len(s.counts) + len(s.taken))
	if e.Observer != nil {
		e.Observer.Keep()
	}
}

// skip counts the periods that follow, and reports whether there are any worth
// it: sixteen, or a quarter of what the lead group has left.
func (e *Engine) skip() bool {
	s := &e.steady
	lead := &e.Groups[s.lead]
	times := int64(math.MaxInt64)
	for i := range e.Groups {
		if n := e.Groups[i].taken - s.taken[i]; n > 0 {
			times = min(times, e.repeats(&e.Groups[i], s.taken[i], n, times)/n)
			if times == 0 {
				return false
			}
		}
	}
	left := lead.Job.Plan.NumOps(&lead.Program) - lead.taken
	if n := lead.taken - s.taken[s.lead]; times < 16 && times*n < left/4 {
		return false
	}
	for i := range e.Groups {
		g := &e.Groups[i]
		g.goOn(times * (g.taken - s.taken[i]))
	}
	s.delta = s.wire.AppendCounts(s.delta[:0], e.Queue.Now)
	for i := range s.delta {
		s.delta[i] -= s.counts[i]
	}
	s.wire.AddCounts(s.delta, times)
	e.Net.RepeatWaits(s.waits, times)
	e.Skipped += units.Time(times) * (e.Queue.Now - s.at)
	e.Periods += times
	e.skippedEvents += times * (e.Queue.Handled() - s.events)
	e.fetched += times * (e.fetched - s.ops)
	if e.Observer != nil {
		e.Observer.Period(PeriodEvent{From: s.at, Times: times})
	}
	return true
}

// repeats returns how many ops of a group, from the first on, are the same n ops
// over and over, those after the first n; at most as many as times asks for.
func (e *Engine) repeats(g *Group, first, n, times int64) int64 {
	p := g.Job.Plan
	var a, b plan.Op
	behind, ahead := p.Open(&g.Program), p.Open(&g.Program)
	for range first {
		behind.Next(&a)
	}
	for range first + n {
		ahead.Next(&b)
	}
	k := int64(0)
	for (k < n || k/n <= times) && ahead.Next(&b) && behind.Next(&a) && g.same(&a, &b) {
		k++
	}
	e.steady.cost += wordsPerOp * (first + k)
	return k
}

// same reports whether two ops of a group last equally long in equal states.
// Where they lie in memory shows only by their alignment.
func (g *Group) same(a, b *plan.Op) bool {
	return a.Do == b.Do && a.Bytes == b.Bytes && a.Src.Buf == b.Src.Buf && a.Dst.Buf == b.Dst.Buf &&
		(a.Src.Off^b.Src.Off)%lineBytes == 0 && (a.Dst.Off^b.Dst.Off)%lineBytes == 0 &&
		a.RecvAhead == b.RecvAhead && a.SendAhead == b.SendAhead &&
		a.Chunk%g.perRound == b.Chunk%g.perRound &&
		slices.Equal(a.From, b.From) && slices.Equal(a.To, b.To)
}

// goOn goes on so many ops later, with an op in progress that is like the one
// there.
func (g *Group) goOn(ops int64) {
	if ops == 0 {
		return
	}
	op := g.Op
	for range ops {
		g.cur.Next(&op)
	}
	g.Op.Seq += int32(ops)
	g.taken += ops
}
