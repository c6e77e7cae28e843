package scenario

import (
	"context"
	"slices"

	"github.com/simccl/simccl/exec"
	"github.com/simccl/simccl/internal/nccltrace"
	"github.com/simccl/simccl/plan/launch"
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
	call := launch.Call{Func: r.fn, Type: at.Type, Op: at.RedOp, Count: at.Count, Root: int32(at.Root), InPlace: at.InPlace}
	calls, mode := slices.Repeat([]launch.Call{call}, n), launch.Eager
	if r.Spec.Engine.Launch == "graph" {
		mode = launch.Captured
	}
	kernels, err := r.Site.Comm.Group(calls, mode)
	if err != nil {
		return Outcome{}, &OperationError{r.fn, at.Count, err}
	}
	x, err := r.Site.Executor(&r.Spec, nccltrace.Options{}, progress)
	if err != nil {
		return Outcome{}, err
	}
	var sum exec.Result
	for i := range kernels {
		p, err := kernels[i].Plan(r.Site.Comm.Launcher(calls, mode))
		if err != nil {
			return Outcome{}, &OperationError{r.fn, at.Count, err}
		}
		res, err := x.Run(ctx, exec.One(p), trace.Discard)
		if err != nil {
			return Outcome{}, err
		}
		add(&sum, &res)
	}
	each(&sum, n)
	if !r.fn.IsP2P() {
		if out.Choice, err = r.Site.Comm.ChooseGroup(calls); err != nil {
			return Outcome{}, err
		}
	}
	out.Result = sum
	return out, nil
}

// add appends a kernel's result to those of the kernels before it.
func add(sum, r *exec.Result) {
	if sum.Links == nil {
		*sum = *r
		return
	}
	before := sum.Elapsed
	for i := range sum.Finish {
		sum.Finish[i] = before + r.Finish[i]
	}
	sum.Elapsed += r.Elapsed
	sum.Events += r.Events
	sum.Account.Programs += r.Account.Programs
	for i := range min(len(sum.Links), len(r.Links)) { // of one machine: the same links
		sum.Links[i].Bytes += r.Links[i].Bytes
		sum.Links[i].Busy += r.Links[i].Busy
	}
}

// each divides a group's result by its operations.
func each(sum *exec.Result, n int) {
	sum.Elapsed /= units.Time(n)
	for i := range sum.Links {
		sum.Links[i].Bytes /= units.Bytes(n)
		sum.Links[i].Busy /= units.Time(n)
	}
}
