package sim

import (
	"fmt"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/plan"
	"github.com/simccl/simccl/sim/gpu"
	"github.com/simccl/simccl/sim/wire"
	"github.com/simccl/simccl/units"
)

// An operation of one rank crosses no link between GPUs: what bounds it is the
// GPU's memory, which is declared as a link that each byte crosses twice, read
// and written. 1 GiB at 4,240 GB/s takes 507 us.

// layMemory declares the memory of the one rank. What L2 holds does not reach
// device memory: the rate is that of the working set's mixture of both.
func (e *engine) layMemory(j *job) {
	w := e.nw.Table
	node, g := w.GPU(0)
	one := &e.class.One
	miss := e.class.Miss(int64(workingSet(j.plan)))
	rate := 1 / (miss/one.MemoryRate + (1-miss)/one.L2Rate)
	id := e.net.AddLink(fmt.Sprintf("node%d %s memory", node, w.Name(node, g)), wire.RateOf(rate))
	j.memory = e.net.AddRoute([]wire.Use{{Link: id, Count: 2}})
	e.jitter = gpu.JitterCost{} // it lets channels drift apart that wait for each other
}

// workingSet is what an operation of one rank touches.
func workingSet(p *plan.Plan) units.Bytes {
	l := p.Layout(0)
	if l.Shared {
		return l.Size()
	}
	return l.Input + l.Output
}

// oneRankGap is what the device takes for an operation of one rank beside its
// bytes: nothing where nothing is launched.
func (e *engine) oneRankGap(j *job) units.Time {
	switch j.plan.OneRank() {
	case plan.DeviceCopy:
		return units.FromMicros(e.class.One.CopyGap)
	case plan.OneRankKernel:
		return units.FromMicros(e.class.One.KernelGap)
	case plan.SelfSend:
		return units.FromMicros(e.class.P2PGap)
	}
	return 0
}

// sliceOverhead is what a slice of Simple costs beside its bytes. What one rank
// copies has no slices with barriers around them (onerank.cu, sendrecv.h:98).
func (e *engine) sliceOverhead(g *group) units.Time {
	if g.job.plan.OneRank() != plan.NotOneRank {
		return 0
	}
	return units.FromMicros(e.class.SliceOverhead(g.pass, int(g.pr.Workers))) / units.Time(g.spread)
}

// HostTime is the host's time for one asynchronous operation on a machine of a
// class, whose threads launch for so many GPUs each (Config.PerThread).
func HostTime(c *gpu.Class, p *plan.Plan, perThread int) units.Time {
	one := &c.One
	switch kind := p.OneRank(); {
	case kind == plan.DeviceCopy:
		return units.FromMicros(one.CopyLaunch)
	case kind == plan.NoLaunch && p.Req.Func != coll.SendRecv: // whose group is made and dropped
		return units.FromMicros(one.Call)
	}
	return units.FromMicros(c.Launch(perThread))
}
