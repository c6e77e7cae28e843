package scenario

import (
	"cmp"
	"context"
	"errors"
	"math"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/comm"
	"github.com/simccl/simccl/internal/parallel"
	"github.com/simccl/simccl/plan"
	"github.com/simccl/simccl/trace"
	"github.com/simccl/simccl/trace/nccl"
)

// pool simulates the operations of a run side by side, each once. Its results do
// not depend on how many run at a time.
type pool struct {
	results map[Operation]*pending
	order   []*pending // those that are simulated, in order
	ask     func(*pending)
}

type pending struct {
	nth     int           // in the order of what is simulated
	share   atomic.Uint64 // of the simulation that is done, as the bits of a float64
	done    chan struct{}
	outcome Outcome
	err     error
}

// sameInPlace reports whether the operation has the same schedule in place as out
// of place: only addresses differ, which no time depends on. The others copy a
// rank's own part out of place and not in place, and one rank launches nothing in
// place.
func (r *Running) sameInPlace() bool {
	return r.Site.Comm.NRanks > 1 && r.Spec.Workload.buffers() == comm.Plain &&
		(r.fn == coll.AllReduce || r.fn == coll.ReduceScatter || r.fn == coll.Reduce)
}

// start begins to simulate every operation of the lines, in their order.
func (r *Running) start(ctx context.Context, lines []Line) *pool {
	p := &pool{results: map[Operation]*pending{}}
	var order []Operation
	for _, l := range lines {
		for _, inPlace := range []bool{false, true} {
			at := l.Operation
			at.InPlace = inPlace
			if p.results[at] != nil {
				continue
			}
			p.results[at] = &pending{nth: len(order) - 1, done: make(chan struct{})} // its twin's
			if !inPlace || !r.sameInPlace() {
				p.results[at].nth++
				order = append(order, at)
				p.order = append(p.order, p.results[at])
			}
		}
	}
	r.cores = cmp.Or(r.opt.Workers, runtime.GOMAXPROCS(0)) / max(1, len(order))
	if r.workers() == 1 { // in the goroutine that waits
		var mu sync.Mutex
		begun := 0
		p.ask = func(x *pending) {
			mu.Lock()
			defer mu.Unlock()
			for ; begun <= x.nth; begun++ {
				r.compute(ctx, p, order[begun])
			}
		}
		return p
	}
	next := make(chan Operation)
	go func() {
		defer close(next)
		for _, at := range order {
			next <- at
		}
	}()
	for range min(r.workers(), len(order)) {
		go func() {
			for at := range next {
				r.compute(ctx, p, at)
			}
		}()
	}
	return p
}

// share is the part of all operations that is done.
func (p *pool) share() float64 {
	sum := 0.0
	for _, r := range p.order {
		sum += math.Float64frombits(r.share.Load())
	}
	return sum / float64(max(1, len(p.order)))
}

// compute simulates an operation, and answers for its twin in place where that
// takes the same time.
func (r *Running) compute(ctx context.Context, p *pool, at Operation) {
	x := p.results[at]
	if x.err = ctx.Err(); x.err == nil {
		x.outcome, x.err = r.point(ctx, p, at, func(share float64) { x.share.Store(math.Float64bits(share)) })
	}
	if x.err == nil && !at.InPlace && x.outcome.Choice.Warps > 0 && r.Spec.Engine.Rivals {
		var best Outcome
		best, x.err = r.Best(ctx, at, x.outcome)
		x.outcome.Best = &best
	}
	x.share.Store(math.Float64bits(1))
	close(x.done)
	if !r.sameInPlace() {
		return
	}
	at.InPlace = true
	twin := p.results[at]
	if twin.err = x.err; twin.err == nil && at.Count > 0 {
		twin.outcome, twin.err = r.Plan(at, true)
		twin.outcome.Result, twin.outcome.Host = x.outcome.Result, x.outcome.Host
	} else {
		twin.outcome = x.outcome
	}
	close(twin.done)
}

