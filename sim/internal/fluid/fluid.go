package fluid

import (
	"math"
	"slices"

	"github.com/simccl/simccl/sim/internal/event"
	"github.com/simccl/simccl/sim/wire"
	"github.com/simccl/simccl/units"
)

// none is the level of a link that holds up none of its flows.
const none = wire.Rate(math.MaxInt64)

type link struct { // two lines of a cache, of which a flow that comes or goes alone needs the first
	rest   wire.Rate // of its capacity, at the present rates
	level  wire.Rate // rate of the flows that it holds up, none without any
	flows  int64     // active, weighted by multiplicity and count
	held   int64     // weight of those that it holds up
	top    wire.Rate // no key of the others is above it
	busy   units.Time
	since  units.Time  // start of the present busy span
	lead   wire.LinkID // the link that shares for it (Seal), mostly itself
	queued bool        // its level is to be found anew
	noted  bool        // its load is to be reported

	active []activeUse // bundles that have flows, in no order
	cap    wire.Rate
	mates  []wire.LinkID // that it shares for, itself not among them
	_      [8]byte
}

// activeUse is a bundle on a link: its rate as a key, and its flows as the link counts
// them; use says which of its route's uses it is. The
// flows of route r that run alone have ^r in its place, and neither key nor weight; it
// stays until the link is to hold up flows.
type activeUse struct {
	key         wire.Rate
	weight      int64
	bundle, use int32
}

type route struct { // two lines of a cache
	uses    []wire.Use  // those whose links may bind, each once
	bytes   units.Bytes // carried, and nano-bytes beyond whole ones
	nano    wire.Work
	last    bundleKey // the one asked for last
	host    int32     // a bundle in which flows of other bounds may lodge
	varies  bool      // some flow of it got another bound
	coupled bool      // a link has held up flows of it
	shown   bool      // its links know of its flows that run alone

	alone  []wire.FlowID // those flows
	places []place       // and their places, as of a bundle
	_      [16]byte
}

type bundleKey struct {
	bound  wire.Rate
	bundle int32
}

// bundle holds the flows that share a route and a bound, hence a rate: each
// has received the same work since it was there. While a link holds it up, flows of
// the route with other bounds may lodge in it.
type bundle struct {
	live  int64 // flows that it has, weighted by multiplicity
	uses  []place
	done  wire.Work // work per flow so far
	last  units.Time
	heap  []entry
	route int32
	pos   int32 // place in the completion heap, -1 when absent
	moved bool  // flows came or went, or the rate changed, since the last refill
}

// share is what links ask of a bundle, side by side for all bundles.
type share struct {
	rate  wire.Rate
	bound wire.Rate
	n     int64     // flows that its links count, weighted by multiplicity
	least wire.Rate // no flow in it has a lower bound, where it has lodgers
	lodge bool      // it may have lodgers
}

// place is a use of a bundle's route, and where the bundle is among the link's
// active ones.
type place struct{ link, count, at int32 }

type entry struct {
	target wire.Work
	seq    int64
	flow   wire.FlowID
}

type flow struct { // a line of a cache
	own   int32 // the bundle of its route and bound, -1 once it is through
	in    int32 // the bundle that it is in, alone or timed
	pos   int32 // there, or in the completion heap; of a timed one which of the queue's events is its own
	mult  int32
	token int32
	route int32
	bound wire.Rate
	seq   int64 // when it got its bound
	// Of a flow alone: its place among those of its route, the work that it has left
	// at a time, and whether it ends later than the completion heap has it.
	left wire.Work
	last units.Time
	at   int32
	late bool
}

// Fluid is the max-min model. Links and routes are declared first, then flows
// run. It is not safe for concurrent use.
type Fluid struct {
	wire.Layout
	links   []link
	routes  []route
	keys    [][]bundleKey // by route: the bundles of each bound that a flow has had
	bundles []bundle
	shares  []share // by bundle
	flows   []flow
	free    []wire.FlowID
	order   []due       // heap of bundles and flows alone by next completion
	ends    event.Queue // those of timed flows, by flow
	stale   int         // of them, those of flows that are timed no more
	ended   []ended     // of Advance
	sorting []ended
	flushed []int32 // bundles
	lodgers []wire.FlowID
	moved   []int32 // bundles
	queue   []int32 // links
	open    []limit // bundles on the current link that are not settled yet,
	held    []limit // and those that it holds up
	seq     int64
	now     units.Time
	report  func(l wire.LinkID, at units.Time, rate wire.Rate) // nil: loads of links are not watched
	noted   []int32                                            // links whose loads are to be reported
	sorted  []ended                                            // of AppendState
	parts   []*Fluid                                           // of Split
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

func (f *Fluid) bundleFor(r wire.RouteID, bound wire.Rate) int32 {
	rt := &f.routes[r]
	if rt.last.bound == bound {
		return rt.last.bundle
	}
	keys := f.keys[r]
	for i := range keys {
		if k := keys[i]; k.bound == bound { // which others ask for soon, mostly
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

// place puts a flow with work w left where flows of its route and bound are.
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

// at moves the model on to a time; rates are those of the flows before it.
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

// touch notes that flows of a bundle came or went.
func (f *Fluid) touch(bi int32, b *bundle) {
	if !b.moved {
		b.moved = true
		f.moved = append(f.moved, bi)
	}
}

// settle credits a bundle's flows with the work done since its last change.
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

// Withdraw ends a flow and returns what it had left; 0 of one that is through.
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

func (f *Fluid) asEnded(id wire.FlowID) ended {
	fl := &f.flows[id]
	return ended{fl.own, id, f.left(fl), fl.seq}
}

// rate is a flow's rate.
func (f *Fluid) rate(id wire.FlowID) wire.Rate {
	fl := &f.flows[id]
	if fl.in < 0 {
		return fl.bound
	}
	return f.shares[fl.in].rate
}

// left is the work that a flow has left now.
func (f *Fluid) left(fl *flow) wire.Work {
	if fl.in < 0 {
		return f.leftAlone(fl, fl.bound)
	}
	b := &f.bundles[fl.in]
	return b.heap[fl.pos].target - b.done - wire.Work(f.shares[fl.in].rate)*wire.Work(f.now-b.last)
}

// drop takes a flow from where it is.
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

// Advance implements Model: completed flows come by the bundle of their route and
// bound, those that ended first in it before others.
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

// end ends a flow that is through.
func (f *Fluid) end(id wire.FlowID) {
	f.ended = append(f.ended, f.asEnded(id))
	f.drop(id)
	f.flows[id].own = -1
	f.free = append(f.free, id)
}

// schedule sets when the bundle's first flow ends at the present rate.
func (f *Fluid) schedule(bi int32, b *bundle) {
	if len(b.heap) == 0 {
		f.orderRemove(b)
		return
	}
	f.orderFix(bi, b, b.last+lasts(b.heap[0].target-b.done, f.shares[bi].rate))
}

// lasts is how long work takes at a rate.
func lasts(left wire.Work, rate wire.Rate) units.Time {
	dt := (max(0, left) + wire.Work(rate) - 1) / wire.Work(rate)
	return units.Time(min(dt, math.MaxInt64/4))
}

// refill finds the rates that follow from the changes since the last call, and reports loads.
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

// note has the load of a link reported with the next rates: it changes.
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
