package engine

import (
	"context"
	"math"
	"slices"

	"github.com/simccl/simccl/internal/parallel"
	"github.com/simccl/simccl/sim/internal/event"
	"github.com/simccl/simccl/sim/internal/host"
	"github.com/simccl/simccl/sim/wire"
	"github.com/simccl/simccl/units"
)

// A run may be handled in parts, side by side: ranks that share nothing but the network, and
// messages on the wire that share no link. Each part is an engine with a queue and a clock
// of its own, on the groups and connections of the whole. What happens in the network
// reaches ranks, and ranks each other, only after a latency: the lookahead. So the parts of
// ranks run up to a lookahead from the earliest of all events, then those of the network up
// to the same time with what was posted, and what they have for each other comes after that (K. M.
// Chandy and J. Misra, Distributed simulation, IEEE TSE 5(5), 1979, with windows in place of
// null messages).
//
// All results are those of one part, bit for bit. A part handles what is its own in the order
// in which the whole would: nothing of another part comes in between but letters, whose place
// among what is due at their time does not depend on when they were written
// (event.PushNamed). Rates follow from flows over common links, which are of one part. Within an instant
// of the network it does not matter which of two connections comes first: only the order of
// flows that end at one instant depends on it, and only what is of one connection has an order.

// apart is a run that has been divided into parts.
type apart struct {
	e       *Engine
	parts   []part // those of ranks, then those of the network
	workers int    // processors
	ranks   int    // parts of ranks: parts[:ranks]
	ofRank  []int32
	ofConn  []int32 // by connection of the network
	ofRoute []int32
	ahead   units.Time // the lookahead: length of a window
	limit   units.Time // end of the present window
	turn    []int32    // parts of a side with events before limit
	events  [2]int64   // events of each side in a window: the most of the last ones, decayed by 1/8 a window
}

type part struct {
	e      *Engine
	next   units.Time // time of the next event or end of a flow
	waits  bool       // there is one
	events int64      // handled in the last window
}

// mark is a part's count of events before an instant, by which rejoin leaves out those after the run's end.
type mark struct {
	at     units.Time
	events int64
}

// fewOps is the number of ops below which a run is not divided: it takes some milliseconds in all.
const fewOps = 1 << 11

// fewEvents is the number of events in a window below which one processor runs all parts of a side: waking
// the other workers would take about as long.
const fewEvents = 16

// Sides.
const (
	ofRanks = iota
	ofNetwork
)

// perWorker is how many parts of ranks, and of the network, there are at most for each processor: with fewer
// parts more of what a processor needs is in its cache, with more of them one that is late
// is helped out.
const perWorker = 4

// divide splits a run between two instants into parts, and gives them their kernels and events. It returns
// false for a run that stays in one part: one processor, an observer, a folded or small run, and where ranks
// share links with messages, or all ranks with each other.
func (e *Engine) divide() bool {
	if e.Cores < 2 || e.Observer != nil || e.Net.Observer != nil || e.Ended != nil || e.Jobs[0].Fold != nil {
		return false
	}
	model, ok := e.Wire.(wire.Parted)
	ahead := e.Net.Lookahead()
	if !ok || ahead <= 0 || e.CountOps()-e.fetched < fewOps {
		return false
	}
	a := &apart{e: e, ahead: ahead, workers: e.Cores}
	nets := a.find(model)
	if a.ranks < 2 || nets < 1 {
		return false
	}
	a.workers = min(a.workers, max(a.ranks, nets))
	models, flows := model.Split(a.ranks+nets, a.ofRoute)
	for i := range e.Groups {
		if g := &e.Groups[i]; g.state == moving && g.flow >= 0 {
			g.flow = flows[g.flow]
		}
	}
	a.parts = make([]part, len(models))
	for i := range a.parts {
		a.parts[i].e = e.part(models[i])
		if i >= a.ranks {
			a.parts[i].e.running = -1 // it has no kernels
		}
	}
	a.deal()
	e.apart = a
	return true
}

