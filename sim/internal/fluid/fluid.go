package fluid

import (
	"math"

	"github.com/simccl/simccl/sim/wire"
	"github.com/simccl/simccl/units"
)

type link struct {
	cap    wire.Rate
	lead   wire.LinkID   // the link that shares for it (Seal), mostly itself
	mates  []wire.LinkID // that it shares for, itself not among them
	bytes  units.Bytes   // carried, and nano-bytes beyond whole ones
	nano   wire.Work
	busy   units.Time
	since  units.Time  // start of the present busy span
	flows  int64       // active, weighted by multiplicity and count
	active []activeUse // bundles that have flows, in no order
	dirty  bool
	tight  bool      // it holds flows below their own rates, or may by rounding
	rest   wire.Rate // of its capacity, at the present rates
	// progressive filling
	stamp  int64
	border bool      // of what is filled: not tight, and only some of its flows are in it
	room   wire.Rate // not yet given away
	open   int64
	share  wire.Rate
}

// activeUse is a bundle on a link; use says which of its route's uses it is.
type activeUse struct{ bundle, count, use int32 }

type route struct {
	uses    []wire.Use // those whose links may bind
	bundles []int32
}

// bundle holds the flows that share a route and a bound, hence a rate: each
// has received the same work since it was there.
type bundle struct {
	route int32
	bound wire.Rate
	rate  wire.Rate
	n     int64     // flows, weighted by multiplicity
	done  wire.Work // work per flow so far
	last  units.Time
	next  units.Time
	pos   int32 // place in the completion heap, -1 when absent
	heap  []entry
	at    []int32 // by use of the route: place among the link's active bundles
	dirty bool    // flows came or went
	stamp int64
	fixed bool
	fresh wire.Rate // while a filling is not done
}

type entry struct {
	target wire.Work
	seq    int64
	flow   wire.FlowID
}

type flow struct {
	bundle, pos int32
	mult        int32
	token       int32
}

// Fluid is the max-min model. Links and routes are declared first, then flows
// run. It is not safe for concurrent use.
type Fluid struct {
	wire.Layout
	report  func(l wire.LinkID, at units.Time, rate wire.Rate) // of Watch
	links   []link
	routes  []route
	bundles []bundle
	flows   []flow
	free    []wire.FlowID
	order   []int32 // heap of bundles by next completion
	dirtyL  []int32
	dirtyB  []int32
	compL   []int32 // what is filled: links with all their flows,
	compO   []int32 // links that are not tight, with some of them,
	compB   []int32 // and bundles
	openL   []int32 // of them, those not settled yet
	openB   []int32
	stamp   int64
	seq     int64
	now     units.Time
	full    bool    // find all rates anew at every change, as a test does
	scratch []int32 // of AppendState
	sorted  []entry
}

var _ wire.Model = (*Fluid)(nil)

// New returns a model without links.
func New() *Fluid { return new(Fluid) }

// AddLink implements wire.Links.
func (f *Fluid) AddLink(name string, c wire.Rate) wire.LinkID {
	id := f.Layout.AddLink(name, c)
	f.links = append(f.links, link{lead: id})
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
	f.routes = append(f.routes, route{uses: uses})
	return f.Layout.AddRoute(uses)
}

// Loads implements wire.Model.
func (f *Fluid) Loads() []wire.Load {
	out := make([]wire.Load, len(f.links))
	for i := range f.links {
		l := &f.links[i]
		lead := &f.links[l.lead]
		busy := lead.busy
		if lead.flows > 0 {
			busy += f.now - lead.since
		}
		out[i] = wire.Load{Name: f.Name(wire.LinkID(i)), Capacity: l.cap, Bytes: l.bytes, Busy: busy}
	}
	return out
}

func (f *Fluid) bundleFor(r wire.RouteID, bound wire.Rate) int32 {
	rt := &f.routes[r]
	for _, b := range rt.bundles {
		if f.bundles[b].bound == bound {
			return b
		}
	}
	id := int32(len(f.bundles))
	f.bundles = append(f.bundles, bundle{route: int32(r), bound: bound, rate: bound, pos: -1, at: make([]int32, len(rt.uses))})
	rt.bundles = append(rt.bundles, id)
	return id
}

// Start implements wire.Model.
func (f *Fluid) Start(now units.Time, r wire.RouteID, bound wire.Rate, w wire.Work, mult, token int32) wire.FlowID {
	f.now = now
	var id wire.FlowID
	if n := len(f.free); n > 0 {
		id = f.free[n-1]
		f.free = f.free[:n-1]
	} else {
		id = wire.FlowID(len(f.flows))
		f.flows = append(f.flows, flow{})
	}
	f.flows[id] = flow{token: token, mult: mult}
	f.join(id, f.bundleFor(r, max(1, bound)), max(1, w))
	return id
}

// Carry implements wire.Model.
func (f *Fluid) Carry(r wire.RouteID, w wire.Work) {
	for _, u := range f.Uses(r) {
		l := &f.links[u.Link]
		l.nano += w % wire.NanoBytes * wire.Work(u.Count)
		l.bytes += units.Bytes(w/wire.NanoBytes)*units.Bytes(u.Count) + units.Bytes(l.nano/wire.NanoBytes)
		l.nano %= wire.NanoBytes
	}
}

