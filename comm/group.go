package comm

import (
	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/plan/launch"
	"github.com/simccl/simccl/tuning"
)

// Launcher is the communicator as a planner of groups takes it. symmetric is what
// decides about symmetric kernels, nil for none.
func (c *Comm) Launcher(symmetric launch.Symmetric) *launch.Comm {
	return &launch.Comm{Layout: c.Layout, Choose: c.chooseTogether, Params: c.Params.Plan, SlowNVLS: c.slowNVLS(), Symmetric: symmetric}
}

// Group returns the kernels of the calls of a group on this communicator, in order.
// Errors are those of launch.Plan.
func (c *Comm) Group(calls []launch.Call, mode launch.Mode) ([]launch.Kernel, error) {
	return launch.Plan(c.Launcher(nil), calls, mode)
}

// chooseTogether chooses for calls of a group that get one algorithm.
func (c *Comm) chooseTogether(o launch.Op) (launch.Choice, error) {
	ch, err := c.Choose(tuning.Op{Func: o.Func, Count: o.Count, Type: o.Type, RedOp: o.RedOp, Pipe: o.Pipe})
	return launch.Choice{Algo: ch.Algo, Proto: ch.Proto, Channels: ch.MaxChannels, Warps: ch.Warps}, err
}

// slowNVLS is plan.Request.SlowNVLS of all operations.
func (c *Comm) slowNVLS() bool {
	return c.Model != nil && c.Model.Bandwidth[coll.AllReduce][coll.NVLS][coll.Simple] < c.Params.Rules.Plan.SlowNVLS
}
