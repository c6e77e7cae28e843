package wire_test

import (
	"slices"
	"testing"

	"github.com/simccl/simccl/sim/internal/fluid"
	"github.com/simccl/simccl/sim/internal/packets"
	"github.com/simccl/simccl/sim/wire"
	"github.com/simccl/simccl/sim/wire/ideal"
	"github.com/simccl/simccl/units"
	"pgregory.net/rapid"
)

// models are all implementations of the seam.
var models = []struct {
	name string
	make func() wire.Model
}{
	{"fluid", func() wire.Model { return fluid.New() }},
	{"ideal", func() wire.Model { return ideal.New() }},
	{"packets", func() wire.Model { return packets.New(packets.Settings{}) }}, // links that are no cables
}

// scene is links, routes over them and flows on the routes, by time.
type scene struct {
	links  []wire.Rate
	routes [][]wire.Use
	flows  []flow
}

type flow struct {
	at    units.Time
	route wire.RouteID
	bound wire.Rate
	work  wire.Work
	later units.Time // after at: the bound becomes then
	then  wire.Rate  // 0: it stays
}

func drawScene(t *rapid.T) scene {
	var s scene
	rate := rapid.Map(rapid.IntRange(1, 400_000_000), func(n int) wire.Rate { return wire.Rate(n) })
	s.links = rapid.SliceOfN(rate, 1, 6).Draw(t, "links")
	for range rapid.IntRange(1, 5).Draw(t, "routes") {
		var uses []wire.Use
		for l := range s.links {
			if rapid.Bool().Draw(t, "crosses") {
				uses = append(uses, wire.Use{Link: wire.LinkID(l),
					Count: int32(rapid.IntRange(1, 3).Draw(t, "count"))})
			}
		}
		s.routes = append(s.routes, uses)
	}
	for range rapid.IntRange(1, 12).Draw(t, "flows") {
		f := flow{at: units.Time(rapid.IntRange(0, 3_000_000).Draw(t, "at")),
			route: wire.RouteID(rapid.IntRange(0, len(s.routes)-1).Draw(t, "route")),
			bound: rate.Draw(t, "bound"), work: wire.Work(rapid.Int64Range(1, 1<<50).Draw(t, "work"))}
		if rapid.Bool().Draw(t, "changes") {
			f.later, f.then = units.Time(rapid.IntRange(0, 2_000_000).Draw(t, "later")), rate.Draw(t, "then")
		}
		s.flows = append(s.flows, f)
	}
	slices.SortStableFunc(s.flows, func(a, b flow) int { return int(a.at - b.at) })
	return s
}

// outcome is what a model made of a scene.
type outcome struct {
	ends  []units.Time
	loads []wire.Load
	last  units.Time
}

// event is a flow's start, or a change of its bound.
type event struct {
	at     units.Time
	flow   int
	change bool
}

// play runs a scene on a model as the engine does: completions up to an instant
// first, then what begins in it.
func play(t interface{ Fatalf(string, ...any) }, m wire.Model, s scene) outcome {
	for l, c := range s.links {
		if id := m.AddLink(string(rune('a'+l)), c); int(id) != l {
			t.Fatalf("link %d has id %d", l, id)
		}
	}
	for r, uses := range s.routes {
		if id := m.AddRoute(uses); int(id) != r {
			t.Fatalf("route %d has id %d", r, id)
		}
	}
	m.Seal()
	var events []event
	for i, f := range s.flows {
		events = append(events, event{f.at, i, false})
		if f.then > 0 {
			events = append(events, event{f.at + f.later, i, true})
		}
	}
	slices.SortStableFunc(events, func(a, b event) int { return int(a.at - b.at) })
	out := outcome{ends: make([]units.Time, len(s.flows))}
	ids := make([]wire.FlowID, len(s.flows))
	advance := func(to units.Time, all bool) {
		for {
			at, ok := m.Next()
			if !ok || !all && at > to {
				return
			}
			if at < out.last {
				t.Fatalf("a completion at %v after one at %v", at, out.last)
			}
			out.last = at
			done := m.Advance(at, nil)
			for _, tok := range done {
				if out.ends[tok] != 0 {
					t.Fatalf("flow %d completes twice", tok)
				}
				out.ends[tok] = max(1, at)
			}
		}
	}
	for _, ev := range events {
		advance(ev.at, false)
		f := s.flows[ev.flow]
		if !ev.change {
			m.Carry(f.route, f.work)
			ids[ev.flow] = m.Start(ev.at, f.route, f.bound, f.work, 1, int32(ev.flow))
		} else if out.ends[ev.flow] == 0 {
			m.SetRate(ev.at, ids[ev.flow], f.then)
		}
	}
	advance(0, true)
	out.loads = m.Loads()
	return out
}

