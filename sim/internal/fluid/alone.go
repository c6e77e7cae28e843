package fluid

import (
	"github.com/simccl/simccl/sim/internal/event"
	"github.com/simccl/simccl/sim/wire"
	"github.com/simccl/simccl/units"
)

// Two shortcuts for changes of a flow's bound, most of which affect no other flow:
//
//   - Alone: no link of the route is a bottleneck (link.level is none), so each flow runs at its own bound,
//     without a bundle. A new bound changes this flow's end and the links' rest, no level.
//   - Lodging: a link holds the flow up below both its old and its new bound, so its rate stays the same. The
//     flow stays as a lodger in its present bundle, whose bound is another, until the bundle's rate may reach
//     the lodger's bound or the bundle's (flush).
//
// Rates and the order of completions are those of bundles by route and bound: flow.own is the bundle to which
// a flow belongs by its bound, flow.in where it is.
//
// Example: one of ten sends that share an SM ends, and the nine others get faster. Where no link is full,
// each of the nine gets a new end (alone). Where the NIC's link is full, no rate changes (lodging).

// Values of flow.in for a flow that runs alone. Its end is in Fluid.order (alone) where bounds change on its
// route (route.varies). Else it is fixed at the start and waits in the event queue Fluid.ends (timed), which
// is cheaper; if a link becomes a bottleneck of the flow, its event stays there as a stale one. A route that
// had a bottleneck once (coupled) uses bundles from then on.
const (
	alone = -1
	timed = -2
)

// slack reports whether flows of a route run alone: no link of it holds up flows.
func (f *Fluid) slack(rt *route) bool {
	if rt.coupled && !rt.varies {
		return false
	}
	for i := range rt.uses {
		if f.links[rt.uses[i].Link].level != none {
			return false
		}
	}
	return true
}

// runAlone starts a flow of a slack route.
func (f *Fluid) runAlone(id wire.FlowID, w wire.Work) {
	fl := &f.flows[id]
	rt := &f.routes[fl.route]
	if !rt.shown {
		f.showAlone(fl.route, rt)
	}
	fl.in, fl.at, fl.left, fl.last, fl.late = alone, int32(len(rt.alone)), w, f.now, false
	rt.alone = append(rt.alone, id)
	f.load(rt, int64(fl.mult), fl.bound)
	if !rt.varies {
		fl.in, fl.pos = timed, int32(fl.seq)
		f.ends.Now = f.now
		f.ends.Push(f.now+lasts(w, fl.bound), event.Done, 0, int32(id), fl.pos)
		return
	}
	f.order = append(f.order, due{})
	f.orderPlace(len(f.order)-1, due{f.now + lasts(w, fl.bound), fl.own, id})
}

// showAlone adds a route's entry ^ri, for its flows that run alone, to its links' active lists.
func (f *Fluid) showAlone(ri int32, rt *route) {
	rt.shown = true
	if rt.places == nil {
		rt.places = make([]place, len(rt.uses))
	}
	for i := range rt.uses {
		l := &f.links[rt.uses[i].Link]
		rt.places[i] = place{link: int32(rt.uses[i].Link), count: rt.uses[i].Count, at: int32(len(l.active))}
		l.active = append(l.active, activeUse{bundle: ^ri, use: int32(i)})
	}
}

// hideAlone removes the entry that showAlone added.
func (f *Fluid) hideAlone(rt *route) {
	rt.shown = false
	for i := range rt.places {
		f.retire(&f.links[rt.places[i].link], rt.places[i].at)
	}
}

// load adds n flows of a rate to the links of a slack route; negative n removes them.
func (f *Fluid) load(rt *route, n int64, rate wire.Rate) {
	for i := range rt.uses {
		u := &rt.uses[i]
		l := &f.links[u.Link]
		k := n * int64(u.Count)
		if l.flows == 0 {
			l.since = f.now
		}
		if l.flows += k; l.flows == 0 {
			l.busy += f.now - l.since
		}
		l.rest -= wire.Rate(k) * rate
		f.mark(l, int32(u.Link))
	}
}

// mark handles a changed load of a link that is no bottleneck: if it is full now, its level is computed.
func (f *Fluid) mark(l *link, li int32) {
	f.note(l, li)
	if !l.slack() && !l.queued {
		l.queued = true
		f.queue = append(f.queue, li)
	}
}

// leftAlone returns the work left of a flow that runs alone and has run at a bound since flow.last.
func (f *Fluid) leftAlone(fl *flow, bound wire.Rate) wire.Work {
	return fl.left - wire.Work(bound)*wire.Work(f.now-fl.last)
}

// dropAlone removes a flow that runs alone at a bound from its route and links.
func (f *Fluid) dropAlone(id wire.FlowID, bound wire.Rate) {
	fl := &f.flows[id]
	rt := &f.routes[fl.route]
	f.forget(fl)
	last := len(rt.alone) - 1
	other := rt.alone[last]
	rt.alone[fl.at], f.flows[other].at = other, fl.at
	rt.alone = rt.alone[:last]
	f.load(rt, -int64(fl.mult), bound)
}

// forget cancels the completion of a flow that runs alone; the event of a timed flow becomes stale.
func (f *Fluid) forget(fl *flow) {
	if fl.in == alone {
		f.orderDrop(int(fl.pos))
	} else {
		f.stale++
	}
}

// isTimed reports whether an event is the end of a timed flow.
func (f *Fluid) isTimed(e *event.Event) bool {
	fl := &f.flows[e.ID]
	return fl.own >= 0 && fl.in == timed && fl.pos == e.Arg
}

