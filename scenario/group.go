package scenario

import (
	"context"
	"slices"

	"github.com/simccl/simccl/exec"
	"github.com/simccl/simccl/plan"
	"github.com/simccl/simccl/plan/launch"
	"github.com/simccl/simccl/plan/sym"
	"github.com/simccl/simccl/sim"
	"github.com/simccl/simccl/trace"
	"github.com/simccl/simccl/units"
)

// grouped reports whether several operations are launched together. Those of one rank
// are copies, each by itself.
func (r *Running) grouped() bool { return r.Spec.Workload.Group > 1 && r.Site.Comm.NRanks > 1 }

// group simulates equal operations that one NCCL group launches, and returns the time of
// one. out has the operation alone; its choice is replaced by that of the group, and its
// plan stays that of one operation.
func (r *Running) group(ctx context.Context, at Operation, out Outcome, progress func(float64)) (Outcome, error) {
	n := r.Spec.Workload.Group
	if out.Copies != nil { // each by itself (NCCL 2.28.9, enqueue.cc:1436)
		out, err := r.copies(ctx, out)
		var ends []units.Time
		for _, t := range out.Result.Finish {
			ends = append(ends, t*units.Time(n))
		}
		r.hostTimed(&out, ends, make([]*plan.Plan, n), n)
		return out, err
	}
	op := r.Op(at)
	calls, mode := slices.Repeat([]launch.Call{op.Launched()}, n), launch.Eager
	if op.Graph {
		mode = launch.Captured
	}
	c := r.Site.Comm.WithPolicy(op.CTAPolicy)
	kernels, err := c.Group(calls, mode)
	if err != nil {
		return Outcome{}, &OperationError{r.fn, at.Count, err}
	}
	var sum exec.Result
	plans := make([]*plan.Plan, len(kernels)) // nil for symmetric kernels
	for i := range kernels {
		k := &kernels[i]
		if k.Symmetric == nil {
			if plans[i], err = k.Plan(c.Launcher(calls, mode)); err != nil {
				return Outcome{}, &OperationError{r.fn, at.Count, err}
			}
		}
		res, err := r.kernel(ctx, k.Symmetric, plans[i], progress)
		if err != nil {
			return Outcome{}, err
		}
		sum.Append(&res)
	}
	ends := slices.Clone(sum.Finish)
	sum.Divide(n)
	if !r.fn.IsP2P() && kernels[0].Symmetric == nil {
		if out.Choice, err = c.ChooseGroup(calls); err != nil {
			return Outcome{}, err
		}
		out.Kernel = nil
	} else if kernels[0].Symmetric != nil {
		out.Kernel = kernels[0].Symmetric
	}
	out.Result = sum
	r.hostTimed(&out, ends, plans, n)
	return out, nil
}

// kernel simulates one kernel of a group: a symmetric one, or else that of a plan.
func (r *Running) kernel(ctx context.Context, s *sym.Launch, p *plan.Plan, progress func(float64)) (exec.Result, error) {
	cfg, err := r.Site.SimConfig(&r.Spec)
	if err != nil {
		return exec.Result{}, err
	}
	cfg.Progress = progress
	x, err := sim.New(cfg)
	if err != nil {
		return exec.Result{}, err
	}
	if s != nil {
		return x.Symmetric(ctx, s)
	}
	return x.Run(ctx, exec.One(p), trace.Discard)
}
