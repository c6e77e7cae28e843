package sim

import (
	"fmt"
	"slices"

	"github.com/simccl/simccl/exec"
	"github.com/simccl/simccl/plan"
	"github.com/simccl/simccl/sim/gpu"
	"github.com/simccl/simccl/sim/internal/host"
	"github.com/simccl/simccl/sim/internal/route"
	"github.com/simccl/simccl/topo"
	"github.com/simccl/simccl/trace"
)

// Folding tells when ranks and channels that behave alike are simulated once.
type Folding uint8

// Foldings. FoldAuto, the default, folds where that gives the same result bit
// for bit; beyond UnfoldedRanks, where that is not possible or costs more than
// exactWork, it folds what is nearly alike. FoldExact never does the latter, at
// any cost, and FoldNear does it wherever it can be done. What became of it
// stands in exec.Result.Account.
const (
	FoldAuto Folding = iota
	Unfolded
	FoldExact
	FoldNear
)

// UnfoldedRanks is the largest communicator that is simulated rank by rank
// where folding would not be exact.
const UnfoldedRanks = 512

// exactWork is the largest exact quotient, in slices, that FoldAuto runs beyond
// UnfoldedRanks where a near one is there: some tenths of a second.
const exactWork = 1 << 16

// folds tells whether ranks may be taken together at all: a trace tells of each,
// jitter and what is lost by chance make them different, and a rank that is gone
// stands for no other.
func (x *Executor) folds(e *engine, sink trace.Sink) bool {
	return x.cfg.Fold != Unfolded && sink == trace.Discard && e.jitter == (gpu.JitterCost{}) &&
		x.cfg.foldable() && !slices.ContainsFunc(x.cfg.Faults, func(f Fault) bool { return f.Loss > 0 || f.Down || f.Port > 0 }) &&
		x.cfg.portsAlike()
}

// portsAlike tells whether all nets are made of equally many ports, which their
// traffic then uses alike.
func (c *Config) portsAlike() bool {
	of := -1
	for i, s := range c.Systems {
		if i > 0 && s == c.Systems[i-1] {
			continue
		}
		for _, id := range s.Of(topo.NET) {
			n := len(s.Nodes[id].Net.Fused)
			if of >= 0 && n != of || !host.EqualPorts(s.Nodes[id].Net) {
				return false
			}
			of = n
		}
	}
	return true
}

// lay fills in groups and connections: of all ranks, or of those that stand
// for the others.
func (x *Executor) lay(e *engine, w *route.Table, sink trace.Sink) error {
	if x.folds(e, sink) {
		// How far off a near quotient is was seen on ideal networks.
		near := x.cfg.Fabric == nil && (x.cfg.Fold == FoldNear || x.cfg.Fold == FoldAuto && e.plan.Comm.NRanks > UnfoldedRanks)
		symmetries := x.cfg.symmetries(e.plan)
		for i, s := range symmetries {
			if near && x.skips(e.plan, s, symmetries[i+1:]) {
				continue
			}
			if done, err := e.layQuotient(w, s, near); done || err != nil {
				return err
			}
		}
	}
	if err := x.fits(e.plan); err != nil {
		return err
	}
	e.layGroups()
	if err := e.layConns(w); err != nil {
		return err
	}
	return e.layJoint(w)
}

// maxEach is how many connections are simulated one by one at most, and
// eachBytes about what each takes with its ranks' programs and its way: 1,024
// ranks that all send to all have a million, which took 16 GB.
const (
	maxEach   = 1 << 21
	eachBytes = 16 << 10
)

// fits refuses what would only end for want of memory.
func (x *Executor) fits(p *plan.Plan) error {
	n := p.NumConns()
	if n <= maxEach {
		return nil
	}
	way := "a run without --trace and --fold off, and without losses, folds what is alike"
	if x.cfg.Fabric != nil {
		way = "over a network, ranks fold where no cable can hold anything up (docs/FABRIC.md)"
	}
	return &exec.NotImplementedError{Feature: fmt.Sprintf("%v of %d ranks, each simulated by itself", p.Req.Func, p.Comm.NRanks),
		Missing: fmt.Sprintf("%d connections would take some %d GB; %s; or take fewer nodes", n, int64(n)*eachBytes>>30, way)}
}

// skips tells whether a symmetry is left alone for one that gives near results.
func (x *Executor) skips(p *plan.Plan, s *symmetry, others []*symmetry) bool {
	if s.margin > 0 || x.cfg.Fold != FoldNear && s.work(p) <= exactWork {
		return false
	}
	return slices.ContainsFunc(others, func(o *symmetry) bool { return o.margin > 0 })
}

// work is about how many slices the quotient by a symmetry runs.
func (s *symmetry) work(p *plan.Plan) int64 {
	n := int64(0)
	for _, pr := range p.Programs(s.reps[0].rank) {
		if pr.Channel == s.reps[0].channel {
			n += p.NumOps(&pr) * int64(max(1, pr.Slices))
		}
	}
	return n * int64(len(s.reps))
}

// layQuotient lays out the quotient by a symmetry; done is false where that is
// neither exact nor, where that is allowed, known to be near.
func (e *engine) layQuotient(w *route.Table, s *symmetry, near bool) (done bool, err error) {
	if near = near && s.margin > 0; !s.alike && !near {
		return false, nil
	}
	q := newQuotient(e, s)
	later, free, err := q.ways()
	if err != nil {
		return false, err
	}
	if q.exact = q.exact && free; q.exact || near {
		seen, err := q.survey(w)
		if err != nil {
			return false, err
		}
		if q.exact = q.exact && seen.same; q.exact || near {
			e.quotient, seen.later, e.nw.Folded = q, later, true
			return true, seen.declare(w)
		}
	}
	e.devs, e.sms, e.groups, e.conns = nil, nil, nil, nil
	return false, nil
}

// account tells how a run's times came about.
func (e *engine) account() exec.Account {
	a := exec.Account{Programs: len(e.groups)}
	switch q := e.quotient; {
	case q == nil:
	case q.exact:
		a.Method = exec.Folded
	default:
		a.Method, a.Margin, a.Note = exec.Near, q.margin, fmt.Sprintf("%s; %d thread groups stand for all", q.leaves, len(e.groups))
	}
	return a
}
