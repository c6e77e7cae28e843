package comm

import (
	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/plan/peer"
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
