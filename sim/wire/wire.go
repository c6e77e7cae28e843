// Package wire is the seam between the engine of the simulator and the model
// of the links that carry its bytes. The engine declares links and routes,
// starts flows on routes, and takes the next completion.
//
// In: links with capacities, routes over them, flows with work and a bound of
// their own. Out: when each flow completes, and what each link carried. A model
// knows nothing of ranks, plans or protocols. It is deterministic: what it
// returns is a function of the calls before.
//
// Models: sim/internal/fluid shares links max-min fairly and is the simulator's own;
// sim/wire/ideal lets no flow wait for another. A third needs nothing of the
// engine but this package, and passes the conformance test of this package.
//
// Rates are whole kB/s and work is whole nano-bytes, so that sums do not depend
// on the order in which flows come and go.
package wire

import "github.com/simccl/simccl/units"

// Rate is in kB/s (10³ bytes per second), which is a nano-byte per picosecond.
type Rate int64

// Work is in nano-bytes.
type Work int64

// NanoBytes in a byte.
const NanoBytes = 1_000_000_000

// RateOf converts GB/s; it never returns less than 1 kB/s.
func RateOf(g float64) Rate { return max(1, Rate(g*1e6+0.5)) }

// LinkID, RouteID and FlowID are dense indices of a Model.
type (
	LinkID  int32
	RouteID int32
	FlowID  int32
)

// Use says that a route crosses a link. Count is the number of flows of the
// route's class that one real link of the link's class carries: 1 unless ranks
// are folded, or unless a byte takes the link more than once (a GPU's memory is
// read and written).
type Use struct {
	Link  LinkID
	Count int32
}

// Load is what a link carried.
type Load struct {
	Name     string
	Capacity Rate
	Bytes    units.Bytes
	Busy     units.Time // that it carried something
}

// Links are where links and routes are declared: a Model, or a Layout alone.
type Links interface {
	// AddLink declares a link.
	AddLink(name string, c Rate) LinkID
	// Limit gives a link another capacity, before Seal.
	Limit(l LinkID, c Rate)
	// AddRoute declares a route; one without links is bound by its flows' own
	// rates alone. uses is kept.
	AddRoute(uses []Use) RouteID
	// Name and Capacity are those that a link was declared with.
	Name(l LinkID) string
	Capacity(l LinkID) Rate
	// Uses returns the links of a route; not to be changed.
	Uses(r RouteID) []Use
}

// Model moves flows over links on the virtual clock. Times never go back from
// one call to the next. It is not safe for concurrent use.
type Model interface {
	Links
	// Seal ends the declarations; it is called once, before the first flow.
	Seal()
	// Start puts a flow on a route at time now: so much work (after jitter), and
	// a rate that it never exceeds. It counts as mult equal flows. token comes
	// back from Advance.
	Start(now units.Time, r RouteID, bound Rate, w Work, mult, token int32) FlowID
	// Carry counts work on the links of a route, for Loads: what a flow really
	// carries, where jitter makes its work longer or shorter.
	Carry(r RouteID, w Work)
	// SetRate changes the bound of a flow in flight; of one that has
	// completed it changes nothing.
	SetRate(now units.Time, f FlowID, bound Rate)
	// Next is the time of the next completion, ok false without flows.
	Next() (at units.Time, ok bool)
	// Advance moves the model to time now, no later than Next, and appends the
	// tokens of the flows that are complete, in a fixed order.
	Advance(now units.Time, done []int32) []int32
	// Loads reports what each link carried up to now, in the order of LinkID.
	Loads() []Load
	// Watch, before the first flow, requests a call with the rate in use on a link
	// whenever it may have changed; nil for never. Rates do not depend on it.
	Watch(report func(l LinkID, at units.Time, rate Rate))
}

// Layout holds declared links and routes: what every Model begins with, and all
// that is needed to compare routes without running flows.
type Layout struct {
	names  []string
	rates  []Rate
	routes [][]Use
}

var _ Links = (*Layout)(nil)

// AddLink implements Links.
func (y *Layout) AddLink(name string, c Rate) LinkID {
	y.names, y.rates = append(y.names, name), append(y.rates, max(1, c))
	return LinkID(len(y.names) - 1)
}

// Limit implements Links.
func (y *Layout) Limit(l LinkID, c Rate) { y.rates[l] = max(1, c) }

// AddRoute implements Links.
func (y *Layout) AddRoute(uses []Use) RouteID {
	y.routes = append(y.routes, uses)
	return RouteID(len(y.routes) - 1)
}

// Name implements Links.
func (y *Layout) Name(l LinkID) string { return y.names[l] }

// Names lists the links' names in the order of their ids.
func (y *Layout) Names() []string { return y.names }

// Capacity implements Links.
func (y *Layout) Capacity(l LinkID) Rate { return y.rates[l] }

// Uses implements Links.
func (y *Layout) Uses(r RouteID) []Use { return y.routes[r] }

// NumRoutes counts the declared routes.
func (y *Layout) NumRoutes() int { return len(y.routes) }