// least is the bound of a flow alone on its links, each of which it takes once.
func (s *scene) least(r wire.RouteID, bound wire.Rate) wire.Rate {
	for _, u := range s.routes[r] {
		bound = min(bound, s.links[u.Link])
	}
	return bound
}

// TestModelsConform holds every model to what the engine relies on.
func TestModelsConform(t *testing.T) {
	for _, m := range models {
		t.Run(m.name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				s := drawScene(t)
				got := play(t, m.make(), s)
				for i, f := range s.flows {
					// No flow is faster than the larger of its bounds on its slowest link.
					rate := s.least(f.route, max(f.bound, f.then))
					if took := got.ends[i] - f.at; got.ends[i] == 0 || wire.Work(took)*wire.Work(rate) <
						f.work && took < units.Time(f.work/wire.Work(rate)) {
						t.Fatalf("flow %d of %d nano-bytes at %d kB/s at most takes %v", i, f.work, rate,
							took)
					}
				}
				if again := play(t, m.make(), s); !slices.Equal(again.ends, got.ends) ||
					!slices.Equal(again.loads, got.loads) {
					t.Fatalf("the second run differs: %v after %v", again, got)
				}
				s.checkLoads(t, &got)
			})
		})
	}
}

// checkLoads compares what links carried with what flows took over them.
func (s *scene) checkLoads(t *rapid.T, got *outcome) {
	for l, load := range got.loads {
		nano, whole := wire.Work(0), units.Bytes(0)
		for _, f := range s.flows {
			for _, u := range s.routes[f.route] {
				if int(u.Link) == l {
					nano += f.work % wire.NanoBytes * wire.Work(u.Count)
					whole += units.Bytes(f.work/wire.NanoBytes) * units.Bytes(u.Count)
				}
			}
		}
		if want := whole + units.Bytes(nano/wire.NanoBytes); load.Bytes != want ||
			load.Capacity != s.links[l] || load.Busy > got.last {
			t.Fatalf("link %d: %+v, want %d B of %d kB/s within %v", l, load, want, s.links[l], got.last)
		}
	}
}

// A flow that meets no other takes the same time on every model: its work at the
// least of its bound and its links, before and after a change of the bound.
func TestAFlowAloneIsEquallyFastOnAllModels(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawScene(t)
		s.flows = s.flows[:1]
		for r := range s.routes {
			for u := range s.routes[r] {
				s.routes[r][u].Count = 1
			}
		}
		f := s.flows[0]
		left, end := f.work, f.at
		rate := wire.Work(s.least(f.route, f.bound))
		if f.then > 0 {
			if done := rate * wire.Work(f.later); done < left {
				left, end, rate = left-done, f.at+f.later, wire.Work(s.least(f.route, f.then))
			}
		}
		end += units.Time((left + rate - 1) / rate)
		for _, m := range models {
			if got := play(t, m.make(), s).ends[0]; got != end {
				t.Fatalf("%s: ends at %v, want %v", m.name, got, end)
			}
		}
	})
}

// No flow ends later where no flow waits for another, if bounds do not change
// and nothing depends on when others end.
func TestIdealIsNeverSlower(t *testing.T) {
	waited := 0
	rapid.Check(t, func(t *rapid.T) {
		s := drawScene(t)
		for i := range s.flows {
			s.flows[i].then = 0
		}
		shared, alone := play(t, fluid.New(), s), play(t, ideal.New(), s)
		for i := range s.flows {
			if alone.ends[i] > shared.ends[i] {
				t.Fatalf("flow %d ends at %v on the ideal network, at %v on a shared one", i, alone.ends[i],
					shared.ends[i])
			}
			if alone.ends[i] < shared.ends[i] {
				waited++
			}
		}
	})
	if waited == 0 {
		t.Error("no flow waited for another on any shared network")
	}
}

// Watch reports what is in use on a link, up to zero when all is through.
func TestWatchEndsAtZero(t *testing.T) {
	for _, m := range models {
		t.Run(m.name, func(t *testing.T) {
			model := m.make()
			l := model.AddLink("a", 1000)
			r := model.AddRoute([]wire.Use{{Link: l, Count: 1}})
			model.Seal()
			var rates []wire.Rate
			model.Watch(func(id wire.LinkID, _ units.Time, rate wire.Rate) {
				if id == l {
					rates = append(rates, rate)
				}
			})
			model.Start(0, r, 700, 7000, 1, 0)
			at, _ := model.Next()
			model.Advance(at, nil)
			if _, ok := model.Next(); ok {
				t.Fatal("a flow is left")
			}
			if !slices.Contains(rates, 700) || rates[len(rates)-1] != 0 {
				t.Fatalf("rates %v, want 700 and 0 at the end", rates)
			}
		})
	}
}
