package sim

import (
	"fmt"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/exec"
	"github.com/simccl/simccl/plan"
	"github.com/simccl/simccl/sim/gpu"
	"github.com/simccl/simccl/sim/internal/engine"
	"github.com/simccl/simccl/units"
)

// A simulation is refused where it has more than maxSteps steps because the
// operation is large: where some program has more than maxOps ops, and that not
// only because there are many ranks, each of which makes ringOps of them. 1e7
// steps take about a minute. Bytes in a steady state add time in proportion, so
// a smaller size shows the bandwidth too.
const (
	maxSteps = 10_000_000
	maxOps   = 4096
	ringOps  = 8
)

// stepTime is about what a step takes a processor, for messages.
const stepTime = 6 * units.Microsecond

// What frames take of a processor of 2.5 GHz, over all their hops, as seen on
// collectives of 16 to 64 ranks: from half to twice that. Beyond mostFramed a run is
// refused, but with Unfolded.
const (
	frameTime  = 1200 * units.Nanosecond
	mostFramed = 300 * units.Second
)

// framed refuses what takes too long frame by frame, with a forecast.
func (x *Executor) framed(p *plan.Plan, kernels int64) error {
	if x.cfg.Packets == nil || x.calm || x.cfg.Fold == Unfolded {
		return nil
	}
	l := p.Layout(0)
	size := float64(max(l.Input, l.Output))
	bytes := size * float64(p.Comm.NNodes)
	switch {
	case p.Req.Func.IsP2P():
		bytes = size * float64(p.Comm.NRanks) * float64(p.Comm.NNodes-1) / float64(p.Comm.NNodes)
	case p.Req.Func == coll.AllReduce:
		bytes *= 2
	}
	_, all := pieces(p)
	frames := bytes / float64(x.cfg.Packets.Frames.Payload) * float64(kernels)
	took := units.Time(frames*float64(frameTime) + float64(all*kernels)*float64(pieceTime))
	if took <= mostFramed {
		return nil
	}
	return &exec.NotImplementedError{
		Feature: fmt.Sprintf("%v of %.0f bytes over %d ranks, frame by frame", p.Req.Func, size, p.Comm.NRanks),
		Missing: fmt.Sprintf("its %.3g frames and %.3g steps would take some %s of a processor; take fewer nodes or a smaller size, write --network flow, or insist with --fold off",
			frames, float64(all*kernels), roughly(took)),
	}
}

// affordable refuses what would take minutes for no more insight. FoldExact and
// Unfolded run at any cost.
func (x *Executor) affordable(e *engine.Engine) error {
	if x.cfg.Fold == FoldExact || x.cfg.Fold == Unfolded {
		return nil
	}
	p := e.Jobs[0].Plan
	steps, longest := int64(0), int64(0)
	for i := range e.Groups {
		g := &e.Groups[i]
		n := g.Job.Plan.NumOps(&g.Program)
		longest = max(longest, n)
		steps += n * int64(max(1, g.Program.Slices)) * int64(g.Job.Kernels)
	}
	if steps <= x.afford || longest <= max(x.affordOps, ringOps*int64(p.Comm.NRanks)) {
		return nil
	}
	l := p.Layout(0)
	size, insist := max(l.Input, l.Output), "--fold exact"
	if x.cfg.Packets != nil {
		insist = "--fold off"
	}
	return &exec.NotImplementedError{
		Feature: fmt.Sprintf("%v of %d bytes, step by step", p.Req.Func, size),
		Missing: fmt.Sprintf("its %d steps would take some %d minutes of a processor; take a %d times smaller size or larger chunks, or insist with %s",
			steps, max(1, units.Time(steps)*stepTime/(60*units.Second)), (steps+x.afford-1)/x.afford, insist),
	}
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
