package fluid

import (
	"cmp"
	"slices"
	"testing"

	"github.com/simccl/simccl/internal/maxmin"
	"github.com/simccl/simccl/sim/wire"
	"github.com/simccl/simccl/units"
	"pgregory.net/rapid"
)

// plain is the model without its shortcuts: at each change all rates are found anew by progressive filling of
// all flows on all links, and every flow is looked at whenever time passes.
type plain struct {
	wire.Layout
	routes  [][]wire.Use
	flows   []running
	busy    []units.Time // by link
	bundles map[running]int
	filling maxmin.Filling[wire.Rate]
	seq     int
	now     units.Time
}

// running is a flow.
type running struct {
	route  wire.RouteID
	bound  wire.Rate
	rate   wire.Rate
	left   wire.Work // 0: through
	mult   wire.Rate
	token  int32
	bundle int // number of its route and bound, in the order in which flows got them
	seq    int // when it got its bound
}

func (p *plain) AddLink(name string, c wire.Rate) wire.LinkID {
	p.busy = append(p.busy, 0)
	return p.Layout.AddLink(name, c)
}

func (p *plain) AddRoute(uses []wire.Use) wire.RouteID {
	p.routes = append(p.routes, uses)
	return p.Layout.AddRoute(uses)
}

func (p *plain) Carry(wire.RouteID, wire.Work) {}

// at lets time pass.
func (p *plain) at(now units.Time) {
	used := make([]bool, len(p.busy))
	for i := range p.flows {
		if x := &p.flows[i]; x.left > 0 {
			x.left = max(0, x.left-wire.Work(x.rate)*wire.Work(now-p.now))
			for _, u := range p.routes[x.route] {
				used[u.Link] = true
			}
		}
	}
	for l := range used {
		if used[l] {
			p.busy[l] += now - p.now
		}
	}
	p.now = now
}

// bind gives a flow a bound and its place in the order of ends.
func (p *plain) bind(x *running, bound wire.Rate) {
	if p.bundles == nil {
		p.bundles = map[running]int{}
	}
	key := running{route: x.route, bound: bound}
	if _, ok := p.bundles[key]; !ok {
		p.bundles[key] = len(p.bundles)
	}
	p.seq++
	x.bound, x.bundle, x.seq = bound, p.bundles[key], p.seq
}

func (p *plain) Start(now units.Time, r wire.RouteID, bound wire.Rate, w wire.Work, mult,
	token int32) wire.FlowID {
	p.at(now)
	x := running{route: r, left: w, mult: wire.Rate(mult), token: token}
	p.bind(&x, bound)
	p.flows = append(p.flows, x)
	p.fill()
	return wire.FlowID(len(p.flows) - 1)
}

func (p *plain) SetRate(now units.Time, id wire.FlowID, bound wire.Rate) {
	p.at(now)
	if x := &p.flows[id]; x.left > 0 && x.bound != bound {
		p.bind(x, bound)
		p.fill()
	}
}

// fill finds all rates.
func (p *plain) fill() {
	f := &p.filling
	f.Least = 1
	f.Clear()
	for l := range p.busy {
		f.Resource(p.Capacity(wire.LinkID(l)))
	}
	for i := range p.flows {
		x := &p.flows[i]
		f.Task(x.bound)
		if x.left == 0 {
			continue
		}
		for _, u := range p.routes[x.route] {
			f.Use(int32(u.Link), x.mult*wire.Rate(u.Count))
		}
	}
	f.Fill()
	for i := range p.flows {
		p.flows[i].rate, _ = f.Level(int32(i))
	}
}

func (p *plain) Next() (at units.Time, ok bool) {
	for i := range p.flows {
		x := &p.flows[i]
		if x.left == 0 {
			continue
		}
		if end := p.now + lasts(x.left, x.rate); !ok || end < at {
			at, ok = end, true
		}
	}
	return at, ok
}

func (p *plain) Advance(now units.Time, done []int32) []int32 {
	over := make([]wire.Work, len(p.flows)) // what a flow would have left if it went on
	var ended []int
	for i := range p.flows {
		x := &p.flows[i]
		over[i] = x.left - wire.Work(x.rate)*wire.Work(now-p.now)
		if x.left > 0 && over[i] <= 0 {
			ended = append(ended, i)
		}
	}
	p.at(now)
	slices.SortFunc(ended, func(a, b int) int {
		x, y := &p.flows[a], &p.flows[b]
		return cmp.Or(cmp.Compare(x.bundle, y.bundle), cmp.Compare(over[a], over[b]),
			cmp.Compare(x.seq, y.seq))
	})
	for _, i := range ended {
		done = append(done, p.flows[i].token)
	}
	p.fill()
	return done
}

