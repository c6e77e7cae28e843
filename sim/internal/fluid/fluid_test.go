package fluid

import (
	"slices"
	"testing"

	"github.com/simccl/simccl/sim/wire"
	"github.com/simccl/simccl/units"
	"pgregory.net/rapid"
)

// Two flows on one link: they share it until the shorter ends, then the other
// has it alone, up to its own rate.
func TestTwoFlowsShareALink(t *testing.T) {
	f := new(Fluid)
	l := f.AddLink("a", wire.RateOf(10))
	r := f.AddRoute([]wire.Use{{Link: l, Count: 1}})
	f.Carry(r, 40_000*wire.NanoBytes)
	f.Start(0, r, wire.RateOf(100), 10_000*wire.NanoBytes, 1, 1)
	f.Start(0, r, wire.RateOf(8), 30_000*wire.NanoBytes, 1, 2)
	// 5 GB/s each: 10,000 B last 2 us. Then 20,000 B at 8 GB/s last 2.5 us.
	for _, want := range []struct {
		at    units.Time
		token int32
	}{{2 * units.Microsecond, 1}, {4500 * units.Nanosecond, 2}} {
		at, ok := f.Next()
		if !ok || at != want.at {
			t.Fatalf("next completion at %v (%v), want %v", at, ok, want.at)
		}
		if done := f.Advance(at, nil); len(done) != 1 || done[0] != want.token {
			t.Fatalf("at %v tokens %v, want [%d]", at, done, want.token)
		}
	}
	if got := f.Loads()[0]; got.Bytes != 40_000 || got.Busy != 4500*units.Nanosecond {
		t.Fatalf("link carried %d B in %v", got.Bytes, got.Busy)
	}
}

// A flow that is slowed down on its way keeps what it has done.
func TestSetRateKeepsProgress(t *testing.T) {
	f := new(Fluid)
	r := f.AddRoute(nil)
	id := f.Start(0, r, wire.RateOf(2), 4_000*wire.NanoBytes, 1, 7)
	f.SetRate(units.Microsecond, id, wire.RateOf(1))
	if at, _ := f.Next(); at != 3*units.Microsecond {
		t.Fatalf("ends at %v, want 3 us", at)
	}
}

type scene struct {
	links  []int64
	routes [][]wire.Use
	flows  []struct {
		route int
		rate  wire.Rate
		work  wire.Work
		at    units.Time
	}
}

func drawScene(t *rapid.T) scene {
	var s scene
	for range rapid.IntRange(1, 5).Draw(t, "links") {
		s.links = append(s.links, rapid.Int64Range(1, 1000).Draw(t, "cap"))
	}
	for range rapid.IntRange(1, 5).Draw(t, "routes") {
		seen := map[int]bool{}
		var uses []wire.Use
		for range rapid.IntRange(1, 3).Draw(t, "len") {
			l := rapid.IntRange(0, len(s.links)-1).Draw(t, "link")
			if !seen[l] {
				uses = append(uses, wire.Use{Link: wire.LinkID(l), Count: 1})
			}
			seen[l] = true
		}
		s.routes = append(s.routes, uses)
	}
	for range rapid.IntRange(1, 20).Draw(t, "flows") {
		s.flows = append(s.flows, struct {
			route int
			rate  wire.Rate
			work  wire.Work
			at    units.Time
		}{rapid.IntRange(0, len(s.routes)-1).Draw(t, "route"),
			wire.Rate(rapid.Int64Range(1, 400).Draw(t, "rate")),
			wire.Work(rapid.Int64Range(1, 1_000_000).Draw(t, "work")),
			units.Time(rapid.IntRange(0, 500).Draw(t, "at"))})
	}
	return s
}

func (s scene) model() *Fluid {
	f := new(Fluid)
	for _, c := range s.links {
		f.AddLink("l", wire.Rate(c))
	}
	for _, r := range s.routes {
		f.AddRoute(r)
	}
	return f
}

// The textbook's examples of max-min shares: five sessions of which three share
// a link, and one meets one of those further on (Bertsekas and Gallager, Data
// Networks, 2nd edition, 6.5.2); and the long session through several links
// that each have one of their own, which gets half.
func TestTextbookShares(t *testing.T) {
	for _, x := range []struct {
		name  string
		links int
		flows [][]wire.LinkID
		want  []wire.Rate
	}{
		{"five sessions", 3, [][]wire.LinkID{{1}, {0}, {0, 1}, {2}, {0}}, []wire.Rate{667, 333, 333, 1000,
			333}},
		{"parking lot", 4, [][]wire.LinkID{{0, 1, 2, 3}, {0}, {1}, {2}, {3}}, []wire.Rate{500, 500, 500, 500,
			500}},
	} {
		f := new(Fluid)
		for range x.links {
			f.AddLink("", 1000)
		}
		for i, links := range x.flows {
			var uses []wire.Use
			for _, l := range links {
				uses = append(uses, wire.Use{Link: l, Count: 1})
			}
			f.Start(0, f.AddRoute(uses), 1<<40, 1<<40, 1, int32(i))
		}
		f.refill()
		for i, want := range x.want {
			if got := f.rate(wire.FlowID(i)); got < want-1 || got > want+1 {
				t.Errorf("%s: session %d gets %d, the book says %d", x.name, i+1, got, want)
			}
		}
	}
}

