package fluid

import (
	"math"
	"slices"

	"github.com/simccl/simccl/sim/internal/event"
	"github.com/simccl/simccl/sim/wire"
	"github.com/simccl/simccl/units"
)

// none is the level of a link that is no flow's bottleneck.
const none = wire.Rate(math.MaxInt64)

// link is a link's share of max-min: what it carries, and the level that it grants (see level.go). It takes
// two cache lines; a flow that starts or ends alone touches only the first.
type link struct {
	rest   wire.Rate // capacity that the present rates leave free
	level  wire.Rate // rate of the flows that it holds up (whose bottleneck it is); none without any
	flows  int64     // active flows, weighted by multiplicity and count
	held   int64     // weight of those that it holds up
	top    wire.Rate // upper bound of the keys of the others
	busy   units.Time
	since  units.Time  // start of the present busy span
	lead   wire.LinkID // the link that takes its place in the sharing (Seal), mostly itself
	queued bool        // in Fluid.queue: its level must be recomputed
	noted  bool        // in Fluid.noted: its load must be reported

	active []activeUse // bundles that have flows, in no order
	cap    wire.Rate
	mates  []wire.LinkID // the other links that it leads
	_      [8]byte
}

// activeUse is a bundle's entry on a link: its rate as a key (level.go), the weight of its flows there, and
// the index (use) of the link in its route's uses. bundle ^r is the entry of all flows of route r that run
// alone (alone.go); it has neither key nor weight, and stays until the link becomes a bottleneck.
type activeUse struct {
	key         wire.Rate
	weight      int64
	bundle, use int32
}

// route is a route with its counters and its flows that run alone. It takes two cache lines.
type route struct {
	uses    []wire.Use  // its links that may become bottlenecks (Seal), each once
	bytes   units.Bytes // bytes carried; nano: the rest below a byte
	nano    wire.Work
	last    bundleKey // result of the last bundleFor
	host    int32     // the bundle in which flows of other bounds may lodge (alone.go)
	varies  bool      // a flow of it has changed its bound
	coupled bool      // a link was the bottleneck of a flow of it
	shown   bool      // its entry ^r is in the active lists of its links

	alone  []wire.FlowID // flows that run alone
	places []place       // where the entry ^r is, by use
	_      [16]byte
}

// bundleKey names the bundle of a route's flows of one bound.
type bundleKey struct {
	bound  wire.Rate
	bundle int32
}

// bundle holds the flows that share a route and a bound, hence a rate. Each receives the same work, so one
// sum (done) serves all: a flow that joins with work w left ends when done reaches its target, done + w.
// While a link holds the bundle up, flows of the route with other bounds may lodge in it (alone.go).
type bundle struct {
	live  int64 // flows, weighted by multiplicity
	uses  []place
	done  wire.Work // work that each flow has received up to last
	last  units.Time
	heap  []entry // its flows, by target
	route int32
	pos   int32 // place in the completion heap, -1 when absent
	moved bool  // flows came or went, or the rate changed, since the last refill
}

// share is the part of a bundle's state that links read while levels are computed, kept apart from the rest
// so that it stays in the cache.
type share struct {
	rate  wire.Rate
	bound wire.Rate
	n     int64     // live as of the last count: what its links know
	least wire.Rate // with lodge: lower bound of the bounds of its flows
	lodge bool      // it may have lodgers
}

// place is a use of a bundle's route: the link, how often the route crosses it, and the index of the bundle's
// entry in the link's active list.
type place struct{ link, count, at int32 }

// entry is a flow in a bundle's heap: it ends when bundle.done reaches target; of equal targets the lower seq
// ends first.
type entry struct {
	target wire.Work
	seq    int64
	flow   wire.FlowID
}

// flow is a flow in progress, in one cache line.
type flow struct {
	own   int32 // the bundle of its route and bound; -1: it has ended
	in    int32 // the bundle that it is in; or alone, or timed
	pos   int32 // index in that bundle's heap; alone: in Fluid.order; timed: Arg of its event in Fluid.ends
	mult  int32
	token int32
	route int32
	bound wire.Rate
	seq   int64 // order in which flows got their present bounds
	// Only while it runs alone:
	left wire.Work // work left at time last
	last units.Time
	at   int32 // index in route.alone
	late bool  // it ends later than Fluid.order says (setAlone)
}

