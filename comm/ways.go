package comm

import (
	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/plan"
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
	if o.Func < coll.NumCollFuncs {
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

// bySends makes the request of an operation that RCCL does directly, by sends to all (collectives.cc:600,
// enqueue.cc:3608 of RCCL 2.30.4): an AllToAll of one block to all, or of the blocks that a second kernel adds
// up. It reports whether RCCL does so.
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
