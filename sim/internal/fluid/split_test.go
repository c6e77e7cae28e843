package fluid

import (
	"slices"
	"testing"

	"github.com/simccl/simccl/sim/wire"
	"github.com/simccl/simccl/units"
	"pgregory.net/rapid"
)

// playApart is play of a model that is split before a flow begins.
func playApart(f *Fluid, starts []start, n int, part []int32, before int) (ends []units.Time, order []int32) {
	ends = make([]units.Time, len(starts))
	ids := make([]wire.FlowID, len(starts))
	models, split := []wire.Model{f}, false
	of := func(r wire.RouteID) wire.Model { return models[int(part[r])%len(models)] }
	for i, left := 0, len(starts); left > 0; {
		end, ok := units.Time(0), false
		for _, m := range models {
			if at, some := m.Next(); some && (!ok || at < end) {
				end, ok = at, true
			}
		}
		if i == before && !split {
			split = true
			var flows []wire.FlowID
			models, flows = f.Split(n, part)
			for k := range i {
				if ends[k] == 0 {
					ids[k] = flows[ids[k]]
				}
			}
		}
		if i < len(starts) && (!ok || starts[i].at < end) {
			s := &starts[i]
			of(s.route).Carry(s.route, s.work)
			ids[i] = of(s.route).Start(s.at, s.route, s.bound, s.work, 1, int32(i))
			if o := s.other; o < i && ends[o] == 0 {
				of(starts[o].route).SetRate(s.at, ids[o], s.bound)
			}
			i++
			continue
		}
		for _, m := range models {
			if at, some := m.Next(); !some || at > end {
				continue
			}
			for _, tok := range m.Advance(end, nil) {
				ends[tok] = end
				order = append(order, tok)
				left--
			}
		}
	}
	return ends, order
}

// Parts of a model that have no link in common end the flows that the whole would end, each
// in its order, whenever it is split; links carry the same.
func TestPartsAreTheWhole(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		whole, apart := New(), New()
		n := rapid.IntRange(1, 3).Draw(t, "parts")
		links, routes := rapid.IntRange(1, 4).Draw(t, "links"), rapid.IntRange(1, 5).Draw(t, "routes")
		for range n * links {
			c := wire.Rate(rapid.IntRange(1, 30).Draw(t, "capacity"))
			whole.AddLink("", c)
			apart.AddLink("", c)
		}
		var part []int32
		for r := range n * routes {
			var uses []wire.Use
			for l := range links {
				if k := rapid.IntRange(-1, 2).Draw(t, "count"); k > 0 {
					uses = append(uses, wire.Use{Link: wire.LinkID(r/routes*links + l), Count: int32(k)})
				}
			}
			part = append(part, int32(r/routes))
			whole.AddRoute(uses)
			apart.AddRoute(slices.Clone(uses))
		}
		whole.Seal()
		apart.Seal()
		var starts []start
		at := units.Time(0)
		for range rapid.IntRange(1, 40).Draw(t, "flows") {
			at += units.Time(rapid.OneOf(rapid.Just(0), rapid.IntRange(0, 300)).Draw(t, "gap")) *
				units.Nanosecond
			starts = append(starts, start{at, wire.RouteID(rapid.IntRange(0, n*routes-1).Draw(t, "route")),
				wire.Rate(rapid.IntRange(1, 9).Draw(t, "bound")),
				wire.Work(rapid.IntRange(1, 2000).Draw(t, "work")) * 1000,
				rapid.IntRange(0, len(starts)).Draw(t, "other")})
		}
		a, first := play(whole, starts)
		b, second := playApart(apart, starts, n, part, rapid.IntRange(0, len(starts)).Draw(t, "before"))
		if !slices.Equal(a, b) {
			t.Fatalf("flows end at %v, in parts at %v", a, b)
		}
		of := func(p int32, order []int32) (out []int32) {
			for _, tok := range order {
				if part[starts[tok].route] == p {
					out = append(out, tok)
				}
			}
			return out
		}
		for p := range int32(n) {
			if x, y := of(p, first), of(p, second); !slices.Equal(x, y) {
				t.Fatalf("flows of part %d end in the order %v, alone %v", p, x, y)
			}
		}
		if a, b := whole.Loads(), apart.Loads(); !slices.Equal(a, b) {
			t.Fatalf("links carry %v, in parts %v", a, b)
		}
	})
}
