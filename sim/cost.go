package sim

import (
	"fmt"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/exec"
	"github.com/simccl/simccl/plan"
	"github.com/simccl/simccl/sim/gpu"
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

// affordable refuses what would take minutes for no more insight. FoldExact and
// Unfolded run at any cost.
func (x *Executor) affordable(p *plan.Plan, c cost) error {
	if x.cfg.Fold == FoldExact || x.cfg.Fold == Unfolded {
		return nil
	}
	steps := int64(c.pieces)
	if steps <= x.afford || c.longest <= max(x.affordOps, ringOps*int64(p.Comm.NRanks)) {
		return nil
	}
	l := p.Layout(0)
	size, insist := max(l.Input, l.Output), "--fold exact"
	if x.cfg.Packets != nil {
		insist = "--fold off"
	}
	return &exec.NotImplementedError{
		Feature: fmt.Sprintf("%v of %d bytes, step by step", p.Req.Func, size),
		Missing: fmt.Sprintf("its %d steps would take some %d minutes of a processor; take a %d times "+
			"smaller size or larger chunks, or insist with %s",
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
