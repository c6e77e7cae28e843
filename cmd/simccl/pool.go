package main

import (
	"context"
	"math"
	"runtime"
	"slices"
	"sync/atomic"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/trace"
	"github.com/simccl/simccl/trace/nccltrace"
)

// pool simulates the points of a sweep side by side, each once. What it
// computes does not depend on how many run at a time.
type pool struct {
	results map[point]*result
	order   []*result // of the points that are simulated
}

type result struct {
	share   atomic.Uint64 // how far its simulation is, as the bits of a float64
	done    chan struct{}
	outcome outcome
	err     error
}

// sameInPlace tells operations whose schedule is the same in place and not:
// only the addresses differ, which no time depends on. Others copy a rank's own
// part, or not, and one rank launches nothing in place.
func (s *sweep) sameInPlace() bool {
	return s.m.comm.NRanks > 1 && (s.fn == coll.AllReduce || s.fn == coll.ReduceScatter || s.fn == coll.Reduce)
}

// start begins to simulate every point of the lines, in their order.
func (s *sweep) start(ctx context.Context, lines []line) *pool {
	p := &pool{results: map[point]*result{}}
	var order []point
	for _, l := range lines {
		for _, inPlace := range []bool{false, true} {
			at := l.point
			at.inPlace = inPlace
			if p.results[at] == nil {
				p.results[at] = &result{done: make(chan struct{})}
				if !inPlace || !s.sameInPlace() {
					order = append(order, at)
					p.order = append(p.order, p.results[at])
				}
			}
		}
	}
	next := make(chan point)
	go func() {
		defer close(next)
		for _, at := range order {
			next <- at
		}
	}()
	for range min(runtime.GOMAXPROCS(0), len(order)) {
		go func() {
			for at := range next {
				s.compute(ctx, p, at)
			}
		}()
	}
	return p
}

// reached is the part of all points that is done.
func (p *pool) reached() float64 {
	sum := 0.0
	for _, r := range p.order {
		sum += math.Float64frombits(r.share.Load())
	}
	return sum / float64(max(1, len(p.order)))
}

// compute simulates a point, and with it its twin in place if that takes the
// same time.
func (s *sweep) compute(ctx context.Context, p *pool, at point) {
	r := p.results[at]
	if r.err = ctx.Err(); r.err == nil {
		r.outcome, r.err = s.simulate(ctx, at, trace.Discard, nccltrace.Options{})
	}
	if r.err == nil && !at.inPlace && r.outcome.choice.Warps > 0 && slices.ContainsFunc(s.columns, func(c column) bool { return c.rivals }) {
		var best outcome
		best, r.err = s.best(ctx, at, r.outcome)
		r.outcome.best = &best
	}
	close(r.done)
	if !s.sameInPlace() {
		return
	}
	at.inPlace = true
	twin := p.results[at]
	if twin.err = r.err; twin.err == nil && at.count > 0 {
		twin.outcome, twin.err = s.plan(at, true)
		twin.outcome.result = r.outcome.result
	} else {
		twin.outcome = r.outcome
	}
	close(twin.done)
}

// wait returns what became of a point.
func (p *pool) wait(at point) (outcome, error) {
	r := p.results[at]
	<-r.done
	return r.outcome, r.err
}
