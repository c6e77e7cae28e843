package scenario

import (
	"errors"

	"github.com/simccl/simccl/plan"
	"github.com/simccl/simccl/plan/check"
)

// prove proves the plan. One that is too large for that is not refused: it is
// simulated all the same, and NotProved says why.
func (o *Outcome) prove() error {
	if o.NotProved = check.TooLarge(o.Plan); o.NotProved != "" {
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
