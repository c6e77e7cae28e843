package sim

import (
	"cmp"
	"slices"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/sim/gpu"
	"github.com/simccl/simccl/sim/internal/engine"
	"github.com/simccl/simccl/sim/internal/fold"
	"github.com/simccl/simccl/units"
)

// Which ranks run in place of all: sim/internal/fold proposes quotients, of which the first that
// holds is taken, in this order: exact ones that cost little, near ones where they are allowed, other
// exact ones.

// Folding says when equivalent ranks and channels are simulated once.
type Folding uint8

// Foldings. FoldAuto, the default, folds where that gives the same result bit
// for bit; beyond UnfoldedRanks, where that is not possible or costs more than
// exactTime, it folds nearly equivalent ones. FoldExact never does the latter, at
// any cost, and FoldNear does it wherever it can be done. exec.Result.Account
// reports what was done.
const (
	FoldAuto Folding = iota
	Unfolded
	FoldExact
	FoldNear
	sameDraws // as ranks share draws of jitter
)

// UnfoldedRanks is the largest communicator that is simulated rank by rank
// where folding would not be exact.
const UnfoldedRanks = 512

// exactTime is what an exact quotient, or else a run of every rank, may cost by the forecast where
// a near quotient is there: more, and FoldAuto takes the near one. Sweeps of thirty sizes over
// an odd number of nodes take less than 4 s with it.
const exactTime = wholeTime / quickly

// quotient lays out the representatives of an engine's job, those of so many times as much work; nil
// where every rank has to run.
func (x *Executor) quotient(e *engine.Engine, mode Folding, times float64) (*fold.Quotient, error) {
	if mode == Unfolded {
		return nil, nil
	}
	j := e.Jobs[0]
	c := fold.Config{Systems: x.cfg.Systems, Fabric: x.cfg.Fabric, Faults: x.cfg.Faults,
		Slow: x.cfg.slowness()}
	all := c.Proposals(j.Plan)
	near := x.nearBy(mode, e, times)
	if slices.ContainsFunc(all, near) {
		slices.SortStableFunc(all, inOrder(mode, j, near, times))
	}
	for _, p := range all {
		if err := affordTransfers(j.Plan, p.Transfers, mode); err != nil && (p.Exact || near(p)) {
			return nil, err
		}
		if q, err := c.Lay(e, j, p, near(p)); q != nil || err != nil {
			return q, err
		}
	}
	return nil, nil
}

// nearBy says which proposals are enough where they are near, if they save half: how far off they are is
// known on ideal networks.
func (x *Executor) nearBy(mode Folding, e *engine.Engine, times float64) func(p *fold.Proposal) bool {
	j := e.Jobs[0]
	every, drawn := rankByRank(j, times), mode == sameDraws || e.Jitter != (gpu.JitterCost{})
	some := every.time() > exactTime
	if mode == sameDraws {
		some = rankByRank(j, 1).pieces > fewWork*float64(j.Kernels)
	}
	return func(p *fold.Proposal) bool {
		switch {
		case x.cfg.Fabric != nil, mode == FoldExact, p.Margin == 0:
			return false
		case mode == FoldNear:
			return !(p.Chain && x.chains)
		case !some, p.Chain && x.chains, mode == FoldAuto && 2*priceOf(j, p, times) > every.time(),
			drawn && (p.Chain || j.Plan.Req.Algo != coll.Ring):
			return false
		}
		return p.Few || mode == FoldAuto && j.Plan.Comm.NRanks > UnfoldedRanks
	}
}

// rankByRank is about what a run of every rank costs beside quotients.
func rankByRank(j *engine.Job, times float64) cost {
	all := j.Plan.Programs(0)
	n, ranks := int64(0), int64(j.Plan.Comm.NRanks)
	for _, pr := range all {
		n += j.Plan.NumOps(&pr) * int64(max(1, pr.Slices))
	}
	return cost{pieces: float64(n) * times * float64(ranks) * float64(j.Kernels),
		conns: float64(int64(len(all)) * ranks)}
}

// priceOf is about what a run of a proposal takes.
func priceOf(j *engine.Job, p *fold.Proposal, times float64) units.Time {
	return cost{pieces: float64(p.Slices) * times * float64(j.Kernels), conns: float64(p.Parts)}.time()
}

// inOrder puts exact quotients that cost little first, then near ones that take at most half of
// wholeTime, the cheapest of the other near ones, and other exact ones. One that is near where it is not
// exact is not left for another.
func inOrder(mode Folding, j *engine.Job, near func(*fold.Proposal) bool,
	times float64) func(a, b *fold.Proposal) int {
	price := func(p *fold.Proposal) units.Time { return priceOf(j, p, times) }
	cheap := func(p *fold.Proposal) bool {
		switch mode {
		case FoldNear:
			return false
		case sameDraws:
			return p.Slices <= fewWork
		}
		return price(p) <= exactTime
	}
	place := func(p *fold.Proposal) int {
		switch {
		case p.Exact && (p.Margin > 0 && !p.Few && near(p) || cheap(p)):
			return 0
		case p.Exact:
			return 3
		case price(p) <= exactTime:
			return 1
		}
		return 2
	}
	return func(a, b *fold.Proposal) int {
		if place(a) == 2 && place(b) == 2 {
			return cmp.Compare(price(a), price(b))
		}
		return place(a) - place(b)
	}
}

// fewWork is of how many slices of a kernel, of a ring that draws jitter, ranks that are nearly equivalent
// share their draws, where no exact quotient has fewer: half a window's. With limits of their own for
// all_reduce, and for parts that represent many, times were within 0.7 %, less than another seed changes.
const fewWork = windowWork / 2
