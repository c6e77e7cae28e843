package scenario

import (
	"fmt"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/internal/nccltrace"
	"github.com/simccl/simccl/plan"
	"github.com/simccl/simccl/sim"
	"github.com/simccl/simccl/trace"
	"github.com/simccl/simccl/tuning"
	"github.com/simccl/simccl/units"
)

// callSink makes room before the simulator's events for the host's calls,
// which come first: the simulator's operation begins at zero.
type callSink struct {
	trace.Sink
	shift units.Time
	over  map[[2]int64]bool // lanes without a reserved number
}

// Track counts lanes that have no number reserved.
func (c *callSink) Track(t trace.Track) trace.TrackID {
	if nccltrace.Overflows(&t) {
		if c.over == nil {
			c.over = map[[2]int64]bool{}
		}
		c.over[[2]int64{t.Process, t.Thread}] = true
	}
	return c.Sink.Track(t)
}

// Emit moves an event behind the calls.
func (c *callSink) Emit(e *trace.Event) {
	start := e.Start
	e.Start += c.shift
	c.Sink.Emit(e)
	e.Start = start
}

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
func (r *Running) addCalls(c *callSink, at Operation, done *Outcome, opt nccltrace.Options) {
	rec := nccltrace.New(c.Sink, nccltrace.Options{Ranks: opt.Ranks, Mask: opt.Mask})
	launch := units.Time(float64(c.shift) * launchShare)
	second, ratio := runnerUp(&done.Choice)
	for rank := range r.Site.Comm.NRanks {
		if !rec.On(nccltrace.DetailOp, rank) {
			continue
		}
		place := r.Site.Cluster.Locate(rank)
		g := place.System.Nodes[place.GPU].GPU
		rec.AddRank(nccltrace.Rank{Rank: rank, Node: int(r.Site.Comm.NodeOf[rank]), GPU: g.Dev, BusID: g.BusID, Host: fmt.Sprintf("node%d", r.Site.Comm.NodeOf[rank])})
		if done.Choice.Warps > 0 {
			rec.Decision(rank, c.shift, done.Choice.Algo.LogName()+"/"+done.Choice.Proto.LogName(), second, ratio)
		}
		if c.shift == 0 {
			continue
		}
		call := nccltrace.API{Cat: "COLL_API", Name: r.fn.String(), Count: at.Count, Datatype: at.Type.String(), Root: at.Root, Stream: "0x0"}
		if r.fn.IsP2P() {
			call.Cat = "P2P_API"
		}
		rec.Call(rank, 0, c.shift, nccltrace.API{Cat: "GROUP_API", Name: "Group API", GroupID: 1, Depth: 1})
		if one := done.Plan; one != nil && (one.OneRank() == plan.DeviceCopy || one.OneRank() == plan.NoLaunch) {
			rec.Call(rank, 0, c.shift, call)
			continue
		}
		rec.Call(rank, 0, c.shift-launch, call)
		rec.Call(rank, c.shift-launch, c.shift, nccltrace.API{Cat: "KERNEL_LAUNCH", Name: "KernelLaunch", Stream: "0x0"})
	}
}

// runnerUp is the next best of a choice and how much slower it is.
func runnerUp(c *tuning.Choice) (name string, ratio float64) {
	best := float32(-1)
	for _, a := range coll.Algorithms() {
		for _, p := range coll.Protocols() {
			t := c.Times[a][p]
			if t <= 0 || a == c.Algo && p == c.Proto || best >= 0 && t >= best {
				continue
			}
			best, name = t, a.LogName()+"/"+p.LogName()
		}
	}
	if best < 0 || c.TimeUs <= 0 {
		return "", 0
	}
	return name, float64(best) / float64(c.TimeUs)
}