// Max-min: no link above capacity, and every flow is either at its own rate or
// crosses a full link on which no flow is faster.
func TestSharesAreMaxMin(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawScene(t)
		f := s.model()
		for i, fl := range s.flows {
			f.Start(0, wire.RouteID(fl.route), fl.rate, fl.work, 1, int32(i))
		}
		f.refill()
		used := make([]wire.Rate, len(s.links))
		flows := make([]wire.Rate, len(s.links))
		fastest := make([]wire.Rate, len(s.links))
		for i, fl := range s.flows {
			for _, u := range s.routes[fl.route] {
				used[u.Link] += f.rate(wire.FlowID(i))
				flows[u.Link]++
				fastest[u.Link] = max(fastest[u.Link], f.rate(wire.FlowID(i)))
			}
		}
		for l, c := range s.links {
			// Where more flows than kB/s meet, each still gets 1 kB/s.
			if used[l] > max(wire.Rate(c), flows[l]) {
				t.Fatalf("link %d carries %d of %d", l, used[l], c)
			}
		}
		for i, fl := range s.flows {
			rate := f.rate(wire.FlowID(i))
			if rate == fl.rate || rate == 1 {
				continue
			}
			ok := false
			for _, u := range s.routes[fl.route] {
				// Whole rates leave at most one kB/s a flow unused.
				full := wire.Rate(s.links[u.Link])-used[u.Link] < flows[u.Link]+1
				ok = ok || full && rate >= fastest[u.Link]-1
			}
			if !ok {
				t.Fatalf("flow of rate %d (bound %d) has no bottleneck", rate, fl.rate)
			}
		}
	})
}

// A flow of multiplicity k ends exactly when each of k equal flows does.
func TestMultiplicityEqualsCopies(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawScene(t)
		k := rapid.IntRange(1, 7).Draw(t, "copies")
		ends := func(copies, mult int) []units.Time {
			f := s.model()
			out := make([]units.Time, len(s.flows))
			for i, fl := range s.flows {
				for range copies {
					f.Start(0, wire.RouteID(fl.route), fl.rate, fl.work, int32(mult), int32(i))
				}
			}
			for {
				at, ok := f.Next()
				if !ok {
					return out
				}
				for _, tok := range f.Advance(at, nil) {
					out[tok] = at
				}
			}
		}
		a, b := ends(k, 1), ends(1, k)
		for i := range a {
			if a[i] != b[i] {
				t.Fatalf("flow %d: %d copies end at %d, one of multiplicity %d at %d", i, k, a[i], k, b[i])
			}
		}
	})
}

func BenchmarkFluid(b *testing.B) {
	f := new(Fluid)
	l := f.AddLink("a", wire.RateOf(367))
	r := f.AddRoute([]wire.Use{{Link: l, Count: 1}})
	for i := range int32(24) {
		f.Start(0, r, wire.RateOf(46), wire.Work(1+i)*10_000*wire.NanoBytes, 1, i)
	}
	b.ReportAllocs()
	var done []int32
	for b.Loop() {
		at, _ := f.Next()
		done = f.Advance(at, done[:0])
		for _, tok := range done {
			f.Start(at, r, wire.RateOf(46), 100_000*wire.NanoBytes, 1, tok)
		}
	}
}

// A flow that is complete keeps no rate: two that end at one instant come out
// of one Advance, and the caller that handles the first may still think of the second.
func TestSetRateOfACompleteFlow(t *testing.T) {
	f := new(Fluid)
	r := f.AddRoute([]wire.Use{{Link: f.AddLink("a", wire.RateOf(10)), Count: 1}})
	var ids []wire.FlowID
	for i := range int32(2) {
		ids = append(ids, f.Start(0, r, wire.RateOf(5), 1000*wire.NanoBytes, 1, i))
	}
	at, _ := f.Next()
	if done := f.Advance(at, nil); len(done) != 2 {
		t.Fatalf("%d flows complete, want both", len(done))
	}
	for _, id := range ids {
		f.SetRate(at, id, wire.RateOf(7))
	}
	if _, left := f.Next(); left {
		t.Fatal("a complete flow came back")
	}
}