// Fluid is the max-min model. Links and routes are declared first, then flows
// run. It is not safe for concurrent use.
type Fluid struct {
	wire.Layout
	links   []link
	routes  []route
	keys    [][]bundleKey // by route: its bundles
	bundles []bundle
	shares  []share // by bundle
	flows   []flow
	free    []wire.FlowID
	order   []due       // heap of bundles and flows that run alone, by next completion
	ends    event.Queue // completions of timed flows
	stale   int         // events in ends whose flow is no longer timed
	ended   []ended     // scratch of Advance
	sorting []ended     // scratch of sortDigit
	flushed []int32     // bundles; scratch of flush
	lodgers []wire.FlowID
	moved   []int32 // bundles with bundle.moved
	queue   []int32 // links with link.queued
	open    []limit // scratch of fill: bundles without a rate yet on the current link
	held    []limit // scratch of limits: bundles that the current link holds up
	seq     int64
	now     units.Time
	report  func(l wire.LinkID, at units.Time, rate wire.Rate) // nil: loads of links are not watched
	noted   []int32                                            // links with link.noted
	sorted  []ended                                            // scratch of AppendState
	parts   []*Fluid                                           // the models that Split made
}

var _ wire.Model = (*Fluid)(nil)

// New returns a model without links.
func New() *Fluid { return new(Fluid) }

// AddLink implements wire.Links.
func (f *Fluid) AddLink(name string, c wire.Rate) wire.LinkID {
	id := f.Layout.AddLink(name, c)
	if len(f.links) == cap(f.links) { // append's own growth by quarters copies ten thousand links many times
		f.links = slices.Grow(f.links, len(f.links)+1)
	}
	f.links = append(f.links, link{lead: id, level: none})
	f.Limit(id, c)
	return id
}

// Limit implements wire.Links.
func (f *Fluid) Limit(id wire.LinkID, c wire.Rate) {
	f.Layout.Limit(id, c)
	f.links[id].cap, f.links[id].rest = f.Capacity(id), f.Capacity(id)
}

// AddRoute implements wire.Links.
func (f *Fluid) AddRoute(uses []wire.Use) wire.RouteID {
	f.routes, f.keys = append(f.routes, route{uses: once(uses)}), append(f.keys, nil)
	return f.Layout.AddRoute(uses)
}

// once returns the uses of a route with each link once.
func once(uses []wire.Use) []wire.Use {
	out := uses[:0:0]
next:
	for _, u := range uses {
		for i := range out {
			if out[i].Link == u.Link {
				out[i].Count += u.Count
				continue next
			}
		}
		out = append(out, u)
	}
	return out
}

// Loads implements wire.Model.
func (f *Fluid) Loads() []wire.Load {
	out := make([]wire.Load, len(f.links))
	nano := make([]wire.Work, len(f.links))
	for _, p := range f.parts {
		f.now = max(f.now, p.now)
	}
	for i := range f.links {
		l := &f.links[i]
		lead := &f.links[l.lead]
		busy := lead.busy
		if lead.flows > 0 {
			busy += f.now - lead.since
		}
		out[i] = wire.Load{Name: f.Name(wire.LinkID(i)), Capacity: l.cap, Busy: busy}
	}
	for i := range f.routes {
		r := &f.routes[i]
		for _, u := range f.Uses(wire.RouteID(i)) {
			nano[u.Link] += r.nano * wire.Work(u.Count)
			out[u.Link].Bytes += r.bytes*units.Bytes(u.Count) + units.Bytes(nano[u.Link]/wire.NanoBytes)
			nano[u.Link] %= wire.NanoBytes
		}
	}
	return out
}

// bundleFor returns the bundle of a route and bound, and creates it at first. A bound found in the list moves
// half way to its front, as it is likely to be asked for again.
func (f *Fluid) bundleFor(r wire.RouteID, bound wire.Rate) int32 {
	rt := &f.routes[r]
	if rt.last.bound == bound {
		return rt.last.bundle
	}
	keys := f.keys[r]
	for i := range keys {
		if k := keys[i]; k.bound == bound {
			keys[i], keys[i/2] = keys[i/2], k
			rt.last = k
			return k.bundle
		}
	}
	id := int32(len(f.bundles))
	b := bundle{route: int32(r), pos: -1, uses: make([]place, len(rt.uses))}
	for i, u := range rt.uses {
		b.uses[i] = place{link: int32(u.Link), count: u.Count}
	}
	f.bundles = append(f.bundles, b)
	f.shares = append(f.shares, share{rate: bound, bound: bound})
	rt.last = bundleKey{bound, id}
	f.keys[r] = append(keys, rt.last)
	return id
}

