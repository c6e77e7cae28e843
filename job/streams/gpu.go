package streams

import (
	"math"

	"github.com/simccl/simccl/workload"
)

// A GPU's SMs go to the kernels that wait for them, in the order in which they
// were launched. A kernel of a call holds an SM a channel from its begin to its
// end, also while it waits for other ranks. A compute kernel holds what its blocks
// fill, or what is left; blocks that found no SM take those that others give back
// before any kernel that was launched later. So a call that is launched behind a
// kernel that fills the GPU begins when that kernel ends.

// gpu is the state of a rank's GPU.
type gpu struct {
	free    int32
	calls   int32     // kernels of calls that hold SMs
	queue   []arrival // kernels that wait for SMs
	compute []int32   // tasks that run
	ops     []int32   // tasks of the calls whose kernels run
	slow    Pace      // of the calls' kernels now
}

// Pace is by how much longer a call's kernels take beside compute: what they do, and what
// they wait for, flags, fences and their own begin.
type Pace struct{ Kernels, Waits float64 }

// own is the pace without compute.
var own = Pace{1, 1}

// covers reports whether p is no faster than q in either.
func (p Pace) covers(q Pace) bool { return p.Kernels >= q.Kernels && p.Waits >= q.Waits }

// or is the slower of both in each.
func (p Pace) or(q Pace) Pace {
	return Pace{math.Max(p.Kernels, q.Kernels), math.Max(p.Waits, q.Waits)}
}

// arrival is a kernel that waits: of a call, or a compute task.
type arrival struct {
	call    bool
	id      int32 // of a call: in run.kernels; else the task
	waiting int32 // SMs that it needs at least
}

// demand is how many SMs a compute kernel's blocks fill, and in how many waves on
// so many SMs; 0 where its blocks are not known.
func demand(w *workload.Work, sms int32) (fill, waves int32) {
	if w == nil || w.Blocks <= 0 {
		return 0, 0
	}
	k := max(1, w.PerSM)
	fill = min(sms, (w.Blocks+k-1)/k)
	return fill, wavesOf(w, sms)
}

func wavesOf(w *workload.Work, sms int32) int32 {
	k := max(1, w.PerSM) * max(1, sms)
	return (w.Blocks + k - 1) / k
}

// admit begins the kernels that wait and have their SMs.
func (r *run) admit(rank int32) {
	g := &r.gpus[rank]
	n := 0
	for n < len(g.queue) {
		a := g.queue[n]
		if a.waiting > g.free {
			if a.call { // its blocks take what there is
				g.queue[n].waiting -= g.free
				r.kernels[a.id].early += g.free
				g.free = 0
			}
			break
		}
		n++
		if a.call {
			r.beginKernel(a.id)
		} else {
			r.beginCompute(a.id)
		}
	}
	if n > 0 {
		g.queue = g.queue[:copy(g.queue, g.queue[n:])]
	}
}

// shared reports whether a rank's GPU has SMs to share.
func (r *run) shared(rank int32) bool { return r.in.GPUs != nil && r.in.GPUs[rank].SMs > 0 }

// arrive queues a kernel on its GPU.
func (r *run) arrive(rank int32, a arrival) {
	g := &r.gpus[rank]
	g.queue = append(g.queue, a)
	r.admit(rank)
}

// grant gives blocks that found no SM those that are free, first kernels first.
func (r *run) grant(rank int32) {
	g := &r.gpus[rank]
	for _, t := range g.compute {
		x := &r.tasks[t]
		if x.tiles {
			r.beginTiles(t)
			continue
		}
		if more := min(x.fill-x.held, g.free); more > 0 {
			x.held += more
			g.free -= more
		}
	}
}

// regrade finds the rates of what runs on a GPU after a kernel began or ended.
func (r *run) regrade(rank int32) {
	if !r.shared(rank) {
		return
	}
	g, c := &r.gpus[rank], &r.in.GPUs[rank]
	busy, traffic := 0.0, 0.0
	for _, t := range g.compute {
		x := &r.tasks[t]
		rate := r.computeRate(x, g, c)
		if x.bound != rate {
			x.bound = rate
			if !x.tiles {
				r.fluid.change(t)
			}
		}
		if x.work == nil || x.fill == 0 {
			busy = 1
			continue
		}
		busy += float64(x.held) / float64(c.SMs)
		if c.Memory > 0 && x.total > 0 {
			traffic += float64(x.work.Bytes) * 1e3 / x.total / c.Memory * rate
		}
	}
	busy, traffic = float64(c.Busy*math.Min(1, busy)), math.Min(1, traffic)
	slow := Pace{1 + busy + float64(c.Traffic*traffic), 1 + busy + float64(c.Wait*traffic)}
	old := g.slow
	if slow == old {
		return
	}
	g.slow = slow
	if r.in.Backend != nil {
		r.in.Backend.Slow(rank, slow)
		return
	}
	for _, t := range g.ops {
		o := &r.ops[r.tasks[t].op]
		switch {
		case slow.covers(o.slow):
			o.slow = slow
		case old.Kernels == o.slow.Kernels || old.Waits == o.slow.Waits:
			o.slow, o.stale = o.slow.or(slow), true
		default:
			continue
		}
		r.fluid.change(t)
	}
}

// computeRate is a compute kernel's rate beside the calls of its GPU.
func (r *run) computeRate(x *task, g *gpu, c *GPU) float64 {
	switch {
	case x.tiles:
		return float64(x.held) / float64(x.fill)
	case g.calls == 0:
		return 1
	case x.fill == 0:
		return 1 / math.Max(1, c.Unknown)
	case x.held >= x.fill:
		return 1
	case x.waves <= 1:
		return 1 / (1 + math.Min(1, float64(c.Tail)/x.total))
	}
	return float64(x.waves) / float64(max(x.waves, wavesOf(x.work, max(1, x.held))))
}
