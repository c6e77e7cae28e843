package sim

import (
	"context"
	"math"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/exec"
	"github.com/simccl/simccl/plan"
	"github.com/simccl/simccl/sim/internal/engine"
	"github.com/simccl/simccl/sim/internal/fold"
	"github.com/simccl/simccl/sim/internal/tap"
	"github.com/simccl/simccl/trace"
	"github.com/simccl/simccl/units"
)

// A method is how an operation is simulated: which part of it runs, and how its time follows
// from that. Generators propose methods (the whole, windows of iterations, first blocks of
// rings, near quotients), and a policy chooses one before anything runs. Three questions are
// answered independently: which ranks run (sim/internal/fold), which iterations and blocks
// (window.go, long.go), and who draws jitter (draws.go).
type method struct {
	exec.Reduction
	whole  *plan.Plan
	jitter jitter
	// Of iterations that are left out: rest has the first ones and the incomplete last one, full
	// the first ones, half the first half of them, and quarter half of these. Without jitter full is
	// rest. A nil full: all iterations run; a nil quarter: full has settled.
	rest, full, half, quarter *plan.Plan
	// otherwise, where it is set, is what is done once that was tried in vain.
	instead *method
	divided bool // full and half have channels kept apart as in the whole
	byCost  bool // something is left out for its cost, jitter or not
	cost    cost
	// e and q are the whole laid out, q nil where every rank runs; e nil: not laid out yet.
	e *engine.Engine
	q *fold.Quotient
}

// times is how many times a part of a method the largest of its parts is: all fold as that one does.
func (m *method) times(p *plan.Plan) float64 {
	times := 1.0
	if m.full != nil {
		times = float64(m.full.Iterations()) / float64(max(1, p.Iterations()))
	}
	if m.Blocks.Ran > 0 {
		times *= float64(m.Blocks.Ran) / float64(max(1, p.Turns()))
	}
	return times
}

// parted reports whether iterations or blocks are left out.
func (m *method) parted() bool { return m.full != nil || m.Blocks != (exec.Part{}) }

// A proposal makes a method that may take the place of the whole; nil where it does not apply.
type proposal func(ctx context.Context, whole *method) (*method, error)

// policy is what may be done in place of simulating all of one operation.
type policy struct {
	enough    func(whole *method) bool // all of it is simulated
	tries     bool                     // all of it is tried before what takes its place
	proposals []proposal               // else the first that is fast, or the fastest of all
	refuses   bool                     // what costs too much even so
	// whole and instead say why all of it is simulated, and why it is not.
	whole, instead string
}

// decide chooses how an operation is simulated.
func (x *Executor) decide(ctx context.Context, p *plan.Plan, sink trace.Sink) (*method, error) {
	w, err := x.window(p)
	if err == nil && w != nil {
		w, err = x.agree(ctx, w)
	}
	if err != nil {
		return nil, err
	}
	whole := &method{whole: p, rest: p, jitter: x.jitters(p)}
	if w != nil {
		if whole.jitter = w.jitter; w.jitter != noJitter && sink == trace.Discard && !x.cfg.NoSkip {
			return x.choose(ctx, whole, x.drawnPolicy(w))
		}
	}
	if sink != trace.Discard && x.cfg.Trace.Periods { // jitter would keep periods from recurring
		whole.jitter = noJitter
	}
	if err := x.layWhole(ctx, whole, sink); err != nil {
		return nil, err
	}
	return x.choose(ctx, whole, x.policyOf(whole, sink))
}

// layWhole lays out an operation's representatives, or else prepares to lay out every rank.
func (x *Executor) layWhole(ctx context.Context, m *method, sink trace.Sink) (err error) {
	m.e, m.q, err = x.folded(ctx, m.whole, nil, sink, m.jitter, 1)
	return err
}

// drawnPolicy is that of an operation with jitter: w is its window.
func (x *Executor) drawnPolicy(w *method) policy {
	by := policy{
		enough:    func(whole *method) bool { return w.full == nil || x.cheap(whole, w) },
		proposals: []proposal{func(context.Context, *method) (*method, error) { return w, nil }},
		whole:     "it has no more iterations than a window",
		instead:   "no state recurs under jitter, and a window shows the mean iteration",
	}
	switch {
	case w.full != nil && x.windowMargin(w.whole) <= windowMargin:
		by.whole = "all of it takes little, and a window would be short"
	case w.full != nil:
		by.whole = "all of it takes little, and a window's margin is wide"
	case w.whole.Iterations() == 0:
		by.whole = "it is no loop of equal iterations"
	}
	return by
}

