// Package ideal is a model of links (wire.Model) on which no flow waits for
// another: each runs at the least of its own bound and the capacities of its
// links, independent of other traffic. It answers how long a plan would take on a
// network that never shares anything, and it is the second implementation that
// tests the interface sim/wire.
//
// Uses count once: a link that represents several, or that a byte takes twice,
// holds a flow up no more than any other. So folded and unfolded runs agree.
package ideal

import (
	"math"

	"github.com/simccl/simccl/internal/heap"
	"github.com/simccl/simccl/sim/wire"
	"github.com/simccl/simccl/units"
)

// Ideal is the model. New returns one without links.
type Ideal struct {
	wire.Layout
	links  []link
	least  []wire.Rate // by route: the smallest capacity of its links
	flows  []flow
	free   []wire.FlowID
	order  heap.Heap[end]
	seq    int64
	now    units.Time
	report func(l wire.LinkID, at units.Time, rate wire.Rate)
}

type link struct {
	bytes units.Bytes
	nano  wire.Work // beyond whole bytes
	flows int       // on it now
	rate  wire.Rate // of them together
	since units.Time
	busy  units.Time
}

// flow is one in flight; place is -1 when it is through.
type flow struct {
	route wire.RouteID
	rate  wire.Rate
	left  wire.Work // at time last
	last  units.Time
	end   units.Time
	seq   int64
	token int32
	place int
}

var _ wire.Model = (*Ideal)(nil)

// New returns a model without links.
func New() *Ideal {
	m := new(Ideal)
	m.order.Moved = func(e end, i int) { m.flows[e.id].place = i }
	return m
}

// AddLink implements wire.Links.
func (m *Ideal) AddLink(name string, c wire.Rate) wire.LinkID {
	m.links = append(m.links, link{})
	return m.Layout.AddLink(name, c)
}

// AddRoute implements wire.Links.
func (m *Ideal) AddRoute(uses []wire.Use) wire.RouteID {
	m.least = append(m.least, 0)
	return m.Layout.AddRoute(uses)
}

// Seal implements wire.Model: capacities are final.
func (m *Ideal) Seal() {
	for r := range m.least {
		m.least[r] = math.MaxInt64
		for _, u := range m.Uses(wire.RouteID(r)) {
			m.least[r] = min(m.least[r], m.Capacity(u.Link))
		}
	}
}

// Start implements wire.Model.
func (m *Ideal) Start(now units.Time, r wire.RouteID, bound wire.Rate, w wire.Work, mult,
	token int32) wire.FlowID {
	m.now = now
	var id wire.FlowID
	if n := len(m.free); n > 0 {
		id, m.free = m.free[n-1], m.free[:n-1]
	} else {
		id = wire.FlowID(len(m.flows))
		m.flows = append(m.flows, flow{})
	}
	m.seq++
	f := &m.flows[id]
	*f = flow{route: r, left: max(1, w), last: now, seq: m.seq, token: token}
	m.enter(f, bound, 1)
	m.order.Push(end{f.end, f.seq, id})
	return id
}

// enter sets a flow's rate and counts it on its links: by is 1 where it comes
// and 0 where only its rate changes.
func (m *Ideal) enter(f *flow, bound wire.Rate, by int) {
	was := f.rate
	f.rate = min(max(1, bound), m.least[f.route])
	f.end = f.last + units.Time((f.left+wire.Work(f.rate)-1)/wire.Work(f.rate))
	m.count(f.route, by, f.rate-was)
}

// count changes how many flows a route's links carry, and at which rate.
func (m *Ideal) count(r wire.RouteID, flows int, rate wire.Rate) {
	for _, u := range m.Uses(r) {
		l := &m.links[u.Link]
		if l.flows == 0 {
			l.since = m.now
		}
		l.flows += flows
		l.rate += rate
		if l.flows == 0 {
			l.busy += m.now - l.since
		}
		if m.report != nil {
			m.report(u.Link, m.now, l.rate)
		}
	}
}

// Carry implements wire.Model.
func (m *Ideal) Carry(r wire.RouteID, w wire.Work) {
	for _, u := range m.Uses(r) {
		l := &m.links[u.Link]
		l.nano += w % wire.NanoBytes * wire.Work(u.Count)
		l.bytes += units.Bytes(w/wire.NanoBytes)*units.Bytes(u.Count) + units.Bytes(l.nano/wire.NanoBytes)
		l.nano %= wire.NanoBytes
	}
}

// SetRate implements wire.Model.
func (m *Ideal) SetRate(now units.Time, id wire.FlowID, bound wire.Rate) {
	m.now = now
	f := &m.flows[id]
	if f.place < 0 {
		return
	}
	f.left = max(1, f.left-wire.Work(f.rate)*wire.Work(now-f.last))
	f.last = now
	m.enter(f, bound, 0)
	m.order.Fix(f.place, end{f.end, f.seq, id})
}

// Next implements wire.Model.
func (m *Ideal) Next() (units.Time, bool) {
	if m.order.Len() == 0 {
		return 0, false
	}
	return m.order.First().at, true
}

// Advance implements wire.Model: flows that end at one instant come in the order
// in which they began.
func (m *Ideal) Advance(now units.Time, done []int32) []int32 {
	m.now = now
	for m.order.Len() > 0 && m.order.First().at <= now {
		id := m.order.Pop().id
		f := &m.flows[id]
		f.place = -1
		m.count(f.route, -1, -f.rate)
		done = append(done, f.token)
		m.free = append(m.free, id)
	}
	return done
}

// Loads implements wire.Model.
func (m *Ideal) Loads() []wire.Load {
	out := make([]wire.Load, len(m.links))
	for i := range m.links {
		l := &m.links[i]
		busy := l.busy
		if l.flows > 0 {
			busy += m.now - l.since
		}
		out[i] = wire.Load{Name: m.Name(wire.LinkID(i)), Capacity: m.Capacity(wire.LinkID(i)), Bytes: l.bytes,
			Busy: busy}
	}
	return out
}

// Watch implements wire.Model. The rate on a link may be more than its capacity.
func (m *Ideal) Watch(report func(l wire.LinkID, at units.Time, rate wire.Rate)) { m.report = report }

// end is when a flow ends; those of one instant are ordered by when they began.
type end struct {
	at  units.Time
	seq int64
	id  wire.FlowID
}

// Before implements heap.Ordered.
func (a end) Before(b end) bool { return a.at < b.at || a.at == b.at && a.seq < b.seq }
