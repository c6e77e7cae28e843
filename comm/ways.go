package comm

import (
	"slices"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/plan"
	"github.com/simccl/simccl/plan/launch"
	"github.com/simccl/simccl/plan/peer"
	"github.com/simccl/simccl/tuning"
)

// DDA is the plan of an operation that RCCL does by kernels that read the memory of all GPUs, nil of any
// other. Operations of a group are none. Errors: a *plan.UnsupportedError.
func (c *Comm) DDA(o Op) (*peer.Plan, error) {
	if len(c.Params.Rules.Tuning.DDA) == 0 || c.NRanks == 1 || o.Count == 0 || o.Pairs != nil {
		return nil, nil
	}
	taken := c.Model.TakenByDDA(o.op())
	if !o.Func.IsP2P() {
		choice, err := c.Choose(o.op())
		if err != nil {
			return nil, nil // the plan says what is wrong
		}
		taken = choice.DDA
	}
	if !taken {
		return nil, nil
	}
	return peer.DDA(o.Func, c.NRanks, o.Count, o.Type, o.RedOp)
}

// Grouped is the communicator as operations of a group have it (tuning.Model.Grouped).
func (c *Comm) Grouped() *Comm {
	own := *c
	own.Model = c.Model.Grouped()
	return &own
}

// GroupCalls are the calls of a group as RCCL issues them: its direct AllGathers as sends to all. Errors: a
// *plan.UnsupportedError for direct ReduceScatters, whose second kernel is none of the group.
func (c *Comm) GroupCalls(calls []launch.Call) ([]launch.Call, error) {
	if len(c.Params.Rules.Tuning.Direct) == 0 || c.NRanks == 1 {
		return calls, nil
	}
	out := slices.Clone(calls)
	for i := range out {
		x := &out[i]
		if x.Func != coll.AllGather && x.Func != coll.ReduceScatter || x.Count == 0 {
			continue
		}
		choice, err := c.Choose(tuning.Op{Func: x.Func, Count: x.Count, Type: x.Type, RedOp: x.Op})
		if err != nil {
			return nil, err
		}
		switch choice.Direct {
		case tuning.DirectGather:
			x.Func, x.Same = coll.AllToAll, true
		case tuning.DirectScatter:
			_, otherwise := choice.Instead()
			return nil, &plan.UnsupportedError{What: "ReduceScatter by " + choice.Direct + " in a group",
				Why: "the kernel that adds up is launched in the middle of it; " + otherwise}
		}
	}
	return out, nil
}

// bySends makes the request of an operation that RCCL does directly, by sends to all (collectives.cc:600,
// enqueue.cc:3608 of RCCL 2.30.4): an AllToAll of one block to all, or of the blocks that a second kernel
// adds up. It reports whether RCCL does so.
func (c *Comm) bySends(r *plan.Request, choice *tuning.Choice) bool {
	switch {
	case choice.DDA || choice.Direct != tuning.DirectGather && choice.Direct != tuning.DirectScatter:
		return false
	case choice.Direct == tuning.DirectGather:
		r.Same = true
	default:
		r.Sums, r.SumBlocks, r.SumThreads = true, choice.MaxChannels, choice.Threads
		r.InPlace = false // it receives into a buffer of its own
	}
	r.Func = coll.AllToAll
	return true
}