// Start implements wire.Model.
func (f *Fluid) Start(now units.Time, r wire.RouteID, bound wire.Rate, w wire.Work, mult,
	token int32) wire.FlowID {
	f.at(now)
	var id wire.FlowID
	if n := len(f.free); n > 0 {
		id = f.free[n-1]
		f.free = f.free[:n-1]
	} else {
		id = wire.FlowID(len(f.flows))
		f.flows = append(f.flows, flow{})
	}
	f.flows[id] = flow{token: token, mult: mult, route: int32(r), bound: max(1, bound)}
	f.place(id, f.bundleFor(r, max(1, bound)), max(1, w))
	return id
}

// place starts a flow with work w left: alone where no link of its route is a bottleneck, as a lodger where
// the route's host bundle runs below its bound, else in the bundle of its route and bound.
func (f *Fluid) place(id wire.FlowID, own int32, w wire.Work) {
	f.seq++
	fl := &f.flows[id]
	fl.own, fl.seq = own, f.seq
	rt := &f.routes[fl.route]
	switch {
	case f.slack(rt):
		f.runAlone(id, w)
	case rt.host != own && f.shares[rt.host].holds(fl.bound) && f.bundles[rt.host].route == fl.route:
		f.join(id, rt.host, w)
		f.shares[rt.host].admit(fl.bound)
	default:
		rt.host = own
		f.join(id, own, w)
	}
}

// at advances the model to a time. Changes made at earlier times take effect first.
func (f *Fluid) at(now units.Time) {
	if now > f.now {
		f.refill()
		f.now = now
	}
}

// Carry implements wire.Model.
func (f *Fluid) Carry(r wire.RouteID, w wire.Work) {
	rt := &f.routes[r]
	rt.nano += w
	rt.bytes += units.Bytes(rt.nano / wire.NanoBytes)
	rt.nano %= wire.NanoBytes
}

// join adds a flow with work w left to a bundle.
func (f *Fluid) join(id wire.FlowID, bi int32, w wire.Work) {
	b := &f.bundles[bi]
	f.settle(b, f.shares[bi].rate)
	fl := &f.flows[id]
	fl.in = bi
	b.live += int64(fl.mult)
	b.heap = append(b.heap, entry{b.done + w, fl.seq, id})
	f.up(b, len(b.heap)-1)
	f.touch(bi, b)
}

// touch lists a bundle whose flows came or went for the next refill.
func (f *Fluid) touch(bi int32, b *bundle) {
	if !b.moved {
		b.moved = true
		f.moved = append(f.moved, bi)
	}
}

// settle brings done up to the present time at the given rate. Beyond 2^61 targets and done are both rebased.
func (f *Fluid) settle(b *bundle, rate wire.Rate) {
	if len(b.heap) == 0 {
		b.done, b.last = 0, f.now
		return
	}
	b.done += wire.Work(rate) * wire.Work(f.now-b.last)
	b.last = f.now
	if b.done > 1<<61 {
		for i := range b.heap {
			b.heap[i].target -= b.done
		}
		b.done = 0
	}
}

// SetRate implements wire.Model.
func (f *Fluid) SetRate(now units.Time, id wire.FlowID, bound wire.Rate) {
	f.at(now)
	fl := &f.flows[id]
	if fl.own < 0 {
		return // complete, in the same Advance whose tokens are being handled
	}
	bound = max(1, bound)
	old := fl.bound
	if old == bound {
		return
	}
	own := f.bundleFor(wire.RouteID(fl.route), bound)
	fl.bound, f.routes[fl.route].varies = bound, true
	switch fl.in {
	case alone:
		f.setAlone(id, own, old, bound)
		return
	case timed:
		left := f.leftAlone(fl, old)
		f.dropAlone(id, old)
		f.place(id, own, max(1, left))
		return
	}
	b, s := &f.bundles[fl.in], &f.shares[fl.in]
	f.settle(b, s.rate)
	left := b.heap[fl.pos].target - b.done
	if left > 0 && s.rate < old && s.holds(bound) {
		f.lodge(id, own, bound)
		return
	}
	f.drop(id)
	f.place(id, own, max(1, left))
}

// Withdraw removes a flow and returns the work that it had left; 0 if it had ended.
func (f *Fluid) Withdraw(now units.Time, id wire.FlowID) wire.Work {
	f.at(now)
	fl := &f.flows[id]
	if fl.own < 0 {
		return 0
	}
	left := max(1, f.left(fl))
	f.drop(id)
	fl.own = -1
	f.free = append(f.free, id)
	return left
}

// asEnded returns a flow's sort key in the order of completions.
func (f *Fluid) asEnded(id wire.FlowID) ended {
	fl := &f.flows[id]
	return ended{fl.own, id, f.left(fl), fl.seq}
}

