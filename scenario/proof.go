package scenario

import (
	"errors"
	"fmt"

	"github.com/simccl/simccl/plan"
)

// prove proves NCCL's plan of an operation, a large one by the parts that the others repeat,
// unless the Spec forbids it. What cannot be proved so is not refused: it is simulated all the
// same, and NotProved says why.
func (r *Running) prove(o Operation, out *Outcome) error {
	if out.hierarchy != nil && !r.Spec.Engine.NoProof {
		return r.proveHierarchy(o, out)
	}
	if r.Spec.Engine.NoProof || out.Plan == nil || out.OfSchedule || !out.Plan.DataDefined() {
		return nil
	}
	why, err := r.proofs.Parts(out.Plan)
	var large *plan.UnsupportedError
	if why == "" && errors.As(err, &large) {
		why = large.Why
	}
	if out.NotProved = why; why == "" && err != nil {
		*out = Outcome{}
		return fmt.Errorf("%s of %d elements: %w", r.fn.TestName(), o.Count, err)
	}
	out.Checked = why == ""
	return nil
}