// join adds a flow with work w left to a bundle.
func (f *Fluid) join(id wire.FlowID, bi int32, w wire.Work) {
	b := &f.bundles[bi]
	f.settle(b)
	f.seq++
	fl := &f.flows[id]
	fl.bundle = bi
	b.n += int64(fl.mult)
	b.heap = append(b.heap, entry{b.done + w, f.seq, id})
	f.up(b, len(b.heap)-1)
	f.touch(bi, int64(fl.mult))
}

// touch notes that a bundle gained (or lost) n flows. Where that leaves every
// link of its route with room to spare, for one unit of rate a flow and more,
// none of them was or becomes tight, also by rounding: then all other rates
// stay as they are, and this bundle has its own.
func (f *Fluid) touch(bi int32, n int64) {
	b := &f.bundles[bi]
	if b.n == n {
		b.rate = b.bound
	}
	alone := b.rate == b.bound && !f.full && f.report == nil
	uses := f.routes[b.route].uses
	for i, u := range uses {
		l := &f.links[u.Link]
		if b.n == n {
			b.at[i] = int32(len(l.active))
			l.active = append(l.active, activeUse{bi, u.Count, int32(i)})
		} else if b.n == 0 {
			f.retire(l, b.at[i])
		}
		before := l.flows
		l.flows += n * int64(u.Count)
		if before == 0 && l.flows > 0 {
			l.since = f.now
		} else if l.flows == 0 {
			l.busy += f.now - l.since
		}
		l.rest -= wire.Rate(n*int64(u.Count)) * b.rate
		alone = alone && !l.dirty && !l.tight && l.rest >= wire.Rate(l.flows)
	}
	if alone {
		f.schedule(bi)
		return
	}
	f.soil(bi)
}

// soil asks for new rates of all that share with a bundle.
func (f *Fluid) soil(bi int32) {
	for _, u := range f.routes[f.bundles[bi].route].uses {
		if l := &f.links[u.Link]; !l.dirty {
			l.dirty = true
			f.dirtyL = append(f.dirtyL, int32(u.Link))
		}
	}
	if b := &f.bundles[bi]; !b.dirty {
		b.dirty = true
		f.dirtyB = append(f.dirtyB, bi)
	}
}

// retire takes a bundle without flows from its place on a link.
func (f *Fluid) retire(l *link, at int32) {
	last := len(l.active) - 1
	if moved := l.active[last]; int(at) < last {
		l.active[at] = moved
		f.bundles[moved.bundle].at[moved.use] = at
	}
	l.active = l.active[:last]
}

// settle credits a bundle's flows with the work done since its last change.
func (f *Fluid) settle(b *bundle) {
	if len(b.heap) == 0 {
		b.done, b.last = 0, f.now
		return
	}
	b.done += wire.Work(b.rate) * wire.Work(f.now-b.last)
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
	f.now = now
	fl := &f.flows[id]
	if fl.bundle < 0 {
		return // complete, in the same Advance whose tokens are being handled
	}
	b := &f.bundles[fl.bundle]
	if b.bound == bound {
		return
	}
	f.settle(b)
	left := max(1, b.heap[fl.pos].target-b.done)
	r := wire.RouteID(b.route)
	f.drop(id)
	f.join(id, f.bundleFor(r, max(1, bound)), left)
}

// drop takes a flow out of its bundle.
func (f *Fluid) drop(id wire.FlowID) {
	fl := &f.flows[id]
	b := &f.bundles[fl.bundle]
	i, n := int(fl.pos), len(b.heap)-1
	b.n -= int64(fl.mult)
	last := b.heap[n]
	b.heap = b.heap[:n]
	if i < n {
		b.heap[i] = last
		f.flows[last.flow].pos = int32(i)
		f.down(b, i)
		f.up(b, i)
	}
	f.touch(fl.bundle, -int64(fl.mult))
}

// Next implements wire.Model.
func (f *Fluid) Next() (units.Time, bool) {
	f.refill()
	if len(f.order) == 0 {
		return 0, false
	}
	return f.bundles[f.order[0]].next, true
}

// Advance implements Model: completed flows come by bundle, oldest target
// first.
func (f *Fluid) Advance(now units.Time, done []int32) []int32 {
	f.refill()
	f.now = now
	for len(f.order) > 0 {
		bi := f.order[0]
		b := &f.bundles[bi]
		if b.next > now {
			break
		}
		f.settle(b)
		for len(b.heap) > 0 && b.heap[0].target <= b.done {
			id := b.heap[0].flow
			done = append(done, f.flows[id].token)
			f.drop(id)
			f.flows[id].bundle = -1
			f.free = append(f.free, id)
		}
		f.schedule(bi)
	}
	return done
}

// schedule sets when the bundle's first flow ends at the present rate.
func (f *Fluid) schedule(bi int32) {
	b := &f.bundles[bi]
	if len(b.heap) == 0 {
		f.orderRemove(bi)
		return
	}
	left := max(0, b.heap[0].target-b.done)
	dt := (left + wire.Work(b.rate) - 1) / wire.Work(b.rate)
	if dt > math.MaxInt64/4 {
		dt = math.MaxInt64 / 4
	}
	b.next = b.last + units.Time(dt)
	f.orderFix(bi)
}

// Watch implements wire.Model.
func (f *Fluid) Watch(report func(l wire.LinkID, at units.Time, rate wire.Rate)) { f.report = report }

// reportRates reports the rates on links.
func (f *Fluid) reportRates(links []int32) {
	for _, li := range links {
		l := &f.links[li]
		f.report(wire.LinkID(li), f.now, l.cap-l.rest)
		for _, mate := range l.mates {
			f.report(mate, f.now, l.cap-l.rest)
		}
	}
}
