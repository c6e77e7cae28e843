package job

import (
	"context"

	"github.com/simccl/simccl/plan/launch"
	"github.com/simccl/simccl/sim"
	"github.com/simccl/simccl/units"
	"github.com/simccl/simccl/workload"
)

// Group is how long the calls of one group on the communicator of all ranks take
// where such groups follow each other, in CUDA graphs: the kernels that NCCL's planner
// makes of them, each at the rate at which it repeats.
func (m *Machine) Group(ctx context.Context, calls []launch.Call) (units.Time, error) {
	at, err := m.communicator(0, &workload.Comm{Name: "world"}, m.Cluster.NRanks(), nil)
	if err != nil {
		return 0, err
	}
	return m.group(ctx, at, calls)
}

// group is Group on any communicator.
func (m *Machine) group(ctx context.Context, at *communicator, calls []launch.Call) (units.Time, error) {
	l := at.comm.Launcher(calls, launch.Captured)
	kernels, err := launch.Plan(l, calls, launch.Captured)
	if err != nil {
		return 0, err
	}
	e, err := sim.New(m.config(at))
	if err != nil {
		return 0, err
	}
	var total units.Time
	for k := range kernels {
		p, err := kernels[k].Plan(l)
		if err != nil {
			return 0, err
		}
		a, err := e.Alone(ctx, located(p, at), sim.Ask{})
		if err != nil {
			return 0, err
		}
		total += a.Again
	}
	return total, nil
}
