package fluid

import (
	"math"
	"slices"

	"github.com/simccl/simccl/sim/wire"
	"github.com/simccl/simccl/units"
)

// none is the level of a link that holds up none of its flows.
const none = wire.Rate(math.MaxInt64)

type link struct {
	cap    wire.Rate
	rest   wire.Rate   // of its capacity, at the present rates
	level  wire.Rate   // rate of the flows that it holds up, none without any
	flows  int64       // active, weighted by multiplicity and count
	active []activeUse // bundles that have flows, in no order
	held   int64       // weight of those that it holds up
	top    wire.Rate   // no key of the others is above it
	queued bool        // its level is to be found anew
	busy   units.Time
	since  units.Time // start of the present busy span

	lead  wire.LinkID   // the link that shares for it (Seal), mostly itself
	mates []wire.LinkID // that it shares for, itself not among them
}

// activeUse is a bundle on a link: its rate as a key, and its flows as the link counts
// them (neither where rates are watched); use says which of its route's uses it is.
type activeUse struct {
	key         wire.Rate
	weight      int64
	bundle, use int32
}

type route struct {
	uses    []wire.Use  // those whose links may bind, each once
	bundles []bundleKey // one for each bound that a flow has had
	bytes   units.Bytes // carried, and nano-bytes beyond whole ones
	nano    wire.Work
}

type bundleKey struct {
	bound  wire.Rate
	bundle int32
}

// bundle holds the flows that share a route and a bound, hence a rate: each
// has received the same work since it was there.
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
	n     int64 // flows that its links count, weighted by multiplicity
}

// place is a use of a bundle's route, and where the bundle is among the link's
// active ones.
type place struct{ link, count, at int32 }

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
	links   []link
	routes  []route
	bundles []bundle
	shares  []share // by bundle
	flows   []flow
	free    []wire.FlowID
	order   []due   // heap of bundles by next completion
	moved   []int32 // bundles
	queue   []int32 // links
	open    []limit // bundles on the current link that are not settled yet,
	held    []limit // and those that it holds up
	seq     int64
	now     units.Time
	watched *watched // nil: no trace rates
	active  []int32  // of AppendState, as sorted
	sorted  []entry
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
	if f.watched != nil {
		f.watched.ofLink = append(f.watched.ofLink, linkFill{})
	}
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
	f.routes = append(f.routes, route{uses: once(uses)})
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
	for i := range rt.bundles {
		if rt.bundles[i].bound == bound {
			return rt.bundles[i].bundle
		}
	}
	id := int32(len(f.bundles))
	b := bundle{route: int32(r), pos: -1, uses: make([]place, len(rt.uses))}
	for i, u := range rt.uses {
		b.uses[i] = place{link: int32(u.Link), count: u.Count}
	}
	f.bundles = append(f.bundles, b)
	f.shares = append(f.shares, share{rate: bound, bound: bound})
	rt.bundles = append(rt.bundles, bundleKey{bound, id})
	return id
}

// Start implements wire.Model.
func (f *Fluid) Start(now units.Time, r wire.RouteID, bound wire.Rate, w wire.Work, mult, token int32) wire.FlowID {
	f.at(now)
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
	f.seq++
	fl := &f.flows[id]
	fl.bundle = bi
	b.live += int64(fl.mult)
	b.heap = append(b.heap, entry{b.done + w, f.seq, id})
	f.up(b, len(b.heap)-1)
	f.touch(bi, b, int64(fl.mult))
}

// touch notes that a bundle gained (or lost) n flows.
func (f *Fluid) touch(bi int32, b *bundle, n int64) {
	if f.watched != nil {
		f.watched.touch(bi, n)
	} else if !b.moved {
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
	if fl.bundle < 0 {
		return // complete, in the same Advance whose tokens are being handled
	}
	b, s := &f.bundles[fl.bundle], &f.shares[fl.bundle]
	if s.bound == bound {
		return
	}
	f.settle(b, s.rate)
	left := max(1, b.heap[fl.pos].target-b.done)
	r := wire.RouteID(b.route)
	f.drop(id)
	f.join(id, f.bundleFor(r, max(1, bound)), left)
}

// Withdraw ends a flow and returns what it had left; 0 of one that is through.
func (f *Fluid) Withdraw(now units.Time, id wire.FlowID) wire.Work {
	f.at(now)
	fl := &f.flows[id]
	if fl.bundle < 0 {
		return 0
	}
	b, s := &f.bundles[fl.bundle], &f.shares[fl.bundle]
	f.settle(b, s.rate)
	left := max(1, b.heap[fl.pos].target-b.done)
	f.drop(id)
	fl.bundle = -1
	f.free = append(f.free, id)
	return left
}

// drop takes a flow out of its bundle.
func (f *Fluid) drop(id wire.FlowID) {
	fl := &f.flows[id]
	b := &f.bundles[fl.bundle]
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
	f.touch(fl.bundle, b, -int64(fl.mult))
}

// Next implements wire.Model.
func (f *Fluid) Next() (units.Time, bool) {
	f.refill()
	if len(f.order) == 0 {
		return 0, false
	}
	return f.order[0].at, true
}

// Advance implements Model: completed flows come by bundle, oldest target
// first.
func (f *Fluid) Advance(now units.Time, done []int32) []int32 {
	f.refill()
	f.now = now
	for len(f.order) > 0 && f.order[0].at <= now {
		bi := f.order[0].bundle
		b := &f.bundles[bi]
		f.settle(b, f.shares[bi].rate)
		for len(b.heap) > 0 && b.heap[0].target <= b.done {
			id := b.heap[0].flow
			done = append(done, f.flows[id].token)
			f.drop(id)
			f.flows[id].bundle = -1
			f.free = append(f.free, id)
		}
		f.schedule(bi, b)
	}
	return done
}

// schedule sets when the bundle's first flow ends at the present rate.
func (f *Fluid) schedule(bi int32, b *bundle) {
	if len(b.heap) == 0 {
		f.orderRemove(b)
		return
	}
	left := max(0, b.heap[0].target-b.done)
	rate := wire.Work(f.shares[bi].rate)
	dt := (left + rate - 1) / rate
	if dt > math.MaxInt64/4 {
		dt = math.MaxInt64 / 4
	}
	f.orderFix(bi, b, b.last+units.Time(dt))
}

// refill finds the rates that follow from the changes since the last call.
func (f *Fluid) refill() {
	switch {
	case f.watched != nil:
		f.watched.refill()
	case len(f.moved) > 0:
		f.level()
	}
}

// Watch implements wire.Model.
func (f *Fluid) Watch(report func(l wire.LinkID, at units.Time, rate wire.Rate)) {
	f.watched = nil
	if report != nil {
		f.watched = &watched{Fluid: f, report: report, ofLink: make([]linkFill, len(f.links))}
	}
}
