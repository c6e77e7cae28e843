package job

import (
	"context"

	"github.com/simccl/simccl/comm"
	"github.com/simccl/simccl/exec"
	"github.com/simccl/simccl/plan"
	"github.com/simccl/simccl/plan/launch"
	"github.com/simccl/simccl/sim"
	"github.com/simccl/simccl/trace"
)

// Kernels are those of one NCCL group, in the order in which they run. A kernel over
// symmetric windows has no plan.
type Kernels struct {
	List  []launch.Kernel
	Plans []*plan.Plan
}

// KernelsOf plans the kernels of a group of calls. Errors are those of comm.Group and
// launch.Kernel.Plan.
func KernelsOf(c *comm.Comm, calls []launch.Call, mode launch.Mode) (*Kernels, error) {
	list, err := c.Group(calls, mode)
	if err != nil {
		return nil, err
	}
	k := &Kernels{list, make([]*plan.Plan, len(list))}
	for i, l := 0, c.Launcher(calls, mode); i < len(list); i++ {
		if list[i].Symmetric != nil {
			continue
		}
		if k.Plans[i], err = list[i].Plan(l); err != nil {
			return nil, err
		}
	}
	return k, nil
}

// Simulate is what the kernels of a group come to together: one after the other, each the
// mean of those that follow each other.
func (k *Kernels) Simulate(ctx context.Context, e *sim.Executor) (sum exec.Result, err error) {
	for i := range k.List {
		var res exec.Result
		if s := k.List[i].Symmetric; s != nil {
			res, err = e.Symmetric(ctx, s)
		} else {
			res, err = e.Run(ctx, exec.One(k.Plans[i]), trace.Discard)
		}
		if err != nil {
			return exec.Result{Wrong: -1}, err
		}
		sum.Append(&res)
	}
	return sum, nil
}