// part returns an engine for one part: it shares groups and connections with e, and has a queue, model of
// links and network of its own.
func (e *Engine) part(m wire.Model) *Engine {
	p := new(Engine)
	*p = *e
	p.Queue, p.Wire, p.done, p.running, p.fetched, p.steady = event.Queue{}, m, nil, 0, 0, steady{}
	p.kinds = slices.Clone(e.kinds) // groups know theirs by number
	for i := range p.kinds {
		p.kinds[i].rates = slices.Clone(e.kinds[i].rates)
	}
	p.Queue.Continue(&e.Queue)
	p.Net = e.Net.Part(&p.Queue, m, p)
	return p
}

// deal gives the parts their kernels and the events that wait.
func (a *apart) deal() {
	e := a.e
	for r, i := range a.ofRank {
		if d := &e.Devices[r]; d.Done < d.Job.Kernels && (e.down == nil || !e.down[r]) {
			a.parts[i].e.running++
		}
	}
	for _, ev := range e.Queue.AppendAll(nil) {
		to := int32(0)
		if ev.Kind() < host.Kinds {
			to = a.ofRank[e.Groups[ev.ID].Rank]
		} else if rank, conn := e.Net.Owner(&ev); rank >= 0 {
			to = a.ofRank[rank]
		} else {
			to = a.ofConn[conn]
		}
		a.parts[to].e.Queue.Put(&ev)
	}
	for i := range a.parts {
		a.parts[i].due()
	}
}

// due sets the time of a part's next event or end of a flow.
func (p *part) due() {
	p.next, p.waits = p.e.Queue.Next()
	if end, flows := p.e.Wire.Next(); flows && (!p.waits || end < p.next) {
		p.next, p.waits = end, true
	}
}

// Parts returns the number of parts that a run was divided into, 1 where it was not.
func (e *Engine) Parts() int {
	if e.apart == nil {
		return 1
	}
	return len(e.apart.parts)
}

// sets is a union-find of ranks, connections and links, by index (R. E. Tarjan, J. ACM 22(2), 1975).
type sets []int32

func newSets(n int) sets {
	s := make(sets, n)
	for i := range s {
		s[i] = int32(i)
	}
	return s
}

func (s sets) of(i int32) int32 {
	for s[i] != i {
		s[i] = s[s[i]]
		i = s[i]
	}
	return i
}

func (s sets) join(a, b int32) { s[s.of(a)] = s.of(b) }

// find assigns ranks, connections of the network and routes to parts: those that share a link, directly or
// through others, are in one part. It returns the number of parts of the network, 0 where a rank and a
// message share a link.
func (a *apart) find(model wire.Parted) (nets int) {
	e := a.e
	ranks, conns := int32(len(e.Devices)), int32(len(e.Net.Conns))
	links := ranks + conns
	s := newSets(int(links) + len(model.Names()))
	uses := func(id int32, r wire.RouteID) {
		for _, u := range model.Uses(r) {
			s.join(id, links+int32(u.Link))
		}
	}
	for i := range e.Conns {
		c := &e.Conns[i]
		if c.Snd < 0 {
			continue
		}
		uses(e.Groups[c.Snd].Rank, c.Route)
		if c.Net < 0 && c.Rcv >= 0 {
			s.join(e.Groups[c.Snd].Rank, e.Groups[c.Rcv].Rank)
		}
	}
	for i := range e.Groups {
		if g := &e.Groups[i]; g.Joint >= 0 {
			uses(g.Rank, g.Joint)
		}
	}
	for i := range e.Net.Conns {
		c := &e.Net.Conns[i]
		s.join(c.Src, c.SrcProxy)
		s.join(c.Dst, c.DstProxy)
	}
	for i := range e.Net.Pairs {
		l := &e.Net.Pairs[i]
		if len(model.Uses(l.Route)) == 0 { // which several may have
			return 0
		}
		uses(ranks+l.Conn, l.Route)
	}
	known := make([]int32, len(s))
	if !a.partRanks(s, known) {
		return 0
	}
	if nets = a.partNetwork(s, known); nets == 0 {
		return 0
	}
	a.ofRoute = make([]int32, model.NumRoutes())
	for r := range a.ofRoute {
		if on := model.Uses(wire.RouteID(r)); len(on) > 0 {
			a.ofRoute[r] = max(0, known[s.of(links+int32(on[0].Link))]-1) // 0: none takes it
		}
	}
	for r, local := range e.locals {
		a.ofRoute[local] = a.ofRank[r]
	}
	return nets
}