// drawNetwork draws links and routes. Few capacities and bounds, most of them
// small, make links equally tight and shares round.
func drawNetwork(t *rapid.T) (caps []wire.Rate, routes [][]wire.Use) {
	capacity := rapid.OneOf(rapid.Int64Range(1, 12), rapid.SampledFrom([]int64{20, 30, 60}),
		rapid.Int64Range(100, 1000))
	for range rapid.IntRange(1, 12).Draw(t, "links") {
		caps = append(caps, wire.Rate(capacity.Draw(t, "capacity")))
	}
	for range rapid.IntRange(1, 14).Draw(t, "routes") {
		var uses []wire.Use
		for l := range caps {
			if n := rapid.IntRange(-4, 2).Draw(t, "count"); n > 0 {
				uses = append(uses, wire.Use{Link: wire.LinkID(l), Count: int32(n)})
			}
		}
		routes = append(routes, uses)
	}
	return caps, routes
}

// Rates that follow a change from link to link are those of filling everything anew, and what links carry is
// reported so.
func TestRatesAreThoseOfPlainFilling(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		caps, routes := drawNetwork(t)
		f, p := New(), new(plain)
		loads := make([]wire.Rate, len(caps))
		f.Watch(func(l wire.LinkID, _ units.Time, rate wire.Rate) { loads[l] = rate })
		for _, c := range caps {
			f.AddLink("", c)
			p.AddLink("", c)
		}
		for _, r := range routes {
			f.AddRoute(slices.Clone(r))
			p.AddRoute(r)
		}
		if rapid.Bool().Draw(t, "seal") {
			f.Seal()
		}
		checkRates(t, f, p, loads)
	})
}

// checkRates starts and changes flows, and holds all rates to the plain ones at every instant.
func checkRates(t *rapid.T, f *Fluid, p *plain, loads []wire.Rate) {
	bound := rapid.OneOf(rapid.Int64Range(1, 9), rapid.SampledFrom([]int64{5, 10, 20}),
		rapid.Int64Range(1, 2000))
	var ids []wire.FlowID // in f, by the number in p
	now := units.Time(0)
	for range rapid.IntRange(1, 25).Draw(t, "instants") {
		for range rapid.IntRange(0, 5).Draw(t, "changes") {
			b := wire.Rate(bound.Draw(t, "bound"))
			if len(ids) > 0 && rapid.Bool().Draw(t, "change") {
				if i := rapid.IntRange(0, len(ids)-1).Draw(t, "flow"); p.flows[i].left > 0 {
					f.SetRate(now, ids[i], b)
					p.SetRate(now, wire.FlowID(i), b)
				}
				continue
			}
			r := wire.RouteID(rapid.IntRange(0, len(p.routes)-1).Draw(t, "route"))
			w := wire.Work(rapid.Int64Range(1, 100_000).Draw(t, "work"))
			mult := rapid.Int32Range(1, 3).Draw(t, "mult")
			ids = append(ids, f.Start(now, r, b, w, mult, int32(len(ids))))
			p.Start(now, r, b, w, mult, int32(len(p.flows)))
		}
		end, ok := f.Next()
		if at, some := p.Next(); at != end || some != ok {
			t.Fatalf("next end at %v (%v), want %v (%v)", end, ok, at, some)
		}
		sums := make([]wire.Rate, len(loads))
		for i, x := range p.flows {
			if x.left == 0 {
				continue
			}
			if got := f.rate(ids[i]); got != x.rate {
				t.Fatalf("flow %d of %+v: rate %d", i, p.flows, got)
			}
			for _, u := range p.routes[x.route] {
				sums[u.Link] += x.mult * wire.Rate(u.Count) * x.rate
			}
		}
		if !slices.Equal(loads, sums) {
			t.Fatalf("links are reported to carry %v, flows have %v", loads, sums)
		}
		if !ok {
			continue
		}
		now = rapid.SampledFrom([]units.Time{now, (now + end) / 2, end}).Draw(t, "now")
		if now == end {
			if got, want := f.Advance(end, nil), p.Advance(end, nil); !slices.Equal(got, want) {
				t.Fatalf("flows end in the order %v, want %v", got, want)
			}
		}
	}
}
