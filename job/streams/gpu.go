package streams

import (
	"math"

	"github.com/simccl/simccl/workload"
)

// A GPU's SMs go to the kernels that wait for them, in the order of launch. A kernel of a call holds one SM
// per channel from its begin to its end, also while it waits for other ranks. A compute kernel holds the SMs
// that its blocks fill, or those that are free; blocks that found no SM take SMs that become free before any
// later kernel does. So a call that is launched after a kernel that fills the GPU begins when that kernel
// ends.

// gpu is the state of a rank's GPU.
type gpu struct {
	free    int32
	taken   int32     // SMs that calls' kernels hold
	queue   []arrival // kernels that wait for SMs
	compute []int32   // compute tasks that run
	ops     []int32   // tasks of the calls whose kernels run
	slow    Pace      // slowdown of the calls' kernels now
}

// Pace is the slowdown of a call's kernels by compute on the same GPU, as factors of at least 1: Kernels for
// the kernels' own work, Waits for the things they wait for (flags, fences, their own begin).
type Pace struct{ Kernels, Waits float64 }

// own is the Pace without compute: no slowdown.
var own = Pace{1, 1}

// covers reports whether p is at least as slow as q in both factors.
func (p Pace) covers(q Pace) bool { return p.Kernels >= q.Kernels && p.Waits >= q.Waits }

// or returns the slower value of both in each factor.
func (p Pace) or(q Pace) Pace {
	return Pace{math.Max(p.Kernels, q.Kernels), math.Max(p.Waits, q.Waits)}
}

// arrival is a kernel that waits for SMs: of a call, or a compute task.
type arrival struct {
	call    bool
	id      int32 // of a call: index in run.kernels; else the task
	waiting int32 // least number of SMs that it needs
}

// demand returns how many of a GPU's SMs a compute kernel's blocks fill, and in how many waves; 0 if its
// blocks are not known.
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

// admit starts the kernels at the head of the queue that get their SMs.
func (r *run) admit(rank int32) {
	g := &r.gpus[rank]
	n := 0
	for n < len(g.queue) {
		a := g.queue[n]
		if a.waiting > g.free {
			if a.call { // its first blocks take the free SMs
				g.queue[n].waiting -= g.free
				r.kernels[a.id].early += g.free
				g.taken += g.free
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

// grant gives free SMs to blocks that found none, the earliest kernels first.
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

// regrade recomputes the rates of the tasks on a GPU after a kernel began or ended.
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

// computeRate returns the rate of a compute kernel while calls run on its GPU.
func (r *run) computeRate(x *task, g *gpu, c *GPU) float64 {
	switch {
	case x.tiles:
		return float64(x.held) / float64(x.fill)
	case g.taken == 0:
		return 1
	case x.fill == 0: // taken to have many waves of blocks on all SMs
		return math.Max(1, float64(c.SMs-g.taken)) / float64(c.SMs)
	case x.held >= x.fill:
		return 1
	case x.waves <= 1:
		return 1 / (1 + math.Min(1, float64(c.Tail)/x.total))
	}
	return float64(x.waves) / float64(max(x.waves, wavesOf(x.work, max(1, x.held))))
}
