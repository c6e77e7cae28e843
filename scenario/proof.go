package scenario

import (
	"errors"

	"github.com/simccl/simccl/plan"
	"github.com/simccl/simccl/plan/check"
)

// prove proves the plan, a large one by the parts that the others repeat. What cannot
// be proved so is not refused: it is simulated all the same, and NotProved says why.
func (o *Outcome) prove(proofs *check.Proofs) error {
	var err error
	if o.NotProved, err = proofs.Parts(o.Plan); o.NotProved != "" {
		return nil
	}
	var large *plan.UnsupportedError
	if errors.As(err, &large) {
		o.NotProved = large.Why
		return nil
	}
	o.Checked = err == nil
	return err
}
