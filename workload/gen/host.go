package gen

import (
	"github.com/simccl/simccl/units"
	"github.com/simccl/simccl/workload"
)

// Graphs says what CUDA graphs launch in place of the host.
type Graphs uint8

// What is captured: nothing; layers but for what their experts compute, as the number of tokens of an
// expert is not known before (Megatron-LM's scopes attn, mamba, mlp, moe_router and moe_preprocess); a
// whole iteration.
const (
	NoGraphs Graphs = iota
	LayerGraphs
	FullGraphs
	numGraphs
)

var graphNames = [numGraphs]string{"none", "layers", "full"}

// GraphWords are the words of --cuda-graphs.
func GraphWords() []string { return graphNames[:] }

const (
	// DefaultLaunch is what the host takes for an operator of PyTorch, from Python to the launch of its
	// kernel: 31 to 35 us in the recordings of one GPU, of DDP and of experts on 4 x H200
	// (simccl replay testdata/measured/h200x4/jobs/single --host unprofiled: hostAloneUs over the kernels of
	// a step).
	DefaultLaunch = 33 * units.Microsecond
	// loopLaunch is what a further kernel takes that a loop in C++ launches, as Transformer Engine does
	// for the products of experts one by one: cudaLaunchKernel itself.
	loopLaunch = 5 * units.Microsecond
	// What a host takes for experts that a router chooses, in a pass forward and in one backward each, as
	// Megatron-Core 0.20 does it without a graph: the router with what it prepares (the choice, its loss,
	// tokens of each expert), and tokens sorted, sent and joined (preprocess, dispatch and combine). Medians
	// of 2 x H200, testdata/measured/h200x2/2026-11-30, whose host took routedLaunch for an operator.
	routeHost    = 1600 * units.Microsecond
	permuteHost  = 1080 * units.Microsecond
	routedLaunch = 23 * units.Microsecond
)

// routed reports whether tokens are sorted by their experts, so that the host asks how many each one has
// before it sends them (Megatron-LM's dropless dispatchers); a token that goes to the one expert of some rank
// needs no sorting.
func (c *Config) routed() bool { return c.TopK > 1 || c.Experts > c.EP }

// routing is what the host takes for t of the constants above.
func (g *generator) routing(t units.Time) units.Time {
	if !g.c.routed() {
		return 0
	}
	return units.Time(float64(t) * (float64(g.c.Launch) / float64(routedLaunch)))
}

// launching is what the host takes to launch a computation of so many kernels beside its products.
func (g *generator) launching(k kernel) units.Time {
	n := units.Time(k.kernels)
	if k.p.flops() > 0 || n == 0 {
		n++
	}
	return n*g.c.Launch + units.Time(k.p.times()-1)*min(loopLaunch, g.c.Launch)
}

// launches notes what the host has to do before what follows, unless a graph does it.
func (w *writer) launches(t units.Time) {
	c := w.g.c
	if c.Graphs == FullGraphs || c.Graphs == LayerGraphs && w.captured {
		return
	}
	w.pending += t
}

// launched adds the host's time for all that was launched since: what follows is launched after it. A host
// that waits goes on when the last computation has ended.
func (w *writer) launched(waits bool) {
	if w.g.c.Launch == 0 || w.g.c.Graphs == FullGraphs {
		return
	}
	add := func(t units.Time, deps []int32) {
		w.steps = append(w.steps, workload.Step{Kind: workload.Compute, Stream: workload.HostStream, Time: t,
			Deps: deps})
		w.then(int32(len(w.steps) - 1))
	}
	if w.pending > 0 {
		add(w.pending, nil)
		w.pending = 0
	}
	if waits {
		deps := w.wait
		if w.last >= 0 {
			deps = append([]int32{w.last}, deps...)
		}
		add(0, sorted(deps))
	}
}
