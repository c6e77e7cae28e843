package sim

import (
	"context"
	"fmt"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/exec"
	"github.com/simccl/simccl/plan"
	"github.com/simccl/simccl/sim/internal/fold"
	"github.com/simccl/simccl/trace"
	"github.com/simccl/simccl/units"
)

// Where a network has switches, a port is slow or hosts differ, few ranks represent
// others, and states seldom recur. What is left is that a large operation does the
// same again and again: iterations over chunks, and in each iteration of a ring as many
// turns as there are ranks. So of what would cost too much only some iterations and
// turns are simulated, in lockstep, and the others take the mean time of the last half
// of these, as with jitter (window.go). Rings run in turns:
//
//	T(n turns) = T(m) + (n - m) · (T(m) - T(m/2)) / (m/2)
//
// docs/results/REDUCTIONS.md has how far off that is.

// A run over unequal hosts, networks or slow ports whose cost is at most wholeTime is simulated whole. The
// parts of a longer one cost about wholeTime together, and have at least leastParts turns and leastLoops
// iterations.
const (
	wholeTime  = units.Second
	leastParts = 4 // turns of a ring, or chunks of a transfer
	leastLoops = 8
	// quickly is by how much less an operation between equal hosts may take: of a sweep of 32 sizes a dozen
	// takes long, and all of them 4 s; over unequal hosts 15.
	quickly = 5
)

// plain reports whether nothing sets ranks and links apart but the operation: hosts
// are equal, no fault is given and the network is ideal.
func (x *Executor) plain() bool {
	if x.cfg.Fabric != nil || len(x.cfg.Faults) > 0 {
		return false
	}
	for i, s := range x.cfg.Systems {
		if s != x.cfg.Systems[0] || len(x.cfg.Comm.NodeRanks[i]) != len(x.cfg.Comm.NodeRanks[0]) {
			return false
		}
	}
	return true
}

// mayShorten reports whether a run is one whose time may be found from a part of it.
func (x *Executor) mayShorten(p *plan.Plan, sink trace.Sink) bool {
	return sink == trace.Discard && !x.cfg.NoSkip && x.cfg.Fold == FoldAuto &&
		p.Members() == nil && p.Req.Cut == nil && x.cfg.Late == nil && p.OneRank() == plan.NotOneRank &&
		x.steadyNetwork()
}

// fast reports whether all of an operation in lockstep is simulated.
func (x *Executor) fast(m *method) bool {
	m.cost = x.costOf(m.whole, m.e, m.q)
	return m.cost.time() <= x.whole
}

// long proposes some turns and iterations of an operation in lockstep; nil where that saves less
// than half. Of rings over several iterations these are two and one.
func (x *Executor) long(_ context.Context, whole *method) (*method, error) {
	m, iterations, turns := partly(whole), max(1, whole.whole.Iterations()), whole.whole.Turns()
	if turns == 0 {
		return x.loops(whole, iterations)
	}
	c := whole.cost
	if iterations > 3 {
		if err := m.shorten(2, iterations, x.loopMargin(m.whole)); err != nil {
			return nil, err
		}
		c = c.part(3, iterations)
	}
	if ran := max(leastParts, c.fit(turns, x.whole)); 3*ran <= turns {
		m.Blocks = exec.Part{Ran: ran, Of: turns}
		c = c.part(ran*3/2, turns)
	}
	if 2*c.time() > whole.cost.time() {
		return nil, nil
	}
	return priced(m, c), nil
}

// loops proposes some iterations of what has no turns.
func (x *Executor) loops(whole *method, all int64) (*method, error) {
	m, c := partly(whole), whole.cost
	some, margin := max(x.leastLoops(m.whole), c.fit(all, x.whole)), x.loopMargin(m.whole)
	if 3*some > all {
		some, margin = x.fewLoops(m.whole, c), widestMargin
	}
	if some > 0 && 3*some <= all {
		if err := m.shorten(some, all, margin); err != nil {
			return nil, err
		}
		c = c.part(some*3/2, all)
	}
	return priced(m, c), nil
}

// little reports whether all of an operation over plain hosts is simulated without another look.
func (x *Executor) little(m *method) bool {
	m.cost = x.costOf(m.whole, m.e, m.q)
	return m.cost.time() <= x.whole/quickly
}