// nextTimed returns the first end of a timed flow, and drops stale events before it.
func (f *Fluid) nextTimed() (at units.Time, ok bool) {
	for f.stale > 0 && !f.isTimed(f.ends.First()) {
		var e event.Event
		f.ends.Pop(&e)
		f.stale--
	}
	return f.ends.Next()
}

// endTimed completes the timed flows whose ends are due, and drops stale events.
func (f *Fluid) endTimed() {
	var e event.Event
	for at, ok := f.ends.Next(); ok && at <= f.now; at, ok = f.ends.Next() {
		f.ends.Pop(&e)
		if f.isTimed(&e) {
			f.end(wire.FlowID(e.ID))
		}
		f.stale--
	}
}

// setAlone changes the bound of a flow that runs alone. If it ends later by that, it keeps its place in order
// for now and is marked late: freshen moves it when it comes to the top, which is rarer than changes.
func (f *Fluid) setAlone(id wire.FlowID, own int32, old, bound wire.Rate) {
	fl := &f.flows[id]
	fl.left = max(1, fl.left-wire.Work(old)*wire.Work(f.now-fl.last))
	f.seq++
	fl.own, fl.last, fl.seq = own, f.now, f.seq
	rt := &f.routes[fl.route]
	more := wire.Rate(fl.mult) * (bound - old)
	for i := range rt.uses {
		l := &f.links[rt.uses[i].Link]
		l.rest -= wire.Rate(rt.uses[i].Count) * more
		f.mark(l, int32(rt.uses[i].Link))
	}
	if fl.late = true; bound > old {
		if at := f.now + lasts(fl.left, bound); at <= f.order[fl.pos].at {
			fl.late = false
			f.orderPlace(int(fl.pos), due{at, own, id})
		}
	}
}

// freshen moves late flows (setAlone) at the top of order to their true ends, until the top is not late.
func (f *Fluid) freshen() {
	for len(f.order) > 0 && f.order[0].flow >= 0 {
		id := f.order[0].flow
		fl := &f.flows[id]
		if !fl.late {
			return
		}
		fl.late = false
		f.orderPlace(0, due{fl.last + lasts(fl.left, fl.bound), fl.own, id})
	}
}

// gather moves the flows that run alone on a link into their bundles, as the link becomes a bottleneck.
func (f *Fluid) gather(l *link) {
	for i := len(l.active) - 1; i >= 0; i-- {
		ri := l.active[i].bundle
		if ri >= 0 {
			continue
		}
		rt := &f.routes[^ri]
		f.hideAlone(rt)
		rt.coupled = true
		for _, id := range rt.alone {
			fl := &f.flows[id]
			left := max(1, f.left(fl))
			f.forget(fl)
			f.join(id, fl.own, left)
			f.transfer(fl.own, fl.bound, int64(fl.mult))
		}
		rt.alone = rt.alone[:0]
	}
}

// transfer adds n flows to a bundle's weight on its links (negative: removes them). The links' flows and rest
// stay: they have counted these flows at the same rate, alone or in another bundle.
func (f *Fluid) transfer(bi int32, rate wire.Rate, n int64) {
	b, s := &f.bundles[bi], &f.shares[bi]
	k := key(rate, rate == s.bound)
	for i := range b.uses {
		u := &b.uses[i]
		l := &f.links[u.link]
		w := n * int64(u.count)
		if s.n == 0 {
			u.at = int32(len(l.active))
			l.active = append(l.active, activeUse{k, w, bi, int32(i)})
		} else if s.n+n == 0 {
			f.retire(l, u.at)
		} else {
			l.active[u.at].weight += w
		}
		l.weigh(k, w)
	}
	s.rate = rate
	s.n += n
}

// lodge changes a flow's bound and leaves it in its present bundle as a lodger.
func (f *Fluid) lodge(id wire.FlowID, own int32, bound wire.Rate) {
	fl := &f.flows[id]
	b, s := &f.bundles[fl.in], &f.shares[fl.in]
	f.seq++
	fl.own, fl.seq = own, f.seq
	b.heap[fl.pos].seq = f.seq
	f.down(b, int(fl.pos))
	s.admit(bound)
}

// holds reports whether a flow of a bound would run at the bundle's rate: a link holds the bundle up below
// its own bound and the flow's.
func (s *share) holds(bound wire.Rate) bool { return s.n > 0 && s.rate < min(s.bound, bound) }

// admit records a lodger with a bound.
func (s *share) admit(bound wire.Rate) {
	if !s.lodge {
		s.lodge, s.least = true, s.bound
	}
	s.least = min(s.least, bound)
}

// flush moves lodgers to their own bundles, of those bundles that a link holds up and in which some flow
// would reach its bound at the link's new rate.
func (f *Fluid) flush(l *link, rate wire.Rate) {
	f.flushed = f.flushed[:0]
	for i, up := 0, l.up(); i < len(l.active); i++ {
		if a := &l.active[i]; a.key == up && f.shares[a.bundle].lodge && f.shares[a.bundle].least <= rate {
			f.flushed = append(f.flushed, a.bundle)
		}
	}
	for _, bi := range f.flushed {
		f.moveOut(bi)
	}
}

// moveOut moves the lodgers of a bundle to their own bundles, at an unchanged rate.
func (f *Fluid) moveOut(bi int32) {
	rate := f.shares[bi].rate
	f.shares[bi].lodge = false
	f.lodgers = f.lodgers[:0]
	for _, e := range f.bundles[bi].heap {
		if f.flows[e.flow].own != bi {
			f.lodgers = append(f.lodgers, e.flow)
		}
	}
	for _, id := range f.lodgers {
		fl := &f.flows[id]
		left := f.left(fl)
		f.drop(id)
		f.transfer(bi, rate, -int64(fl.mult))
		f.join(id, fl.own, left)
		f.transfer(fl.own, rate, int64(fl.mult))
	}
}
