package build

import (
	"fmt"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/plan"
	"github.com/simccl/simccl/rules"
)

// oneRank is the generator for a communicator of one rank, with the action that NCCL launches.
type oneRank struct {
	plan.Generator
	launches plan.OneRank
}

// OneRank implements plan.OneRankGenerator.
func (g oneRank) OneRank() plan.OneRank { return g.launches }

// newOneRank chooses the generator and action for one rank.
func newOneRank(b base) (plan.Generator, error) {
	r := &b.req
	bytes := r.Count * int64(r.Type.Size())
	switch {
	case r.Count == 0:
	case averages(r) && r.Type.IsFloat():
		if r.Type == coll.Float8e4m3 || r.Type == coll.Float8e5m2 {
			return nil, &plan.UnsupportedError{What: fmt.Sprintf("%v of one rank with avg", r.Func),
				Why: "NCCL has no kernel of one rank for 8-bit floating point : the case needs " +
					"__CUDA_ARCH__, which host code has not" + b.comm.Rules.Aside(rules.AtOneRankFloat8)}
		}
		return oneRank{oneRankKernel{Bytes: bytes}, plan.OneRankKernel}, nil
	case r.InPlace:
	case r.Func == coll.SendRecv:
		g, err := newP2P(b)
		return oneRank{g, plan.SelfSend}, err
	default:
		return oneRank{oneRankCopy{Bytes: bytes}, plan.DeviceCopy}, nil
	}
	return oneRank{noOps{}, plan.NoLaunch}, nil
}