// settling proposes some iterations of an operation over plain hosts whose states may recur nowhere,
// so that no period is counted; of a ring some blocks of each. Along a chain without its middle
// iterations do not take what they take along the whole one. Sizes share what is simulated, so it may take
// as long as two of them. Nil where that saves less than half, of a chain of iterations.
func (x *Executor) settling(ctx context.Context, whole *method) (*method, error) {
	all, chain := whole.whole.Iterations(), whole.whole.Req.Func.Rooted()
	if whole.whole.Turns() > 0 || all == 0 {
		return x.long(ctx, whole)
	}
	m, c := partly(whole), whole.cost
	d := depth(m.whole)
	if chain && whole.q != nil {
		d = min(d, 2*int64(len(whole.e.Devices)))
	}
	some := max(chainDepth, (d+3)/4*4, c.fit(all, 2*x.whole/quickly)/4*4)
	ran := some * 3 / 2
	if !chain { // which has settled once as many iterations are in progress as there are ranks
		ran += some / 4
	}
	if c = c.part(ran, all); 2*some > all || !chain && 2*c.time() > whole.cost.time() {
		return nil, nil
	}
	if err := m.shorten(some, all, wideMargin); err != nil || m.full == nil {
		return nil, err
	}
	var err error
	if !chain {
		m.quarter, err = m.whole.Shorten(some/4, true)
	}
	return priced(m, c), err
}

// partly is a method without jitter that leaves nothing out yet.
func partly(whole *method) *method {
	return &method{whole: whole.whole, rest: whole.whole, byCost: true}
}

// priced is a method with its cost; nil where it leaves nothing out.
func priced(m *method, c cost) *method {
	if m.cost = c; !m.parted() {
		return nil
	}
	return m
}

// nearly proposes a near quotient, known on ideal networks.
func (x *Executor) nearly(ctx context.Context, whole *method) (*method, error) {
	if x.cfg.Fabric != nil {
		return nil, nil
	}
	near := *x
	near.cfg.Fold = FoldNear
	m := &method{whole: whole.whole, rest: whole.whole}
	if err := near.layWhole(ctx, m, trace.Discard); err != nil || m.q == nil {
		return nil, err
	}
	m.cost = x.costOf(m.whole, m.e, m.q)
	return m, nil
}

// leastLoops is how many iterations show how long the others take, at least: as many
// as are in progress at a time once all ranks are busy, of NVLSTree, whose buffers fill
// slowly, twice that. Where no cable is shared, a chain of ranks is as fast as its
// slowest part, wherever that is, and some ranks' worth of iterations show it. Sends and
// receives wait for no others.
func (x *Executor) leastLoops(p *plan.Plan) int64 {
	d := depth(p)
	switch {
	case p.Req.Func.IsP2P():
		return leastParts
	case p.Req.Algo == coll.NVLSTree:
		d *= 2
	case p.Req.Func.Rooted() && x.cfg.Fabric == nil:
		d = min(d, chainDepth)
	}
	return max(leastLoops, d)
}

// fewLoops is how many iterations are simulated of an NVLSTree over a network that would
// take tens of seconds whole, and has too few iterations for leastLoops to save half: as many
// as are in progress at a time, an even number. 0 for all others.
func (x *Executor) fewLoops(p *plan.Plan, c cost) int64 {
	if p.Req.Algo != coll.NVLSTree || x.cfg.Fabric == nil || c.time() <= nearTime/wholeTime*x.whole {
		return 0
	}
	return max(leastLoops, depth(p)/2*2)
}

// chainDepth is how many iterations of a chain show its pace.
const chainDepth = 32

// account says how the time of an operation was found of which more iterations or turns than ran
// are given the mean time of those.
func (m *method) account(from exec.Account, more int64, skipped units.Time) exec.Account {
	margin := max(windowMargin, m.Margin)
	if m.byCost && from.Method == exec.Near {
		from.Margin += margin
		const mean = "%s; %d more turns or iterations are given the mean time of those simulated"
		from.Note = fmt.Sprintf(mean, from.Note, more)
		return from
	}
	if !m.byCost {
		margin += from.Margin
	}
	return exec.Account{Method: exec.Window, Programs: from.Programs, Margin: margin, Periods: more,
		Skipped: skipped, ByCost: m.byCost, Reduction: exec.Reduction{Ranks: from.Reduction.Ranks}}
}

// loopMargin is the margin of some iterations of a plan: of NVLSTree, whose buffers fill
// slowly, 4 % were seen.
func (x *Executor) loopMargin(p *plan.Plan) float64 {
	switch {
	case p.Req.Func.IsP2P():
		return widestMargin
	case p.Req.Algo == coll.NVLSTree:
		return fold.Within5
	}
	return windowMargin
}