// policyOf is that of an operation whose ranks are in lockstep, or draw jitter for each piece.
func (x *Executor) policyOf(whole *method, sink trace.Sink) policy {
	p := whole.whole
	lockstep := whole.jitter == noJitter && x.mayShorten(p, sink)
	switch {
	case lockstep && !x.plain():
		return policy{enough: x.fast, proposals: []proposal{x.long, x.nearly}, refuses: true,
			whole:   "all of it takes little",
			instead: "hosts, ports or the network set ranks apart, and all of it takes long"}
	case lockstep && x.cfg.Packets == nil && !p.Req.Func.IsP2P():
		return policy{enough: x.little, tries: p.Req.Algo != coll.NVLSTree,
			proposals: []proposal{x.settling}, whole: "states that recur are counted",
			instead: "its states do not recur, and its steps are many"}
	}
	return policy{enough: func(*method) bool { return true }, refuses: whole.q == nil && x.mayRefuse(p, sink),
		whole: x.unreduced(whole, sink)}
}

// unreduced says why no iteration is left out.
func (x *Executor) unreduced(whole *method, sink trace.Sink) string {
	switch {
	case sink != trace.Discard:
		return "a trace has all of it"
	case x.cfg.NoSkip:
		return "--skip off"
	case whole.jitter != noJitter:
		return "its operations are not alone, or messages are lost"
	}
	return "states that recur are counted"
}

// mayRefuse reports whether a run of every rank is refused for its forecast: groups, unequal
// parts, ranks down and losses do not fold.
func (x *Executor) mayRefuse(p *plan.Plan, sink trace.Sink) bool {
	return (p.Members() != nil || p.Req.Pairs != nil || !x.steadyNetwork()) &&
		sink == trace.Discard && x.cfg.Fold == FoldAuto && x.cfg.Packets == nil
}

// choose takes the whole where that is enough, else the first proposal that takes at most
// nearTime, or else what costs the least.
func (x *Executor) choose(ctx context.Context, whole *method, by policy) (*method, error) {
	best := whole
	if whole.Why = by.whole; !by.enough(whole) {
		whole.Why = "all of it takes long, and no part would save half of that"
		for i, propose := range by.proposals {
			if i > 0 && best.cost.time() <= nearTime {
				break
			}
			m, err := propose(ctx, whole)
			if err != nil {
				return nil, err
			}
			if m != nil && (i == 0 || m.cost.time() < best.cost.time()) {
				best = m
				best.Why = by.instead
			}
		}
	}
	if by.tries {
		if whole.Why = by.whole; best != whole {
			whole.instead = best
			whole.Why += "; where none does in a part, that is simulated alone"
		}
		return whole, nil
	}
	if !by.refuses {
		return best, nil
	}
	if best.cost == (cost{}) {
		best.cost = x.costOf(best.whole, best.e, best.q)
	}
	return best, best.cost.refuse(best.whole)
}

// execute simulates one operation by a method.
func (x *Executor) execute(ctx context.Context, m *method, sink trace.Sink) (exec.Result, error) {
	if m.parted() {
		t, err := x.extrapolate(ctx, m)
		if err != nil {
			return exec.Result{Wrong: -1}, err
		}
		return x.resultOf(m, t.clone())
	}
	if m.e == nil {
		if err := x.layWhole(ctx, m, sink); err != nil {
			return exec.Result{Wrong: -1}, err
		}
	}
	lay := x.lay
	if m.instead != nil {
		recurs, err := x.recurs(ctx, m.instead)
		if err != nil {
			return exec.Result{Wrong: -1}, err
		}
		if !recurs {
			return x.execute(ctx, m.instead, sink)
		}
		lay = x.layOut // whose cost is not that of each step
	}
	if err := lay(m.e, m.q); err != nil {
		return exec.Result{}, err
	}
	t := tap.New(m.e, sink, x.cfg.Trace)
	if err := x.run(ctx, m.e, x.cfg.Progress); err != nil {
		if t != nil {
			t.Cut()
		}
		return exec.Result{Wrong: -1}, err
	}
	all, err := x.tallyOf(m.e, m.q)
	if err != nil {
		return exec.Result{Wrong: -1}, err
	}
	res, err := x.resultOf(m, all)
	if t != nil && err == nil {
		t.Finish(&res)
	}
	return res, err
}

// recurs reports whether states recur in the largest part of a method, and so in the whole, whose first ops
// are the same.
func (x *Executor) recurs(ctx context.Context, m *method) (bool, error) {
	p := m.rest
	if m.Blocks.Ran > 0 {
		var err error
		if p, err = p.InTurns(m.Blocks.Ran); err != nil {
			return false, err
		}
	}
	t, err := x.part(ctx, p, m)
	return err == nil && t.account.Periods > 0, err
}