// partRanks makes parts of sets of ranks, as many ranks in each as can be, in the order of ranks; known is
// the part + 1 of each set. It reports whether there are two parts.
func (a *apart) partRanks(s sets, known []int32) bool {
	a.ofRank = make([]int32, len(a.e.Devices))
	size, found := make([]int, len(s)), 0
	for r := range a.ofRank {
		n := &size[s.of(int32(r))]
		if *n == 0 {
			found++
		}
		*n++
	}
	a.ranks = min(found, a.workers*perWorker)
	before := 0
	for r := range a.ofRank {
		set := s.of(int32(r))
		k := &known[set]
		if *k == 0 {
			*k = int32((2*before+size[set])*a.ranks/(2*len(a.ofRank))) + 1
			before += size[set]
		}
		a.ofRank[r] = *k - 1
	}
	return a.ranks > 1
}

// partNetwork makes parts of sets of connections of the network, with those of ranks that send in
// one, as far as parts get equally many. It returns the number of parts, 0 where some rank and some message
// share a link.
func (a *apart) partNetwork(s sets, known []int32) (nets int) {
	conns, ranks := a.e.Net.Conns, int32(len(a.ofRank))
	a.ofConn = make([]int32, len(conns))
	size, found := make([]int, len(s)), 0
	for c := range conns {
		set := s.of(ranks + int32(c))
		if known[set] != 0 {
			return 0
		}
		if size[set]++; size[set] == 1 {
			found++
		}
	}
	nets = min(found, a.workers*perWorker)
	if nets == 0 {
		return 0
	}
	load := make([]int, nets)
	for c := range conns {
		set := s.of(ranks + int32(c))
		k := &known[set]
		if *k == 0 {
			to := int(a.ofRank[conns[c].Src]) * nets / a.ranks
			if (load[to]+size[set])*nets > len(conns) {
				to = least(load)
			}
			load[to] += size[set]
			*k = int32(a.ranks+to) + 1
		}
		a.ofConn[c] = *k - 1
	}
	return nets
}

func least(of []int) (at int) {
	for i, n := range of {
		if n < of[at] {
			at = i
		}
	}
	return at
}

// workersOf returns the worker that prefers each part, whose cache has the part's data from the last window.
func (a *apart) workersOf() []int32 {
	of, nets := make([]int32, len(a.parts)), len(a.parts)-a.ranks
	for i := range of {
		if i < a.ranks {
			of[i] = int32(i * a.workers / a.ranks)
		} else {
			of[i] = int32((i - a.ranks) * a.workers / nets)
		}
	}
	return of
}

// all goes on in place of Engine.Run once the run is divided: window after window until all kernels are done.
func (a *apart) all(ctx context.Context) error {
	e := a.e
	t := parallel.New(a.workers, a.workersOf(), a.run)
	defer t.Dismiss()
	for {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		a.report()
		at, ok := a.earliest()
		if !ok {
			return e.deadlock()
		}
		if at+e.Skipped >= lastTime {
			return e.tooLong()
		}
		a.limit = at + a.ahead
		a.side(t, ofRanks)
		end, over := a.over()
		if over {
			a.limit = min(a.limit, end)
		}
		a.side(t, ofNetwork)
		if err := a.err(); err != nil {
			return err
		}
		if over {
			a.rejoin(end)
			if e.down != nil {
				return e.hang()
			}
			return nil
		}
	}
}

// report calls Progress with the share of ops that were fetched.
func (a *apart) report() {
	if a.e.Progress == nil {
		return
	}
	fetched := a.e.fetched
	for i := range a.parts[:a.ranks] {
		fetched += a.parts[i].e.fetched
	}
	a.e.Progress(float64(fetched) / float64(a.e.Ops))
}

// earliest returns the time of the first event of all parts; ok is false without one.
func (a *apart) earliest() (at units.Time, ok bool) {
	at = math.MaxInt64
	for i := range a.parts {
		if p := &a.parts[i]; p.waits {
			at, ok = min(at, p.next), true
		}
	}
	return at, ok
}

