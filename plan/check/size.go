package check

import (
	"fmt"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/plan"
)

// maxProved bounds the ops of a plan that is proved one by one; beyond it the proof would take longer than
// the simulation.
const maxProved = 2e5

// maxSent is the same for sends and receives, of which ofTransfers proves the rest at a tenth of the price.
const maxSent = 1e5

// Of an operation among others on many ranks, which each have a few ops, provedEach for each are proved, and
// at most mostProved, which take some 2 s of a processor and 1 GB: nothing else proves those.
const (
	provedEach = 8
	mostProved = 1e6
)

// tooLarge says of a plan whose proof would take too long how many ops it has and how
// many are proved at most; empty: Plan proves it in a few seconds.
func tooLarge(p *plan.Plan) string { return tooMany(p, opsOf(p)) }

func tooMany(p *plan.Plan, ops float64) string {
	most := float64(maxProved)
	if p.Req.Func.IsP2P() {
		most = maxSent
	}
	if p.Members() != nil || p.Req.Cut != nil {
		most = max(most, min(mostProved, provedEach*float64(p.Comm.NRanks)))
	}
	if ops > most {
		return fmt.Sprintf("%.3g ops, more than %g", ops, most)
	}
	return ""
}

// opsOf is how many ops a plan has, judged by its root's and another rank's. What a
// root gathers is kept sorted by address: to put in one part moves the others, a
// thousand of them in the time of an op.
func opsOf(p *plan.Plan) float64 {
	of := func(rank int32) (n float64) {
		for _, pr := range p.Programs(rank) {
			n += float64(p.NumOps(&pr))
		}
		return n
	}
	n := int32(p.Comm.NRanks)
	if p.Req.Pairs != nil {
		sum := 0.0
		for rank := range n {
			sum += of(rank)
		}
		return sum
	}
	if f := p.Req.Func; n == 1 || f != coll.Gather && f != coll.Scatter {
		return of(0) * float64(n)
	}
	ops := of(p.Req.Root) + of((p.Req.Root+1)%n)*float64(n-1)
	if p.Req.Func == coll.Gather {
		ops += float64(n) * float64(n) / 1000
	}
	return ops
}