// rate returns a flow's present rate.
func (f *Fluid) rate(id wire.FlowID) wire.Rate {
	fl := &f.flows[id]
	if fl.in < 0 {
		return fl.bound
	}
	return f.shares[fl.in].rate
}

// left returns the work that a flow has left now.
func (f *Fluid) left(fl *flow) wire.Work {
	if fl.in < 0 {
		return f.leftAlone(fl, fl.bound)
	}
	b := &f.bundles[fl.in]
	return b.heap[fl.pos].target - b.done - wire.Work(f.shares[fl.in].rate)*wire.Work(f.now-b.last)
}

// drop removes a flow from its bundle, or from the flows that run alone.
func (f *Fluid) drop(id wire.FlowID) {
	fl := &f.flows[id]
	if fl.in < 0 {
		f.dropAlone(id, fl.bound)
		return
	}
	b := &f.bundles[fl.in]
	i, n := int(fl.pos), len(b.heap)-1
	b.live -= int64(fl.mult)
	last := b.heap[n]
	b.heap = b.heap[:n]
	if i < n {
		b.heap[i] = last
		f.flows[last.flow].pos = int32(i)
		f.down(b, i)
		f.up(b, i)
	}
	f.touch(fl.in, b)
}

// Next implements wire.Model.
func (f *Fluid) Next() (units.Time, bool) {
	f.refill()
	f.freshen()
	at, ok := f.nextTimed()
	if len(f.order) > 0 && (!ok || f.order[0].at < at) {
		return f.order[0].at, true
	}
	return at, ok
}

// Advance implements wire.Model. Completed flows are ordered by the bundle of their route and bound, then by
// completion within it: an order that does not depend on where a flow ran (alone, lodged or in its bundle).
func (f *Fluid) Advance(now units.Time, done []int32) []int32 {
	f.refill()
	f.now = now
	f.ended = f.ended[:0]
	f.endTimed()
	for f.freshen(); len(f.order) > 0 && f.order[0].at <= now; f.freshen() {
		if id := f.order[0].flow; id >= 0 {
			f.end(id)
			continue
		}
		bi := f.order[0].bundle
		b := &f.bundles[bi]
		f.settle(b, f.shares[bi].rate)
		for len(b.heap) > 0 && b.heap[0].target <= b.done {
			f.end(b.heap[0].flow)
		}
		f.schedule(bi, b)
	}
	f.sortEnded()
	for i := range f.ended {
		done = append(done, f.flows[f.ended[i].id].token)
	}
	return done
}

// end completes a flow: its token is returned by this Advance, and its number is free again.
func (f *Fluid) end(id wire.FlowID) {
	f.ended = append(f.ended, f.asEnded(id))
	f.drop(id)
	f.flows[id].own = -1
	f.free = append(f.free, id)
}

// schedule sets a bundle's place in order: when its first flow ends at the present rate.
func (f *Fluid) schedule(bi int32, b *bundle) {
	if len(b.heap) == 0 {
		f.orderRemove(b)
		return
	}
	f.orderFix(bi, b, b.last+lasts(b.heap[0].target-b.done, f.shares[bi].rate))
}

// lasts returns how long work takes at a rate, rounded up.
func lasts(left wire.Work, rate wire.Rate) units.Time {
	dt := (max(0, left) + wire.Work(rate) - 1) / wire.Work(rate)
	return units.Time(min(dt, math.MaxInt64/4))
}

// refill recomputes rates after the changes since the last call, and reports changed loads.
func (f *Fluid) refill() {
	if len(f.moved) > 0 || len(f.queue) > 0 {
		f.level()
	}
	if f.report != nil && len(f.noted) > 0 {
		f.reportLoads()
	}
}

// Watch implements wire.Model.
func (f *Fluid) Watch(report func(l wire.LinkID, at units.Time, rate wire.Rate)) { f.report = report }

// note lists a link whose load changes for the next reportLoads.
func (f *Fluid) note(l *link, li int32) {
	if f.report != nil && !l.noted {
		l.noted = true
		f.noted = append(f.noted, li)
	}
}

// reportLoads reports the loads of links that have changed, and with each those of the links that it leads,
// in the order of links: a trace does not show how rates are found.
func (f *Fluid) reportLoads() {
	slices.Sort(f.noted)
	for _, li := range f.noted {
		l := &f.links[li]
		l.noted = false
		f.report(wire.LinkID(li), f.now, l.cap-l.rest)
		for _, mate := range l.mates {
			f.report(mate, f.now, l.cap-l.rest)
		}
	}
	f.noted = f.noted[:0]
}