// point simulates an operation for its row: by draws where its routes are hashed. What is in
// place has the draw of its twin out of place.
func (r *Running) point(ctx context.Context, p *pool, at Operation, progress func(float64)) (Outcome, error) {
	only := len(p.order) == 1
	if at.InPlace && r.MayDraw() {
		twin := at
		twin.InPlace = false
		x := p.results[twin] // begun before, see start
		<-x.done
		if x.err == nil && x.outcome.Draws != nil {
			return r.drawn(&x.outcome).Simulate(ctx, at, trace.Discard, nccl.Options{}, progress)
		}
	}
	h, binds, err := r.hash(ctx, at)
	if err != nil {
		return Outcome{}, err
	}
	if binds && !at.InPlace {
		return r.draw(ctx, at, h, at == r.lines[len(r.lines)-1].Operation, progress)
	}
	return r.simulateRow(ctx, at, only, progress)
}

// wait returns what became of an operation.
func (p *pool) wait(at Operation) (Outcome, error) {
	x := p.results[at]
	if p.ask != nil {
		p.ask(x)
	}
	<-x.done
	return x.outcome, x.err
}

// hopeless is how many times as slow as NCCL's choice a rival may be by the cost
// model before it is not simulated: the model's errors are smaller.
const hopeless = 3

// Best simulates an operation with every algorithm and protocol to which the
// cost model gives a time that is not hopeless, and returns the fastest. The
// choice itself takes part.
func (r *Running) Best(ctx context.Context, at Operation, chosen Outcome) (Outcome, error) {
	best := chosen
	r = r.drawn(&chosen)
	if chosen.Choice.Warps == 0 {
		return best, nil
	}
	for _, a := range coll.Algorithms() {
		for _, pr := range coll.Protocols() {
			t := chosen.Choice.Times[a][pr]
			if t <= 0 || t > hopeless*chosen.Choice.TimeUs || a == chosen.Choice.Algo &&
				pr == chosen.Choice.Proto {
				continue
			}
			o, err := r.forced(ctx, at, a, pr)
			if errors.Is(err, plan.ErrUnsupported) {
				continue
			}
			if err != nil {
				return Outcome{}, err
			}
			if o.Result.Elapsed < best.Result.Elapsed {
				best = o
			}
		}
	}
	return best, nil
}

// Bests finds the fastest choice of each operation, several at a time. Rows must
// have been called with them.
func (r *Running) Bests(ctx context.Context, ops []Operation) ([]Outcome, error) {
	out, errs := make([]Outcome, len(ops)), make([]error, len(ops))
	parallel.Each(r.workers(), len(ops), func(i int) {
		chosen, err := r.Outcome(ops[i])
		if err == nil {
			out[i], err = r.Best(ctx, ops[i], chosen)
		}
		errs[i] = err
	})
	return out, errors.Join(errs...)
}

// From so many ranks on, operations are simulated one after the other, for each
// takes hundreds of megabytes: those that send from every rank to every other one,
// or to and from a root, and others.
const (
	oneByOneSends = 1 << 15
	oneByOne      = 1 << 18
)

// workers is how many operations are simulated at a time.
func (r *Running) workers() int {
	n, rooted := r.Site.Comm.NRanks, r.fn == coll.Gather || r.fn == coll.Scatter
	if r.opt.Workers == 0 && (n >= oneByOne || n >= oneByOneSends && (rooted || r.fn == coll.AllToAll)) {
		return 1
	}
	return cmp.Or(r.opt.Workers, runtime.GOMAXPROCS(0))
}

// forced simulates an operation with a given algorithm and protocol.
func (r *Running) forced(ctx context.Context, at Operation, a coll.Algorithm, pr coll.Protocol) (Outcome,
	error) {
	pl, choice, err := r.Site.Comm.PlanAs(r.Op(at), a, pr)
	if err != nil {
		return Outcome{}, err
	}
	return r.execute(ctx, Outcome{Choice: choice, Plan: pl}, trace.Discard, nccl.Options{}, nil)
}
