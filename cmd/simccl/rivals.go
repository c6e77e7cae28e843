package main

import (
	"context"
	"errors"
	"runtime"
	"sync"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/plan"
	"github.com/simccl/simccl/trace"
	"github.com/simccl/simccl/trace/nccltrace"
	"github.com/simccl/simccl/tuning"
)

// hopeless is how many times as slow as the choice a rival may be by the cost
// model before it is not simulated: the model errs by less.
const hopeless = 3

// best simulates an operation with every algorithm and protocol to which the
// cost model gives a time that is not hopeless, and returns the fastest; the
// choice itself is one of them, and the answer where nothing is chosen.
func (s *sweep) best(ctx context.Context, p point, chosen outcome) (outcome, error) {
	best := chosen
	if chosen.choice.Warps == 0 {
		return best, nil
	}
	for _, a := range coll.Algorithms() {
		for _, pr := range coll.Protocols() {
			t := chosen.choice.Times[a][pr]
			if t <= 0 || t > hopeless*chosen.choice.TimeUs || a == chosen.choice.Algo && pr == chosen.choice.Proto {
				continue
			}
			o, err := s.forced(ctx, p, a, pr)
			if errors.Is(err, plan.ErrUnsupported) {
				continue
			}
			if err != nil {
				return outcome{}, err
			}
			if o.result.Elapsed < best.result.Elapsed {
				best = o
			}
		}
	}
	return best, nil
}

// forced simulates an operation with an algorithm and protocol of its own.
func (s *sweep) forced(ctx context.Context, p point, a coll.Algorithm, pr coll.Protocol) (outcome, error) {
	pl, choice, err := s.m.comm.PlanAs(p.operation(s.fn), a, pr)
	if err != nil {
		return outcome{}, err
	}
	return s.execute(ctx, outcome{choice: choice, plan: pl}, trace.Discard, nccltrace.Options{}, nil)
}

// bests finds the best of every point, several at a time.
func (s *sweep) bests(ctx context.Context, points []point) ([]outcome, error) {
	out, errs := make([]outcome, len(points)), make([]error, len(points))
	var wg sync.WaitGroup
	next := make(chan int)
	for range min(runtime.GOMAXPROCS(0), len(points)) {
		wg.Go(func() {
			for i := range next {
				chosen, err := s.pool.wait(points[i])
				if err == nil {
					out[i], err = s.best(ctx, points[i], chosen)
				}
				errs[i] = err
			}
		})
	}
	for i := range points {
		next <- i
	}
	close(next)
	wg.Wait()
	return out, errors.Join(errs...)
}

// label names a choice as NCCL's log does.
func label(c *tuning.Choice) string { return c.Algo.LogName() + "/" + c.Proto.LogName() }
