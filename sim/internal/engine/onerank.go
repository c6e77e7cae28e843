package engine

import (
	"github.com/simccl/simccl/plan"
	"github.com/simccl/simccl/sim/gpu"
	"github.com/simccl/simccl/sim/wire"
	"github.com/simccl/simccl/units"
)

// An operation of one rank crosses no link between GPUs: what bounds it is the
// GPU's memory, which is declared as a link that each byte crosses twice, read
// and written. 1 GiB at 4,240 GB/s takes 507 us.

// graphCopies: of copies in CUDA graphs all sizes that are a multiple of this go at
// GraphRate, whatever lies between the buffers; the driver chooses (it does so for some
// sizes between, too; testdata/measured/h200x2/unseen/gcopy.txt).
const graphCopies units.Bytes = 512 << 20

// layMemory declares the memory of the one rank. What L2 holds does not reach
// device memory: the rate is that of the working set's mixture of both.
func (e *Engine) layMemory(j *Job, graph bool) {
	w := e.Net.Table
	node, g := w.GPU(0)
	one := &e.Class.One
	miss := e.Class.Miss(int64(workingSet(j.Plan)))
	rate := 1 / (miss/one.MemoryRate + (1-miss)/one.L2Rate)
	if l := j.Plan.Layout(0); graph && j.Plan.OneRank() == plan.DeviceCopy && l.Output%graphCopies == 0 {
		rate = min(rate, one.GraphRate)
	}
	id := e.Wire.AddLink(w.NodeName(node)+" "+w.Name(node, g)+" memory", wire.RateOf(rate))
	j.memory = e.Wire.AddRoute([]wire.Use{{Link: id, Count: 2}})
	e.Jitter = gpu.JitterCost{} // it lets channels drift apart that wait for each other
}

// workingSet is what an operation of one rank touches.
func workingSet(p *plan.Plan) units.Bytes {
	l := p.Layout(0)
	if l.Shared {
		return l.Size()
	}
	return l.Input + l.Output
}

// oneRankGap is the device's fixed cost of an operation of one rank, without its
// bytes: nothing where nothing is launched.
func (e *Engine) oneRankGap(j *Job) units.Time {
	switch j.Plan.OneRank() {
	case plan.DeviceCopy:
		return units.FromMicros(e.Class.One.CopyGap)
	case plan.OneRankKernel:
		return units.FromMicros(e.Class.One.KernelGap)
	case plan.SelfSend:
		return units.FromMicros(e.Class.P2PGap)
	}
	return 0
}

// sliceOverhead is the fixed cost of a slice of Simple. What one rank
// copies has no slices with barriers around them (onerank.cu, sendrecv.h:98).
func (e *Engine) sliceOverhead(g *Group) units.Time {
	if g.Job.Plan.OneRank() != plan.NotOneRank {
		return 0
	}
	over := e.Class.SliceOverhead(g.pass, int(g.Program.Workers))
	if g.Plan.Req.Func.IsP2P() {
		over += e.Class.Simple.P2PSlice
	}
	if e.Class.Simple.Loop > 0 {
		over += e.loopsOverhead(g)
	}
	over /= float64(g.perRound) // the barriers of all heads' pieces are one, their loops are not
	if g.inRounds() && g.Plan.Req.Algo.IsNVLS() {
		over += e.Class.Simple.Staged
	}
	return units.FromMicros(over)
}

// loopsOverhead returns gpu.Class.LoopsOverhead of a group's slice in us, cached by size in the slice's kind.
func (e *Engine) loopsOverhead(g *Group) float64 {
	find := func() float64 {
		return e.Class.LoopsOverhead(g.pass, int(g.Program.Workers), int64(g.Bytes), g.pack)
	}
	if g.kind < 0 {
		return find()
	}
	l := &e.kinds[g.kind].loops[(g.Bytes/16^g.Bytes/(16*keptSizes))%keptSizes]
	if l.size != g.Bytes+1 {
		*l = loops{g.Bytes + 1, find()}
	}
	return l.over
}
