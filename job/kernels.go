package job

import (
	"context"

	"github.com/simccl/simccl/comm"
	"github.com/simccl/simccl/exec"
	"github.com/simccl/simccl/plan"
	"github.com/simccl/simccl/plan/launch"
	"github.com/simccl/simccl/sim"
	"github.com/simccl/simccl/trace"
	"github.com/simccl/simccl/units"
	"github.com/simccl/simccl/workload"
)

// Kernels are the kernels of one NCCL group, in the order of launch. A kernel over symmetric windows has no
// plan.
type Kernels struct {
	List  []launch.Kernel
	Plans []*plan.Plan
}

// KernelsOf plans the kernels of a group of calls. Errors are those of comm.Group and
// launch.Kernel.Plan.
func KernelsOf(c *comm.Comm, calls []launch.Call, mode launch.Mode) (*Kernels, error) {
	if len(calls) > 1 {
		c = c.Grouped()
	}
	calls, err := c.GroupCalls(calls)
	if err != nil {
		return nil, err
	}
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

// Simulate returns the total of a group's kernels, one after the other: each is the mean of back-to-back
// repetitions, as nccl-tests times them (common.cu: time of all iterations divided by their number).
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

// kernels returns the kernels of a group on a communicator of the machine, and the executor that simulates
// them.
func (m *Machine) kernels(at *communicator, calls []launch.Call, mode launch.Mode) (*Kernels, *sim.Executor,
	error) {
	k, err := KernelsOf(at.comm, calls, mode)
	if err != nil {
		return nil, nil, err
	}
	for i, p := range k.Plans {
		if p != nil {
			k.Plans[i] = located(p, at)
		}
	}
	e, err := sim.New(m.config(at))
	return k, e, err
}

// Group returns the time of one group of calls on the communicator of all ranks when such groups run back to
// back in CUDA graphs: each kernel at its period of repetition, without the host and the first fill of the
// pipeline that Simulate's mean includes.
func (m *Machine) Group(ctx context.Context, calls []launch.Call) (total units.Time, err error) {
	at, err := m.communicator(0, &workload.Comm{Name: "world"}, m.Cluster.NRanks(), nil)
	if err != nil {
		return 0, err
	}
	k, e, err := m.kernels(at, calls, launch.Captured)
	if err != nil {
		return 0, err
	}
	for i := range k.List {
		if s := k.List[i].Symmetric; s != nil {
			r, err := e.Symmetric(ctx, s)
			if err != nil {
				return 0, err
			}
			total += r.Elapsed
			continue
		}
		a, err := e.Alone(ctx, k.Plans[i], sim.Ask{})
		if err != nil {
			return 0, err
		}
		total += a.Again
	}
	return total, nil
}
