package fluid

import (
	"testing"

	"github.com/simccl/simccl/sim/wire"
	"github.com/simccl/simccl/units"
	"pgregory.net/rapid"
)

// running is a flow of the plain model.
type running struct {
	id    wire.FlowID
	route wire.RouteID
	bound wire.Rate
	mult  int64
}

// plainRates is progressive filling by the book, of all flows on all links: all
// rates grow together; who reaches the own bound stops, and so do all on the links
// that are full first.
func plainRates(caps []wire.Rate, routes [][]wire.Use, flows []running) []wire.Rate {
	room, open := append([]wire.Rate(nil), caps...), make([]int64, len(caps))
	for _, f := range flows {
		for _, u := range routes[f.route] {
			open[u.Link] += f.mult * int64(u.Count)
		}
	}
	rates := make([]wire.Rate, len(flows))
	fix := func(i int, r wire.Rate) {
		rates[i] = r
		for _, u := range routes[flows[i].route] {
			n := flows[i].mult * int64(u.Count)
			room[u.Link] = max(0, room[u.Link]-wire.Rate(n)*r)
			open[u.Link] -= n
		}
	}
	for left := len(flows); left > 0; {
		share := make([]wire.Rate, len(caps))
		least := none
		for l := range caps {
			if share[l] = none; open[l] > 0 {
				share[l] = max(1, room[l]/wire.Rate(open[l]))
				least = min(least, share[l])
			}
		}
		before := left
		for i, f := range flows {
			if rates[i] == 0 && f.bound <= least {
				fix(i, f.bound)
				left--
			}
		}
		if left < before {
			continue
		}
		for i, f := range flows {
			for _, u := range routes[f.route] {
				if rates[i] == 0 && share[u.Link] == least {
					fix(i, least)
					left--
				}
			}
		}
	}
	return rates
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

// Rates that follow a change from link to link are those of filling everything
// anew, whether rates are watched or not.
func TestRatesAreThoseOfPlainFilling(t *testing.T) {
	for _, watch := range []bool{false, true} {
		rapid.Check(t, func(t *rapid.T) {
			caps, routes := drawNetwork(t)
			f := New()
			if watch {
				f.Watch(func(wire.LinkID, units.Time, wire.Rate) {})
			}
			for _, c := range caps {
				f.AddLink("", c)
			}
			for _, r := range routes {
				f.AddRoute(r)
			}
			checkRates(t, f, caps, routes)
		})
	}
}

// checkRates starts and changes flows, and holds all rates to the plain ones at
// every instant.
func checkRates(t *rapid.T, f *Fluid, caps []wire.Rate, routes [][]wire.Use) {
	bound := rapid.OneOf(rapid.Int64Range(1, 9), rapid.SampledFrom([]int64{5, 10, 20}),
		rapid.Int64Range(1, 2000))
	var flows []running
	now := units.Time(0)
	for token := range rapid.IntRange(1, 25).Draw(t, "instants") {
		for range rapid.IntRange(0, 5).Draw(t, "changes") {
			b := wire.Rate(bound.Draw(t, "bound"))
			if len(flows) > 0 && rapid.Bool().Draw(t, "change") {
				i := rapid.IntRange(0, len(flows)-1).Draw(t, "flow")
				flows[i].bound = b
				f.SetRate(now, flows[i].id, b)
				continue
			}
			x := running{route: wire.RouteID(rapid.IntRange(0, len(routes)-1).Draw(t, "route")), bound: b,
				mult: rapid.Int64Range(1, 3).Draw(t, "mult")}
			x.id = f.Start(now, x.route, b, wire.Work(rapid.Int64Range(1, 100_000).Draw(t, "work")),
				int32(x.mult), int32(token))
			flows = append(flows, x)
		}
		end, ok := f.Next()
		if !ok {
			continue
		}
		for i, want := range plainRates(caps, routes, flows) {
			if got := f.rate(flows[i].id); got != want {
				t.Fatalf("flow %d of %+v: rate %d, want %d", i, flows, got, want)
			}
		}
		now = rapid.SampledFrom([]units.Time{now, (now + end) / 2, end}).Draw(t, "now")
		if now == end {
			f.Advance(end, nil)
			left := flows[:0]
			for _, x := range flows {
				if f.flows[x.id].own >= 0 {
					left = append(left, x)
				}
			}
			flows = left
		}
	}
}
