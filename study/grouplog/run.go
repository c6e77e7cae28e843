package grouplog

import (
	"context"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/comm"
	"github.com/simccl/simccl/exec"
	"github.com/simccl/simccl/plan"
	"github.com/simccl/simccl/plan/launch"
	"github.com/simccl/simccl/sim"
	"github.com/simccl/simccl/units"
)

// run is a kernel on some GPUs: the time at which it ends on each, as a function of the times at which it can
// begin on each. The root of a broadcast does not wait for the others; in an all-reduce all wait for all.
type run struct {
	ranks []int32
	// together is the kernel's duration on each GPU if it begins on all at once. after[i][k] is the least
	// time from its begin on GPU k to its end on GPU i, if it began on all others long before; never if i
	// does not wait for k.
	together []units.Time
	after    [][]units.Time
	// free: launching the kernel costs the host no time of its own.
	free bool
}

const never = -1

// on advances the GPUs' times by the kernel. On each GPU it ends `together` after the first begin among the
// GPUs that it waits for, and at least `after` the begin of each of them.
func (r *run) on(free []units.Time) {
	ends := make([]units.Time, len(r.ranks))
	for i := range r.ranks {
		first := units.Time(-1)
		for k, other := range r.ranks {
			if r.after[i][k] == never {
				continue
			}
			ends[i] = max(ends[i], free[other]+r.after[i][k])
			if first < 0 || free[other] < first {
				first = free[other]
			}
		}
		ends[i] = max(ends[i], max(first, 0)+r.together[i])
	}
	for i, rank := range r.ranks {
		free[rank] = ends[i]
	}
}

// lockstep returns a kernel that takes t on all GPUs, each of which waits for all others.
func lockstep(ranks []int32, t units.Time) run {
	out := run{ranks: ranks}
	for range ranks {
		row := make([]units.Time, len(ranks))
		for k := range row {
			row[k] = t
		}
		out.together, out.after = append(out.together, t), append(out.after, row)
	}
	return out
}

// kernel simulates one kernel: with all ranks at once, and with each of them late.
func (m *Machine) kernel(ctx context.Context, l *Launched, k *launch.Kernel) (run, error) {
	if k.Symmetric != nil {
		x, err := sim.New(l.config(nil))
		if err != nil {
			return run{}, err
		}
		r, err := x.Symmetric(ctx, k.Symmetric)
		out := lockstep(l.Ranks, r.Elapsed)
		out.free = true // measured: graphs take no longer to launch with symmetric kernels than without
		return out, err
	}
	p, err := k.Plan(l.member.Launcher(l.calls, launch.Captured))
	if err != nil {
		return run{}, err
	}
	n := len(l.Ranks)
	out := run{ranks: l.Ranks, after: make([][]units.Time, n)}
	if out.together, err = l.ends(ctx, p, nil); err != nil {
		return out, err
	}
	longest := units.Time(0)
	for _, t := range out.together {
		longest = max(longest, t)
	}
	for late := range n {
		by := make([]units.Time, n)
		by[late] = 4 * longest
		ends, err := l.ends(ctx, p, by)
		if err != nil {
			return out, err
		}
		for i, end := range ends {
			if end -= by[late]; end <= 0 {
				end = never
			}
			out.after[i] = append(out.after[i], end)
		}
	}
	return out, nil
}

// alone returns the time of the calls of a single-rank communicator, each launched separately. A send to
// itself and its receive are one call.
func (m *Machine) alone(ctx context.Context, l *Launched) (units.Time, error) {
	sum := units.Time(0)
	for i := range l.calls {
		c := &l.calls[i]
		op := comm.Op{Func: c.Func, Count: c.Count, Type: c.Type, RedOp: c.Op, InPlace: c.InPlace}
		switch c.Func {
		case coll.Recv:
			continue
		case coll.Send:
			op.Func = coll.SendRecv
		}
		p, _, err := l.member.Plan(op)
		if err != nil {
			return 0, err
		}
		ends, err := l.ends(ctx, p, nil)
		if err != nil {
			return 0, err
		}
		sum += ends[0]
	}
	return sum, nil
}

// ends simulates a plan once, some ranks late, and returns when each rank ends.
func (l *Launched) ends(ctx context.Context, p *plan.Plan, late []units.Time) ([]units.Time, error) {
	x, err := sim.New(l.config(late))
	if err != nil {
		return nil, err
	}
	r, err := x.Run(ctx, exec.One(p), nil)
	return r.Finish, err
}

// config returns the simulator's configuration for the kernels of a communicator.
func (l *Launched) config(late []units.Time) sim.Config {
	c := l.member
	return sim.Config{Comm: c.Layout, Systems: c.Systems(), Class: c.class, Seed: 1, Launch: sim.Graph,
		Kernels: 1, Late: late, Set: l.set}
}
