package sim

import (
	"context"
	"fmt"

	"github.com/simccl/simccl/coll"

	"github.com/simccl/simccl/exec"
	"github.com/simccl/simccl/plan"
	"github.com/simccl/simccl/sim/internal/engine"
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
// docs/adr/0020 has how far off that is.

// A run whose cost is at most wholeTime is simulated whole, an exact quotient up to
// exactTimes that. The parts of a longer one cost about wholeTime together, and have at
// least leastTurns turns and leastLoops iterations.
const (
	wholeTime  = units.Second
	exactTimes = 4
	leastTurns = 4
	leastLoops = 8
	// slowlyTimes is how many times wholeTime parts may cost where buffers go on to fill for
	// hundreds of iterations (settlesSlowly).
	slowlyTimes = 4
	// nearTimes is how many times wholeTime a run may cost that is shortened only by
	// simulating fewer iterations than leastLoops (fewLoops).
	nearTimes = 8
)

// long is an operation of which a part is simulated.
type long struct {
	whole             *plan.Plan
	iterations, turns int64 // that are simulated; 0 for all
	slow              bool  // settlesSlowly
	few               bool  // fewLoops iterations are simulated
}

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

// shortens reports whether a part of a plan may be simulated for all of it.
func (x *Executor) shortens(p *plan.Plan, sink trace.Sink) bool {
	return !x.plain() && x.mayShorten(p, sink)
}

// settlesSlowly reports whether a part may be simulated of a plan over plain hosts whose
// states do not recur, so that no period is counted: those of trees over NVLink switches,
// whose buffers go on to fill by a little with each iteration.
func (x *Executor) settlesSlowly(p *plan.Plan, sink trace.Sink) bool {
	return p.Req.Algo == coll.NVLSTree && x.plain() && x.mayShorten(p, sink)
}

// unaffordable decides what is simulated of a plan that settles slowly and would be
// refused for its steps; nil for all others.
func (x *Executor) unaffordable(p *plan.Plan, e *engine.Engine, q *fold.Quotient) *long {
	if x.affordable(e) == nil {
		return nil
	}
	l, _ := x.long(p, e, q)
	if l != nil && l.iterations > 0 {
		l.slow, l.iterations = true,
			max(l.iterations, x.costOf(p, e, q).fit(p.Iterations(), slowlyTimes*x.whole))
	}
	return l
}

// mayShorten reports whether a run is one whose time may be found from a part of it.
func (x *Executor) mayShorten(p *plan.Plan, sink trace.Sink) bool {
	return sink == trace.Discard && !x.cfg.NoSkip && x.cfg.Fold == FoldAuto &&
		p.Members() == nil && p.Req.Cut == nil && x.cfg.Late == nil && p.OneRank() == plan.NotOneRank &&
		x.steadyNetwork()
}

// long decides what of a plan is simulated, and what that costs; nil: all. q is what
// folds it, nil where every rank runs. What saves less than half is not worth it.
func (x *Executor) long(p *plan.Plan, e *engine.Engine, q *fold.Quotient) (*long, cost) {
	c := x.costOf(p, e, q)
	if c.time() <= x.whole || q != nil && c.time() <= exactTimes*x.whole &&
		q.Account().Method == exec.Folded {
		return nil, c
	}
	l := &long{whole: p}
	iterations, turns := max(1, p.Iterations()), p.Turns()
	if turns > 0 {
		if iterations > 3 {
			l.iterations = 2
			c = c.part(3, iterations)
		}
		if m := max(leastTurns, c.fit(turns, x.whole)); 3*m <= turns {
			l.turns = m
			c = c.part(m*3/2, turns)
		}
	} else if w := max(x.leastLoops(p), c.fit(iterations, x.whole)); 3*w <= iterations {
		l.iterations = w
		c = c.part(w*3/2, iterations)
	} else if w := x.fewLoops(p, c); w > 0 && 3*w <= iterations {
		l.iterations, l.few = w, true
		c = c.part(w*3/2, iterations)
	}
	if p.Req.Algo == coll.NVLSTree && x.cfg.Fabric != nil {
		c.times = nvlsTreeTimes
	}
	if l.iterations == 0 && l.turns == 0 {
		return nil, c
	}
	return l, c
}

// reduce finds what of a plan is simulated: all that e has, a part of its iterations
// and turns, or a near quotient in place of e where that costs too much, too.
func (x *Executor) reduce(ctx context.Context, p *plan.Plan, e *engine.Engine,
	q *fold.Quotient) (*engine.Engine, *fold.Quotient, *long, error) {
	l, c := x.long(p, e, q)
	if c.time() > nearTime && x.cfg.Fabric == nil {
		near := *x
		near.cfg.Fold = FoldNear
		ne, nq, err := near.folded(ctx, p, nil, trace.Discard, noJitter)
		if err != nil {
			return e, q, nil, err
		}
		if nq != nil && x.costOf(p, ne, nq).time() < c.time() {
			return ne, nq, nil, nil
		}
	}
	return e, q, l, c.refuse(p)
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
		return leastChunks
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
	if p.Req.Algo != coll.NVLSTree || x.cfg.Fabric == nil || c.time() <= nearTimes*x.whole {
		return 0
	}
	return max(leastLoops, depth(p)/2*2)
}

// chainDepth is how many iterations of a chain show its pace, and leastChunks how many
// chunks of every transfer.
const (
	chainDepth  = 32
	leastChunks = 4
)

// beyondParts simulates what long says and adds the rest.
func (x *Executor) beyondParts(ctx context.Context, l *long) (exec.Result, error) {
	t, err := x.inIterations(ctx, l)
	if err != nil {
		return exec.Result{Wrong: -1}, err
	}
	r := x.result(l.whole, t)
	r.Account = t.account
	return r, nil
}

// inIterations simulates a window of a plan's iterations.
func (x *Executor) inIterations(ctx context.Context, l *long) (*tally, error) {
	p := l.whole
	if l.iterations == 0 {
		return x.inTurns(ctx, l, p)
	}
	var parts [2]*tally
	for i := range parts {
		short, err := p.Shorten(l.iterations/int64(1+i), true)
		if err != nil {
			return nil, err
		}
		if short == nil {
			return x.inTurns(ctx, l, p)
		}
		if parts[i], err = x.inTurns(ctx, l, short); err != nil {
			return nil, err
		}
	}
	more := p.Iterations() - l.iterations
	t := beyond(parts[0], parts[0], parts[1], more, l.iterations-l.iterations/2)
	t.account = l.account(parts[0].account, more, t, parts[0])
	return t, nil
}

// inTurns simulates so many turns of a ring.
func (x *Executor) inTurns(ctx context.Context, l *long, p *plan.Plan) (*tally, error) {
	w := &window{whole: l.whole}
	if l.turns == 0 || p.Turns() <= l.turns {
		return x.part(ctx, p, w)
	}
	var parts [2]*tally
	for i := range parts {
		short, err := p.InTurns(l.turns / int64(1+i))
		if err != nil {
			return nil, err
		}
		if parts[i], err = x.part(ctx, short, w); err != nil {
			return nil, err
		}
	}
	more := p.Turns() - l.turns
	t := beyond(parts[0], parts[0], parts[1], more, l.turns-l.turns/2)
	t.account = l.account(parts[0].account, more*max(1, p.Iterations()), t, parts[0])
	return t, nil
}

// account says how the time of a shortened operation was found.
func (l *long) account(from exec.Account, more int64, t, simulated *tally) exec.Account {
	if from.Method == exec.Near {
		from.Margin += windowMargin
		if l.slow {
			from.Margin += slowMargin - windowMargin
		}
		from.Note = fmt.Sprintf("%s; %d more turns or iterations are given the mean time of those simulated",
			from.Note, more)
		return from
	}
	return exec.Account{Method: exec.Window, Programs: from.Programs, Margin: l.margin(), Periods: more,
		Skipped: t.first - simulated.first, ByCost: true}
}

// Margins are more than was seen: 4 % of NVLSTree, whose buffers fill slowly, 8 % of it where
// few iterations are simulated, 5 % of what settles slowly over plain hosts, where whole runs
// are too long to compare with, 12 % of sends and receives whose buffers are too small to
// saturate a link, 0.3 % otherwise, and 2 % of the rest.
const (
	nvlsTreeMargin = 0.05
	fewLoopsMargin = 0.15
	slowMargin     = 0.08
	chunkMargin    = 0.15
)

func (l *long) margin() float64 {
	if l.whole.Req.Func.IsP2P() {
		return chunkMargin
	}
	return max(windowMargin, l.settling())
}

// settling is the margin of what settles slowly.
func (l *long) settling() float64 {
	switch {
	case l.slow:
		return slowMargin
	case l.few:
		return fewLoopsMargin
	case l.whole.Req.Algo == coll.NVLSTree:
		return nvlsTreeMargin
	}
	return 0
}