// resultOf is what a tally says of one operation, and how it was found.
func (x *Executor) resultOf(m *method, t *tally) (exec.Result, error) {
	if err := x.drifted(t); err != nil {
		return exec.Result{Wrong: -1}, err
	}
	r := x.result(m.whole, t)
	r.Account = m.accounted(t.account)
	if m.whole.Req.Sums {
		x.sums(&r, &m.whole.Req)
	}
	return r, nil
}

// sums adds the kernel that reduces what an AllToAll brought (device/reduce_scatter.h:20 of RCCL 2.30.4):
// each block reads its share of all ranks' data from the GPU's own memory. It is timed as a whole.
func (x *Executor) sums(r *exec.Result, req *plan.Request) {
	bytes := req.Count * int64(req.Type.Size()) * int64(x.cfg.Comm.NRanks)
	more := units.FromMicros(x.class.LocalCopy(bytes, int64(req.SumBlocks), req.SumThreads))
	for i := range r.Finish {
		r.Finish[i] += more
	}
	was := r.Elapsed
	r.Elapsed += more
	r.AlgBW *= float64(was) / float64(r.Elapsed)
	r.BusBW *= float64(was) / float64(r.Elapsed)
}

// accounted adds to how a time was found what the method left out, and why.
func (m *method) accounted(a exec.Account) exec.Account {
	r := m.Reduction
	r.Ranks, r.Margin, r.Draws = a.Reduction.Ranks, a.Margin, m.jitter.draws()
	a.Reduction = r
	return a
}

// extrapolate simulates the parts of a method and adds what they leave out: each iteration
// lasts as long on average as those by which full is more than half.
func (x *Executor) extrapolate(ctx context.Context, m *method) (*tally, error) {
	var ran [4]*tally
	for i, p := range []*plan.Plan{m.rest, m.full, m.half, m.quarter} {
		var err error
		switch {
		case p == nil:
		case i == 1 && p == m.rest:
			ran[i] = ran[0]
		default:
			ran[i], err = x.inBlocks(ctx, m, p)
		}
		if err != nil {
			return nil, err
		}
	}
	if m.full == nil {
		return ran[0], nil
	}
	pace := 1.0
	if ran[3] != nil {
		pace = settled(ran[1], ran[2], ran[3], m.Iterations)
	}
	return m.beyond(ran[0], ran[1], ran[2], m.Iterations, 1, pace), nil
}

// inBlocks simulates a part of an operation, and of its iterations the blocks that the method
// says.
func (x *Executor) inBlocks(ctx context.Context, m *method, p *plan.Plan) (*tally, error) {
	ran := m.Blocks.Ran
	if ran == 0 || p.Turns() <= ran {
		return x.part(ctx, p, m)
	}
	var parts [2]*tally
	for i := range parts {
		short, err := p.InTurns(ran / int64(1+i))
		if err != nil {
			return nil, err
		}
		if parts[i], err = x.part(ctx, short, m); err != nil {
			return nil, err
		}
	}
	of := exec.Part{Ran: ran, Of: p.Turns()}
	return m.beyond(parts[0], parts[0], parts[1], of, max(1, p.Iterations()), 1), nil
}

// beyond adds to rest the of.Of-of.Ran parts that were not simulated. Each takes the mean of the parts that
// full has and half does not, times the pace; full and half ran of.Ran and of.Ran/2 parts. The account counts
// them times over: turns are left out in each iteration.
func (m *method) beyond(rest, full, half *tally, of exec.Part, times int64, pace float64) *tally {
	t := beyond(rest, full, half, of.Of-of.Ran, of.Ran-of.Ran/2, pace)
	t.account = m.account(rest.account, (of.Of-of.Ran)*times, t.first-rest.first)
	return t
}

// settled is how long iterations beyond full take, for one of those by which full is more than half:
// the mean of two bounds. At most they stay as long. Where buffers go on to fill, an iteration becomes
// shorter in proportion to 1/n, whose sum grows as log n: of two mean iterations, one of twice as many
// as the other, the second is half as far from the last. Where it settles at once, that is too short;
// and none is shorter than the fullest link's.
func settled(full, half, quarter *tally, of exec.Part) float64 {
	n := float64(of.Ran)
	second, first := float64(full.first-half.first)/(n/2), float64(half.first-quarter.first)/(n/4)
	least := 0.0
	for i := range full.links {
		least = max(least, float64(full.links[i].Ideal()-half.links[i].Ideal())/(n/2))
	}
	if second <= least || first <= second {
		return 1
	}
	last, more := max(least, second-(first-second)), float64(of.Of-of.Ran)
	beyond := last*more + (second-last)*(n/2)/math.Ln2*math.Log(float64(of.Of)/n)
	return (1 + beyond/(second*more)) / 2
}
