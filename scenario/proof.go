package scenario

import (
	"errors"
	"fmt"

	"github.com/simccl/simccl/plan"
	"github.com/simccl/simccl/plan/check"
)

// maxProved bounds the ops of a plan that is proved; beyond it the proof would
// take longer than the simulation.
const maxProved = 2e5

// prove proves the plan. One that is too large for that is not refused: it is
// simulated all the same, and NotProved says why.
func (o *Outcome) prove() error {
	if ops := opsOf(o.Plan); ops > maxProved {
		o.NotProved = fmt.Sprintf("%.3g ops, more than %g", ops, float64(maxProved))
		return nil
	}
	err := check.Plan(o.Plan)
	var large *plan.UnsupportedError
	if errors.As(err, &large) {
		o.NotProved = large.Why
		return nil
	}
	o.Checked = err == nil
	return err
}

// opsOf is how many ops a plan has, judged by rank 0's.
func opsOf(p *plan.Plan) float64 {
	n := int64(0)
	for _, pr := range p.Programs(0) {
		n += p.NumOps(&pr)
	}
	return float64(n) * float64(p.Comm.NRanks)
}
