package engine

import (
	"context"
	"math"

	"github.com/simccl/simccl/sim/internal/event"
	"github.com/simccl/simccl/sim/internal/host"
	"github.com/simccl/simccl/sim/internal/team"
	"github.com/simccl/simccl/sim/wire"
	"github.com/simccl/simccl/units"
)

// A run may be handled in parts, side by side: ranks that share nothing but the network, and
// messages on the wire that share no link. Each part is an engine with a queue and a clock
// of its own, on the groups and connections of the whole. What happens in the network
// reaches ranks, and ranks each other, only after a latency: the lookahead. So the parts of
// ranks run up to a lookahead from the earliest of all events, then those of the network up
// to the same time with what was posted, and what they tell each other comes after that (K. M.
// Chandy and J. Misra, Distributed simulation, IEEE TSE 5(5), 1979, with windows in place of
// null messages).
//
// All results are those of one part, bit for bit. A part handles what is its own in the order
// in which the whole would: nothing of another part comes in between but letters, whose place
// among what is due at their time does not depend on when they were written
// (event.PushNamed). Rates follow from flows over common links, which are of one part. Within an instant
// of the network it does not matter which of two connections comes first: only the order of
// flows that end at one instant depends on it, and only what is of one connection has an order.

// apart is a run in parts.
type apart struct {
	e      *Engine
	parts  []part // those of ranks, then those of the network
	ranks  int    // how many those are
	ofRank []int32
	ofConn []int32 // by connection of the network
	ahead  units.Time
	limit  units.Time
	turn   []int32 // parts that have something to do before that
}

// part is a part of a run.
type part struct {
	e     *Engine
	next  units.Time // when something is due
	waits bool       // something is
}

// mark is how many events a part had handled before an instant.
type mark struct {
	at     units.Time
	events int64
}

// fewOps is of how many ops a run is handled in one part: it takes some milliseconds.
const fewOps = 1 << 12

// mostNets is how many parts the network has at most.
const mostNets = 32

// divide finds the parts of a run; nil where it is to be handled in one: where it uses one
// processor, is watched, may skip periods or is small, and where ranks and messages share
// links, or all ranks do.
func (e *Engine) divide() *apart {
	if e.Cores < 2 || e.Observer != nil || e.Net.Observer != nil || e.steady.on || e.Ended != nil || e.Jobs[0].Fold != nil {
		return nil
	}
	model, ok := e.Wire.(wire.Parted)
	ahead := e.Net.Lookahead()
	if !ok || ahead <= 0 || e.CountOps() < fewOps {
		return nil
	}
	a := &apart{e: e, ahead: ahead}
	nets := a.find()
	if a.ranks < 2 || nets < 1 {
		return nil
	}
	models := model.Split(a.ranks + nets)
	a.parts = make([]part, len(models))
	for i := range a.parts {
		p := new(Engine)
		*p = *e
		p.Queue, p.Wire, p.kinds, p.done, p.running = event.Queue{}, models[i], nil, nil, 0
		p.Net = e.Net.Part(&p.Queue, models[i], p)
		if i >= a.ranks {
			p.running = -1 // it has no kernels
		}
		a.parts[i].e = p
	}
	return a
}

// Parts is in how many parts the run is handled, once it has started.
func (e *Engine) Parts() int {
	if e.crew == nil {
		return 1
	}
	return len(e.crew.parts)
}

// sets are disjoint sets of things (R. E. Tarjan, J. ACM 22(2), 1975).
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

