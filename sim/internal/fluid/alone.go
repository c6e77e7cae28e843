package fluid

import (
	"github.com/simccl/simccl/sim/internal/event"
	"github.com/simccl/simccl/sim/wire"
	"github.com/simccl/simccl/units"
)

// Most changes of a bound leave everything else as it is. A flow on links that hold
// up none of their flows runs at its bound: it runs alone, with no bundle, and a new
// bound is its own affair. A flow that a link holds up below both its old and its new
// bound goes on as it did: it lodges in the bundle that it is in, which has another
// bound, until that might get faster than one of the two. Rates and the order of
// completions are those of bundles by route and bound: a flow knows its own bundle and
// when it came there, wherever it is.
//
// Example: of ten sends that share an SM one ends, and the nine others get faster. Where
// no link is full, each of the nine has another end, and links another rest; no level
// changes. Where the NIC's link is full, nothing changes at all.

// A flow is in no bundle where it runs alone. Its end is in the completion heap where
// bounds change on its route. Elsewhere it is known when it starts: the flow is timed,
// and its end waits in a queue of events, where it stays, stale, if a link holds up the
// flow before. Routes of which that was so once have bundles since.
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

// showAlone lists the flows of a route that run alone on its links.
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

func (f *Fluid) hideAlone(rt *route) {
	rt.shown = false
	for i := range rt.places {
		f.retire(&f.links[rt.places[i].link], rt.places[i].at)
	}
}

// load counts n flows of a rate on the links of a slack route, which come or, below 0,
// go.
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

// mark is for a link that holds up no flows and whose load changes: its level is found where it is full.
func (f *Fluid) mark(l *link, li int32) {
	f.note(l, li)
	if !l.slack() && !l.queued {
		l.queued = true
		f.queue = append(f.queue, li)
	}
}

// leftAlone is the work that a flow alone has left, which has had a bound so far.
func (f *Fluid) leftAlone(fl *flow, bound wire.Rate) wire.Work {
	return fl.left - wire.Work(bound)*wire.Work(f.now-fl.last)
}

// dropAlone takes a flow of a bound from its route.
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

// forget takes away the end of a flow alone.
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

// nextTimed is the end of the timed flow that ends first, ok false without one.
func (f *Fluid) nextTimed() (at units.Time, ok bool) {
	for f.stale > 0 && !f.isTimed(f.ends.First()) {
		var e event.Event
		f.ends.Pop(&e)
		f.stale--
	}
	return f.ends.Next()
}

// endTimed ends the timed flows that are through.
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

// setAlone gives a flow another bound. Where it ends later for that, its place in the
// heap is corrected when its turn comes.
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

// freshen sees to it that what is first in the heap ends when it says.
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

// gather puts the flows that run alone on a link into their bundles: it is to hold up
// flows.
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

// transfer counts n flows in a bundle that its links have counted at the same rate
// elsewhere.
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

// lodge leaves a flow that gets another bound where it is.
func (f *Fluid) lodge(id wire.FlowID, own int32, bound wire.Rate) {
	fl := &f.flows[id]
	b, s := &f.bundles[fl.in], &f.shares[fl.in]
	f.seq++
	fl.own, fl.seq = own, f.seq
	b.heap[fl.pos].seq = f.seq
	f.down(b, int(fl.pos))
	s.admit(bound)
}

// holds reports whether a flow of a bound would run at the bundle's rate, as a link
// holds it up.
func (s *share) holds(bound wire.Rate) bool { return s.n > 0 && s.rate < min(s.bound, bound) }

// admit notes a lodger.
func (s *share) admit(bound wire.Rate) {
	if !s.lodge {
		s.lodge, s.least = true, s.bound
	}
	s.least = min(s.least, bound)
}

// flush has the lodgers of the bundles that a link holds up move to their own where
// some flow of the bundle may reach its bound at a rate.
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

// moveOut has the lodgers of a bundle move to their own.
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