// side has the parts of one side run up to the limit, and delivers what they have written.
// Where the last windows had few events, the caller's processor runs them alone. The maximum decays slowly,
// as windows with many and with few events often alternate.
func (a *apart) side(t *parallel.Team, which int) {
	a.turn = a.turn[:0]
	from, to := 0, a.ranks
	if which == ofNetwork {
		from, to = a.ranks, len(a.parts)
	}
	for i := from; i < to; i++ {
		if p := &a.parts[i]; p.waits && p.next < a.limit {
			a.turn = append(a.turn, int32(i))
		}
	}
	if a.events[which] < fewEvents {
		for _, i := range a.turn {
			a.run(int(i))
		}
	} else {
		t.Do(a.turn)
	}
	events := int64(0)
	for _, i := range a.turn {
		events += a.parts[i].events
		n := a.parts[i].e.Net
		for k := range n.CrossMessages {
			a.deliver(n, &n.CrossMessages[k])
		}
		n.CrossMessages = n.CrossMessages[:0]
	}
	a.events[which] = max(events, a.events[which]*7/8)
}

func (a *apart) run(i int) {
	p := &a.parts[i]
	before := p.e.Queue.Handled()
	p.next, p.waits = p.e.until(a.limit)
	p.events = p.e.Queue.Handled() - before
}

func (a *apart) deliver(n *host.Network, l *host.CrossMessage) {
	to := &a.parts[a.ofConn[l.Conn]]
	if !l.ToNetwork() {
		to = &a.parts[a.ofRank[n.To(l)]]
	}
	to.e.Net.Take(l)
	if !to.waits || l.At < to.next {
		to.next, to.waits = l.At, true
	}
}

// over reports whether the kernels of all parts are done, and when the last one ended.
func (a *apart) over() (end units.Time, over bool) {
	for i := range a.parts[:a.ranks] {
		p := a.parts[i].e
		if p.running > 0 {
			return 0, false
		}
		if len(p.tail) > 0 {
			end = max(end, p.tail[0].at)
		}
	}
	return end, true
}

// err returns the error of the lowest part that failed, whichever failed first in wall time.
func (a *apart) err() error {
	for i := range a.parts {
		if err := a.parts[i].e.err; err != nil {
			return err
		}
	}
	return nil
}

// rejoin adds up what the parts counted before the end.
func (a *apart) rejoin(end units.Time) {
	e := a.e
	e.Events = e.Queue.Handled() + e.skippedEvents
	for i := range a.parts {
		p := a.parts[i].e
		e.Events += p.handledBefore(end) - p.Net.Taken()
		e.fetched += p.fetched
		e.Net.Rejoin(p.Net)
	}
	e.Queue.Now = end
}

// handledBefore returns how many events a part had handled before a time, which is not before the end of its
// kernels: from then on tail has the counts.
func (e *Engine) handledBefore(at units.Time) int64 {
	for _, m := range e.tail {
		if m.at >= at {
			return m.events
		}
	}
	return e.Queue.Handled()
}

// until handles events and ends of flows before a limit, and returns the time of the next one.
func (e *Engine) until(limit units.Time) (next units.Time, ok bool) {
	var ev event.Event
	for e.err == nil {
		if e.Queue.PopNow(&ev) {
			e.comes()
			e.handle(&ev)
			continue
		}
		at, ok := e.Queue.Next()
		if !ok || at > e.Queue.Now {
			if end, flows := e.Wire.Next(); flows && (!ok || end <= at) {
				if end >= limit {
					return end, true
				}
				e.note(end)
				e.advance(end)
				continue
			}
		}
		if !ok || at >= limit {
			return at, ok
		}
		e.note(at)
		e.Queue.Pop(&ev)
		e.begins(at, e.Queue.Handled()-1)
		e.handle(&ev)
	}
	return 0, false
}

// note records the count of events before an instant in tail, once a part's kernels are done.
func (e *Engine) note(at units.Time) {
	if e.running == 0 {
		e.tail = append(e.tail, mark{at, e.Queue.Handled()})
	}
}
