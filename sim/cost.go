package sim

import (
	"fmt"

	"github.com/simccl/simccl/exec"
	"github.com/simccl/simccl/units"
)

// A simulation is refused where it has more than maxSteps steps because the
// operation is large: where some program has more than maxOps ops, and that not
// only because there are many ranks, each of which makes ringOps of them. 1e7
// steps take about a minute. Bytes in a steady state add time in proportion, so
// a smaller size tells the bandwidth too.
const (
	maxSteps = 10_000_000
	maxOps   = 4096
	ringOps  = 8
)

// stepTime is about what a step takes a processor, for messages.
const stepTime = 6 * units.Microsecond

// affordable refuses what would take minutes for no more insight. FoldExact and
// Unfolded run at any cost.
func (x *Executor) affordable(e *engine) error {
	if x.cfg.Fold == FoldExact || x.cfg.Fold == Unfolded {
		return nil
	}
	p := e.jobs[0].plan
	steps, longest := int64(0), int64(0)
	for i := range e.groups {
		g := &e.groups[i]
		n := g.job.plan.NumOps(&g.pr)
		longest = max(longest, n)
		steps += n * int64(max(1, g.pr.Slices)) * int64(g.job.kernels)
	}
	if steps <= maxSteps || longest <= max(maxOps, ringOps*int64(p.Comm.NRanks)) {
		return nil
	}
	l := p.Layout(0)
	size := max(l.Input, l.Output)
	return &exec.NotImplementedError{
		Feature: fmt.Sprintf("%v of %d bytes, step by step", p.Req.Func, size),
		Missing: fmt.Sprintf("its %d steps would take some %d minutes of a processor; take a %d times smaller size or larger chunks, or insist with --fold exact",
			steps, max(1, units.Time(steps)*stepTime/(60*units.Second)), (steps+maxSteps-1)/maxSteps),
	}
}
