package main

import (
	"fmt"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/plan"
	"github.com/simccl/simccl/sim"
	"github.com/simccl/simccl/trace"
	"github.com/simccl/simccl/trace/nccltrace"
	"github.com/simccl/simccl/tuning"
	"github.com/simccl/simccl/units"
)

// callSink makes room before what the simulator tells for the host's calls,
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
func (s *sweep) hostTime(p *plan.Plan) units.Time {
	switch {
	case s.flags.graphs() > 0:
		return 0
	case p == nil:
		return units.FromMicros(s.m.class.Launch(s.perThread))
	}
	return sim.HostTime(&s.m.class, p, s.perThread)
}

// launchShare is the part of a launch's host time that the CUDA launch itself
// takes, at its end; the rest is NCCL's own work before it.
const launchShare = 0.5

// tellCalls writes the host's side of the operation, which the simulator does
// not see: the API call, in it the group, in it the kernel launch; and the
// tuner's decision.
func (s *sweep) tellCalls(c *callSink, p point, done *outcome, opt nccltrace.Options) {
	rec := nccltrace.New(c.Sink, nccltrace.Options{Ranks: opt.Ranks, Mask: opt.Mask})
	launch := units.Time(float64(c.shift) * launchShare)
	second, ratio := runnerUp(&done.choice)
	for r := range s.m.comm.NRanks {
		if !rec.On(nccltrace.DetailOp, r) {
			continue
		}
		at := s.m.cluster.Locate(r)
		g := at.System.Nodes[at.GPU].GPU
		rec.AddRank(nccltrace.Rank{Rank: r, Node: int(s.m.comm.NodeOf[r]), GPU: g.Dev, BusID: g.BusID, Host: fmt.Sprintf("node%d", s.m.comm.NodeOf[r])})
		if done.choice.Warps > 0 {
			rec.Decision(r, c.shift, done.choice.Algo.LogName()+"/"+done.choice.Proto.LogName(), second, ratio)
		}
		if c.shift == 0 {
			continue
		}
		call := nccltrace.API{Cat: "COLL_API", Name: s.fn.String(), Count: p.count, Datatype: p.typ.String(), Root: p.root, Stream: "0x0"}
		if s.fn.IsP2P() {
			call.Cat = "P2P_API"
		}
		rec.Call(r, 0, c.shift, nccltrace.API{Cat: "GROUP_API", Name: "Group API", GroupID: 1, Depth: 1})
		if one := done.plan; one != nil && (one.OneRank() == plan.DeviceCopy || one.OneRank() == plan.NoLaunch) {
			rec.Call(r, 0, c.shift, call)
			continue
		}
		rec.Call(r, 0, c.shift-launch, call)
		rec.Call(r, c.shift-launch, c.shift, nccltrace.API{Cat: "KERNEL_LAUNCH", Name: "KernelLaunch", Stream: "0x0"})
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
