package comm

import (
	"slices"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/plan"
	"github.com/simccl/simccl/plan/launch"
	"github.com/simccl/simccl/plan/sym"
	"github.com/simccl/simccl/tuning"
)

// Group returns the kernels of a group of calls on this communicator, in the order of launch. Errors are
// those of launch.Plan.
func (c *Comm) Group(calls []launch.Call, mode launch.Mode) ([]launch.Kernel, error) {
	return launch.Plan(c.Launcher(calls, mode), calls, mode)
}

// Launcher returns the communicator in the form that the planner of groups takes, for these calls.
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

// Launched returns an operation in the form that the planner of groups takes.
func (o *Op) Launched() launch.Call {
	t := o.task()
	return launch.Call{Func: o.Func, Type: o.Type, Op: o.RedOp, Count: o.Count, Root: o.Root,
		InPlace: o.InPlace,
		Windows: t.Windows, Registered: o.Buffers != Plain, Misalign: o.Misalign}
}

// WithPolicy returns a copy of the communicator with its own CTA policy; NCCL_CTA_POLICY, if set, still
// overrides it.
func (c *Comm) WithPolicy(policy int) *Comm {
	out := *c
	if r := &out.Params.Registration; !r.PolicySet {
		r.SetPolicy(int64(policy))
	}
	return &out
}

// chooseTogether chooses algorithm and protocol for calls of a group that share them.
func (c *Comm) chooseTogether(o launch.Op) (launch.Choice, error) {
	ch, err := c.Choose(together(&o))
	return chosen(&ch), err
}

// together returns such calls as one operation of the cost model.
func together(o *launch.Op) tuning.Op {
	return tuning.Op{Func: o.Func, Count: o.Count, Type: o.Type, RedOp: o.RedOp, Pipe: o.Pipe}
}

// chosen returns a choice in the form that the planner of groups takes.
func chosen(ch *tuning.Choice) launch.Choice {
	return launch.Choice{Algo: ch.Algo, Proto: ch.Proto, Channels: ch.MaxChannels, Warps: ch.Warps}
}

// ChooseGroup returns the choice for equal collectives of a group, which share one algorithm.
func (c *Comm) ChooseGroup(calls []launch.Call) (tuning.Choice, error) {
	first := &calls[0]
	pipe := (len(calls) + c.NChannels - 1) / c.NChannels
	return c.Choose(tuning.Op{Func: first.Func, Count: first.Count * int64(len(calls)), Type: first.Type,
		RedOp: first.Op, Pipe: pipe})
}

// slowNVLS returns the value of plan.Request.SlowNVLS for all operations.
func (c *Comm) slowNVLS() bool {
	return c.Model != nil && c.Model.Bandwidth[coll.AllReduce][coll.NVLS][coll.Simple] <
		c.Params.Rules.Plan.SlowNVLS
}
