// Package simnet (directory sim/net) moves bytes over shared links on the
// virtual clock. A flow has a route and a rate of its own that it never
// exceeds; links are shared max-min fairly by progressive filling, redone only
// for the flows that a change can reach.
//
// Rates are whole kB/s and work is whole nano-bytes, so that sums do not
// depend on the order in which flows come and go: k equal flows behave, bit
// for bit, like one flow of multiplicity k, which is what folding equal ranks
// and channels relies on.
package simnet

import "github.com/simccl/simccl/units"

// Model is the seam between fidelities: the engine starts flows and asks for
// the next completion.
type Model interface {
	// Start puts a flow of n bytes (after jitter) on a route at time now; rate
	// is its own upper bound. token comes back from Advance.
	Start(now units.Time, r RouteID, rate Rate, n Work, mult, token int32) FlowID
	// Carry counts bytes on the links of a route, for Loads: what a flow really
	// carries, where jitter lengthens or shortens its way.
	Carry(r RouteID, n Work)
	// SetRate changes the upper bound of a flow that is under way.
	SetRate(now units.Time, f FlowID, rate Rate)
	// Next is the time of the next completion, ok false without flows.
	Next() (at units.Time, ok bool)
	// Advance moves the model to time now and appends the tokens of the flows
	// that are complete, in a fixed order.
	Advance(now units.Time, done []int32) []int32
}

// Rate is in kB/s (10³ bytes per second), which is a nano-byte per picosecond.
type Rate int64

// Work is in nano-bytes.
type Work int64

// NanoBytes in a byte.
const NanoBytes = 1_000_000_000

// RateOf converts GB/s; it never returns less than 1 kB/s.
func RateOf(g float64) Rate { return max(1, Rate(g*1e6+0.5)) }

// LinkID, RouteID and FlowID are dense indices of a Fluid.
type (
	LinkID  int32
	RouteID int32
	FlowID  int32
)

// Use says that a route crosses a link. Count is the number of flows of the
// route's class that one real link of the link's class carries: 1 unless
// ranks are folded.
type Use struct {
	Link  LinkID
	Count int32
}
