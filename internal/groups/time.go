package groups

import (
	"context"
	"fmt"

	"github.com/simccl/simccl/exec"
	"github.com/simccl/simccl/plan/launch"
	"github.com/simccl/simccl/sim"
	"github.com/simccl/simccl/units"
)

// Time is the device time of a group in a CUDA graph of many, each launched on one
// stream a GPU: kernels of a GPU follow each other, and one of several GPUs begins
// when all are ready.
func (m *Machine) Time(ctx context.Context, g *Group) (units.Time, error) {
	launched, err := m.launch(g, launch.Captured)
	if err != nil {
		return 0, err
	}
	var runs []run
	for i := range launched {
		l := &launched[i]
		for k := range l.Kernels {
			t, err := m.kernel(ctx, l, &l.Kernels[k])
			if err != nil {
				return 0, fmt.Errorf("group %d, kernel %d of ranks %v: %w", g.Number, k, l.Ranks, err)
			}
			runs = append(runs, run{l.Ranks, t})
		}
	}
	return period(m.site.Comm.NRanks, runs), nil
}

// run is a kernel on some GPUs.
type run struct {
	ranks []int32
	time  units.Time
}

// warm is how many groups go before the one that is timed, so that GPUs are as far
// apart as they come to be.
const warm = 8

// period is the time from one group to the next.
func period(n int, runs []run) units.Time {
	free := make([]units.Time, n)
	var before, end units.Time
	for range warm {
		before = end
		for i := range runs {
			var at units.Time
			for _, r := range runs[i].ranks {
				at = max(at, free[r])
			}
			for _, r := range runs[i].ranks {
				free[r] = at + runs[i].time
				end = max(end, free[r])
			}
		}
	}
	return end - before
}

// kernel simulates one kernel.
func (m *Machine) kernel(ctx context.Context, l *Launched, k *launch.Kernel) (units.Time, error) {
	if k.Symmetric != nil {
		return units.FromMicros(float64(k.Symmetric.TimeUs)), nil
	}
	p, err := k.Plan(l.member.Launcher(nil))
	if err != nil {
		return 0, err
	}
	x, err := sim.New(sim.Config{Comm: l.member.Layout, Systems: l.member.Systems(), Class: l.member.class, Seed: 1, Launch: sim.Graph})
	if err != nil {
		return 0, err
	}
	r, err := x.Run(ctx, exec.One(p), nil)
	return r.Elapsed, err
}
