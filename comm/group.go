package comm

import (
	"slices"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/plan"
	"github.com/simccl/simccl/plan/launch"
	"github.com/simccl/simccl/plan/sym"
	"github.com/simccl/simccl/tuning"
)

// Group returns the kernels of the calls of a group on this communicator, in order.
// Errors are those of launch.Plan.
func (c *Comm) Group(calls []launch.Call, mode launch.Mode) ([]launch.Kernel, error) {
	return launch.Plan(c.Launcher(calls, mode), calls, mode)
}

// Launcher is the communicator as a planner of groups takes it, for these calls.
func (c *Comm) Launcher(calls []launch.Call, mode launch.Mode) *launch.Comm {
	out := &launch.Comm{Layout: c.Layout, Choose: c.chooseTogether, Params: c.Params.Plan,
		SlowNVLS: c.slowNVLS()}
	if len(calls) > 0 && !slices.ContainsFunc(calls, func(x launch.Call) bool { return !x.Registered }) {
		out.Choose = func(o launch.Op) (launch.Choice, error) {
			ch, err := c.Choose(together(&o))
			if err == nil && c.Params.Tuning.Plugin == nil {
				c.efficient(&Op{Func: o.Func, Count: o.Count, Type: o.Type, RedOp: o.RedOp,
					Buffers: Registered, Graph: mode == launch.Captured}, &ch)
			}
			return chosen(&ch), err
		}
	}
	for i := range calls {
		if calls[i].Windows != sym.NoWindow || calls[i].Registered {
			out.Symmetric = c.Symmetric()
			out.Register = func(r *plan.Request, call *launch.Call) error {
				o := Op{Func: r.Func, Count: call.Count, Type: call.Type, RedOp: call.Op,
					InPlace: call.InPlace, Graph: mode == launch.Captured}
				switch {
				case call.Windows == sym.Both:
					o.Buffers = Windows
				case call.Registered:
					o.Buffers = Registered
				}
				return c.register(r, &o)
			}
			break
		}
	}
	return out
}

// Launched is an operation as the planner of groups takes it.
func (o *Op) Launched() launch.Call {
	t := o.task()
	return launch.Call{Func: o.Func, Type: o.Type, Op: o.RedOp, Count: o.Count, Root: o.Root,
		InPlace: o.InPlace,
		Windows: t.Windows, Registered: o.Buffers != Plain, Misalign: o.Misalign}
}

// WithPolicy is the communicator with a CTA policy of its own, where NCCL_CTA_POLICY
// does not outrank it.
func (c *Comm) WithPolicy(policy int) *Comm {
	out := *c
	if r := &out.Params.Registration; !r.PolicySet {
		r.SetPolicy(int64(policy))
	}
	return &out
}

// chooseTogether chooses for calls of a group that get one algorithm.
func (c *Comm) chooseTogether(o launch.Op) (launch.Choice, error) {
	ch, err := c.Choose(together(&o))
	return chosen(&ch), err
}

// together is the model's view of calls that get one algorithm.
func together(o *launch.Op) tuning.Op {
	return tuning.Op{Func: o.Func, Count: o.Count, Type: o.Type, RedOp: o.RedOp, Pipe: o.Pipe}
}

// chosen is a choice as the planner of groups takes it.
func chosen(ch *tuning.Choice) launch.Choice {
	return launch.Choice{Algo: ch.Algo, Proto: ch.Proto, Channels: ch.MaxChannels, Warps: ch.Warps}
}

// ChooseGroup is the choice for equal collectives of a group, which get one algorithm.
func (c *Comm) ChooseGroup(calls []launch.Call) (tuning.Choice, error) {
	first := &calls[0]
	pipe := (len(calls) + c.NChannels - 1) / c.NChannels
	return c.Choose(tuning.Op{Func: first.Func, Count: first.Count * int64(len(calls)), Type: first.Type,
		RedOp: first.Op, Pipe: pipe})
}

// slowNVLS is plan.Request.SlowNVLS of all operations.
func (c *Comm) slowNVLS() bool {
	return c.Model != nil && c.Model.Bandwidth[coll.AllReduce][coll.NVLS][coll.Simple] <
		c.Params.Rules.Plan.SlowNVLS
}
