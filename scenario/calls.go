package scenario

import (
	"fmt"

	"github.com/simccl/simccl/plan"
	"github.com/simccl/simccl/sim"
	"github.com/simccl/simccl/trace/nccl"
	"github.com/simccl/simccl/units"
)

// hostTime is what a launch costs the host; 0 for a replayed CUDA graph. p is nil
// where there is nothing to do.
func (r *Running) hostTime(p *plan.Plan) units.Time {
	perThread, err := r.Spec.Engine.GPUsPerThread(r.Site.Cluster)
	switch {
	case r.Spec.Engine.Launch == "graph" || err != nil: // Prepare has refused the latter
		return 0
	case p == nil:
		return units.FromMicros(r.Site.Class().Launch(perThread))
	}
	return sim.HostTime(r.Site.Class(), p, perThread)
}

// launchShare is the part of a launch's host time that the CUDA launch itself
// takes, at its end; the rest is NCCL's own work before it.
const launchShare = 0.5

// addCalls writes the host's side of the operation, which the simulator does
// not see: the API call, in it the group, in it the kernel launch; and the
// tuner's decision.
func (r *Running) addCalls(c *callSink, at Operation, done *Outcome, opt nccl.Options) {
	rec := nccl.New(c.Sink, nccl.Options{Ranks: opt.Ranks, Mask: opt.Mask})
	launch := units.Time(float64(c.Shift) * launchShare)
	second, ratio := runnerUp(&done.Choice)
	for rank := range r.Site.Comm.NRanks {
		if !rec.On(nccl.DetailOp, rank) {
			continue
		}
		place := r.Site.Cluster.Locate(rank)
		g := place.System.Nodes[place.GPU].GPU
		rec.AddRank(nccl.Rank{Rank: rank, Node: int(r.Site.Comm.NodeOf[rank]), GPU: g.Dev, BusID: g.BusID,
			Host: fmt.Sprintf("node%d", r.Site.Comm.NodeOf[rank])})
		if done.Choice.Warps > 0 {
			rec.Decision(rank, c.Shift, done.Choice.Algo.LogName()+"/"+done.Choice.Proto.LogName(), second,
				ratio)
		}
		if c.Shift == 0 {
			continue
		}
		call := nccl.API{Cat: "COLL_API", Name: r.fn.String(), Count: at.Count, Datatype: at.Type.String(),
			Root: at.Root, Stream: "0x0"}
		if r.fn.IsP2P() {
			call.Cat = "P2P_API"
		}
		rec.Call(rank, 0, c.Shift, nccl.API{Cat: "GROUP_API", Name: "Group API", GroupID: 1, Depth: 1})
		if one := done.Plan; one != nil && (one.OneRank() == plan.DeviceCopy ||
			one.OneRank() == plan.NoLaunch) {
			rec.Call(rank, 0, c.Shift, call)
			continue
		}
		rec.Call(rank, 0, c.Shift-launch, call)
		rec.Call(rank, c.Shift-launch, c.Shift, nccl.API{Cat: "KERNEL_LAUNCH", Name: "KernelLaunch",
			Stream: "0x0"})
	}
}
