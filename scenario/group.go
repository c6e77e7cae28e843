package scenario

import (
	"context"
	"slices"

	"github.com/simccl/simccl/comm"
	"github.com/simccl/simccl/job"
	"github.com/simccl/simccl/plan"
	"github.com/simccl/simccl/plan/launch"
	"github.com/simccl/simccl/sim"
	"github.com/simccl/simccl/units"
)

// grouped reports whether several operations are launched together. Those of one rank
// are copies, each by itself.
func (r *Running) grouped() bool { return r.Spec.Workload.Group > 1 && r.Site.Comm.NRanks > 1 }

// group simulates equal operations that one NCCL group launches, and returns the time of
// one. out has the operation alone; its choice is replaced by that of the group, and its
// plan stays that of one operation.
func (r *Running) group(ctx context.Context, at Operation, out Outcome, progress func(float64)) (Outcome,
	error) {
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
	c, calls, kernels, err := r.kernels(at)
	if err != nil {
		return Outcome{}, err
	}
	x, err := r.executor(progress)
	if err != nil {
		return Outcome{}, err
	}
	sum, err := kernels.Simulate(ctx, x)
	if err != nil {
		return Outcome{}, err
	}
	ends := slices.Clone(sum.Finish)
	sum.Divide(n)
	if !r.fn.IsP2P() && kernels.List[0].Symmetric == nil {
		if out.Choice, err = c.ChooseGroup(calls); err != nil {
			return Outcome{}, err
		}
		out.Kernel = nil
	} else if kernels.List[0].Symmetric != nil {
		out.Kernel = kernels.List[0].Symmetric
	}
	out.Result = sum
	r.hostTimed(&out, ends, kernels.Plans, n)
	return out, nil
}

// executor simulates the Spec's kernels.
func (r *Running) executor(progress func(float64)) (*sim.Executor, error) {
	cfg, err := r.simConfig()
	if err != nil {
		return nil, err
	}
	cfg.Progress, cfg.Windows = progress, &r.parts
	return sim.New(cfg)
}

// kernels plans those of a group of equal operations, with the communicator and its calls.
func (r *Running) kernels(at Operation) (*comm.Comm, []launch.Call, *job.Kernels, error) {
	op := r.Op(at)
	calls, mode := slices.Repeat([]launch.Call{op.Launched()}, r.Spec.Workload.Group), launch.Eager
	if op.Graph {
		mode = launch.Captured
	}
	c := r.Site.Comm.WithPolicy(op.CTAPolicy)
	k, err := job.KernelsOf(c, calls, mode)
	if err != nil {
		return nil, nil, nil, &OperationError{r.fn, at.Count, err}
	}
	return c, calls, k, nil
}