// start is a flow that begins.
type start struct {
	at    units.Time
	route wire.RouteID
	bound wire.Rate
	work  wire.Work
	other int // an earlier flow, which gets this bound too
}

// sharing is a Fluid, or a plain model of the same flows.
type sharing interface {
	wire.Links
	Carry(r wire.RouteID, w wire.Work)
	Start(now units.Time, r wire.RouteID, bound wire.Rate, w wire.Work, mult, token int32) wire.FlowID
	SetRate(now units.Time, id wire.FlowID, bound wire.Rate)
	Next() (units.Time, bool)
	Advance(now units.Time, done []int32) []int32
}

// play runs flows and returns when each ends, and in which order they come.
func play(f sharing, starts []start) (ends []units.Time, order []int32) {
	ends = make([]units.Time, len(starts))
	ids := make([]wire.FlowID, len(starts))
	for i, left := 0, len(starts); left > 0; {
		end, ok := f.Next()
		if i < len(starts) && (!ok || starts[i].at < end) {
			s := &starts[i]
			f.Carry(s.route, s.work)
			ids[i] = f.Start(s.at, s.route, s.bound, s.work, 1, int32(i))
			if o := s.other; o < i && ends[o] == 0 {
				f.SetRate(s.at, ids[o], s.bound)
			}
			i++
			continue
		}
		for _, tok := range f.Advance(end, nil) {
			ends[tok] = end
			order = append(order, tok)
			left--
		}
	}
	return ends, order
}

// What cannot bind is left out of the sharing, and what cannot be felt by
// others is not shared out anew: all rates and ends stay the same.
func TestShortcutsChangeNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		short, full := new(Fluid), new(plain)
		unit := rapid.SampledFrom([]wire.Rate{1, 7, 1e6}).Draw(t, "unit") // small ones round at every share
		links := rapid.IntRange(1, 12).Draw(t, "links")
		for range links {
			c := unit * wire.Rate(rapid.OneOf(rapid.IntRange(1, 12), rapid.IntRange(20, 100)).Draw(t,
				"capacity"))
			short.AddLink("", c)
			full.AddLink("", c)
		}
		routes := rapid.IntRange(1, 12).Draw(t, "routes")
		for range routes {
			var uses []wire.Use
			for l := range links {
				if n := rapid.IntRange(-1, 2).Draw(t, "count"); n > 0 {
					uses = append(uses, wire.Use{Link: wire.LinkID(l), Count: int32(n)})
				}
			}
			short.AddRoute(uses)
			full.AddRoute(append([]wire.Use(nil), uses...))
		}
		short.Seal()
		var starts []start
		at := units.Time(0)
		for range rapid.IntRange(1, 30).Draw(t, "flows") {
			at += units.Time(rapid.OneOf(rapid.Just(0), rapid.IntRange(0, 300)).Draw(t, "gap")) *
				units.Nanosecond
			starts = append(starts, start{at, wire.RouteID(rapid.IntRange(0, routes-1).Draw(t, "route")),
				unit * wire.Rate(rapid.IntRange(1, 9).Draw(t, "bound")),
				wire.Work(rapid.OneOf(rapid.IntRange(1, 4), rapid.IntRange(1, 2000)).Draw(t, "bytes")) *
					wire.Work(unit) * 1000,
				rapid.IntRange(0, len(starts)).Draw(t, "other")})
		}
		a, first := play(short, starts)
		b, second := play(full, starts)
		if !slices.Equal(a, b) {
			t.Fatalf("flows end at %v, in full at %v", a, b)
		}
		if !slices.Equal(first, second) {
			t.Fatalf("flows end in the order %v, in full %v", first, second)
		}
		for i, l := range short.Loads() {
			if l.Busy != full.busy[i] {
				t.Fatalf("link %d is busy for %v, in full %v", i, l.Busy, full.busy[i])
			}
		}
	})
}

// Links whose level is found are not looked at again at the next change.
func TestLevelsAreFoundOnce(t *testing.T) {
	f := new(Fluid)
	l := f.AddLink("a", wire.RateOf(10))
	r := f.AddRoute([]wire.Use{{Link: l, Count: 1}})
	f.Carry(r, 1e6*wire.NanoBytes)
	for i := range int32(3) {
		f.Start(0, r, wire.RateOf(100), 1000*wire.NanoBytes*wire.Work(i+1), 1, i)
		f.Next()
		if len(f.queue)+len(f.moved) > 0 {
			t.Fatalf("after start %d: %d links and %d bundles are left", i, len(f.queue), len(f.moved))
		}
	}
}
