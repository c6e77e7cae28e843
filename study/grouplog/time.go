package grouplog

import (
	"context"
	"fmt"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/plan/launch"
	"github.com/simccl/simccl/units"
)

// time returns the device time of a group within a CUDA graph of many, launched on one stream per GPU: the
// kernels of a GPU run in order, and a kernel of several GPUs begins when all are ready.
func (m *Machine) time(ctx context.Context, g *Group) (units.Time, error) {
	launched, err := m.launch(g, launch.Captured)
	if err != nil {
		return 0, err
	}
	var runs []run
	for i := range launched {
		l := &launched[i]
		if len(l.Ranks) == 1 {
			t, err := m.alone(ctx, l)
			if err != nil {
				return 0, fmt.Errorf("group %d, rank %d: %w", g.Number, l.Ranks[0], err)
			}
			runs = append(runs, lockstep(l.Ranks, t))
			continue
		}
		for k := range l.Kernels {
			r, err := m.kernel(ctx, l, &l.Kernels[k])
			if err != nil {
				return 0, fmt.Errorf("group %d, kernel %d of ranks %v: %w", g.Number, k, l.Ranks, err)
			}
			runs = append(runs, r)
		}
	}
	launch := units.FromMicros(m.site.Class().Works.GraphLaunch)
	return replay(m.site.Comm.NRanks, g.repeats(m.site.Comm.NRanks), launch, runs), nil
}

// set returns the number of bytes of the buffers that a rank of n uses in a group; the graph of groups.cu
// repeats the group in the same buffers.
func (g *Group) set(n int) (bytes int64) {
	for i := range g.Tasks {
		t := &g.Tasks[i]
		one := t.Count * int64(t.Type.Size())
		switch t.Func {
		case coll.AllGather, coll.ReduceScatter:
			bytes += one * int64(n+1)
		case coll.AllToAll:
			bytes += 2 * one * int64(n)
		default:
			bytes += 2 * one
		}
	}
	return bytes
}

// repeats returns the number of groups in the graph that groups.cu records: fewer for larger groups.
func (g *Group) repeats(n int) int {
	bytes := int64(0)
	for i := range g.Tasks {
		t := &g.Tasks[i]
		bytes += (t.Count*int64(t.Type.Size())*int64(n) + 511) / 512 * 512
	}
	switch {
	case bytes > 256<<20:
		return 2
	case bytes > 16<<20:
		return 5
	}
	return 20
}

// replay returns the time of one group in graphs of `repeats` groups, one graph per GPU, which a single
// thread launches in turn; launch is its time per kernel. A GPU's time is from the launch of its graph to the
// end of its last kernel; the longest one counts.
func replay(n, repeats int, launch units.Time, runs []run) units.Time {
	begin, free := make([]units.Time, n), make([]units.Time, n)
	kernels := make([]int, n)
	for i := range runs {
		for _, r := range runs[i].ranks {
			if !runs[i].free {
				kernels[r]++
			}
		}
	}
	for r := 1; r < n; r++ {
		begin[r] = begin[r-1] + launch*units.Time(kernels[r-1]*repeats)
		free[r] = begin[r]
	}
	longest := units.Time(0)
	for range repeats {
		for i := range runs {
			runs[i].on(free)
			for _, r := range runs[i].ranks {
				longest = max(longest, free[r]-begin[r])
			}
		}
	}
	return longest / units.Time(repeats)
}