// find says which rank and which connection of the network is of which part, and returns how
// many the network has: 0 where some rank and some message share a link.
func (a *apart) find() (nets int) {
	e := a.e
	ranks, conns := int32(len(e.Devices)), int32(len(e.Net.Conns))
	links := ranks + conns
	s := newSets(int(links) + len(e.Wire.Loads()))
	uses := func(id int32, r wire.RouteID) {
		for _, u := range e.Wire.Uses(r) {
			s.join(id, links+int32(u.Link))
		}
	}
	for i := range e.Conns {
		c := &e.Conns[i]
		if c.Snd >= 0 {
			uses(e.Groups[c.Snd].Rank, c.Route)
		}
		if c.Net < 0 && c.Snd >= 0 && c.Rcv >= 0 {
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
		if len(e.Wire.Uses(l.Route)) == 0 { // which several may have
			return 0
		}
		uses(ranks+l.Conn, l.Route)
	}
	return a.number(s, ranks, conns)
}

// number numbers the sets that ranks and connections are in.
func (a *apart) number(s sets, ranks, conns int32) (nets int) {
	a.ofRank, a.ofConn = make([]int32, ranks), make([]int32, conns)
	known := make([]int32, len(s)) // number + 1
	for r := range ranks {
		k := &known[s.of(r)]
		if *k == 0 {
			a.ranks++
			*k = int32(a.ranks)
		}
		a.ofRank[r] = *k - 1
	}
	for c := range conns {
		k := &known[s.of(ranks+c)]
		if *k > 0 && *k <= int32(a.ranks) {
			return 0
		}
		if *k == 0 {
			nets++
			*k = int32(a.ranks + nets)
		}
		a.ofConn[c] = int32(a.ranks) + (*k-1-int32(a.ranks))%mostNets
	}
	return min(nets, mostNets)
}

// start begins the first kernels.
func (a *apart) start() {
	for r, i := range a.ofRank {
		p := a.parts[i].e
		p.running++
		p.startDevice(int32(r))
	}
	for i := range a.parts {
		p := &a.parts[i]
		p.next, p.waits = p.e.Queue.Next()
	}
}

// run is what Engine.Run is.
func (a *apart) run(ctx context.Context) error {
	e := a.e
	t := team.New(min(e.Cores, len(a.parts)), func(task int) {
		p := &a.parts[a.turn[task]]
		p.next, p.waits = p.e.until(a.limit)
	})
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
		if at >= lastTime {
			return e.tooLong()
		}
		a.limit = at + a.ahead
		a.side(t, 0, a.ranks)
		end, over := a.over()
		if over {
			a.limit = min(a.limit, end)
		}
		a.side(t, a.ranks, len(a.parts))
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

// report tells the listener how far the run is.
func (a *apart) report() {
	if a.e.Progress == nil {
		return
	}
	fetched := int64(0)
	for i := range a.parts[:a.ranks] {
		fetched += a.parts[i].e.fetched
	}
	a.e.Progress(float64(fetched) / float64(a.e.Ops))
}

// earliest is when something is due, ok false where nothing is.
func (a *apart) earliest() (at units.Time, ok bool) {
	at = math.MaxInt64
	for i := range a.parts {
		if p := &a.parts[i]; p.waits {
			at, ok = min(at, p.next), true
		}
	}
	return at, ok
}

// side has parts run up to the limit, and delivers what they have written.
func (a *apart) side(t *team.Team, from, to int) {
	a.turn = a.turn[:0]
	for i := from; i < to; i++ {
		if p := &a.parts[i]; p.waits && p.next < a.limit {
			a.turn = append(a.turn, int32(i))
		}
	}
	t.Do(len(a.turn))
	for _, i := range a.turn {
		n := a.parts[i].e.Net
		for k := range n.Letters {
			a.deliver(n, &n.Letters[k])
		}
		n.Letters = n.Letters[:0]
	}
}

func (a *apart) deliver(n *host.Network, l *host.Letter) {
	to := &a.parts[a.ofConn[l.Conn]]
	if !l.ToNetwork() {
		to = &a.parts[a.ofRank[n.To(l)]]
	}
	to.e.Net.Take(l)
	if !to.waits || l.At < to.next {
		to.next, to.waits = l.At, true
	}
}

// over reports whether all kernels are done, and since when.
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

// err is the error of the first part that has one.
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
	for i := range a.parts {
		p := a.parts[i].e
		e.Events += p.handledBefore(end) - p.Net.Taken()
		e.fetched += p.fetched
		e.Net.Rejoin(p.Net)
	}
	e.Queue.Now = end
}

// handledBefore is how many events a part has handled before a time at which its kernels
// were done.
func (e *Engine) handledBefore(at units.Time) int64 {
	for _, m := range e.tail {
		if m.at >= at {
			return m.events
		}
	}
	return e.Queue.Handled()
}

// until handles what is due before a limit, and says when what comes next is.
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

// note notes how many events came before an instant, once a part's kernels are done.
func (e *Engine) note(at units.Time) {
	if e.running == 0 {
		e.tail = append(e.tail, mark{at, e.Queue.Handled()})
	}
}
