package main

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/simccl/simccl/plan"
	"github.com/simccl/simccl/plan/check"
)

// maxChecked bounds the ops of a plan that is proved with -c 1: beyond it the
// proof would take longer than the simulation, and the column says N/A.
const maxChecked = 2e5

// prove proves the plan. One that is too large for that is not refused: what it
// does is simulated all the same, and the column #wrong says N/A.
func (o *outcome) prove() error {
	if ops := opsOf(o.plan); ops > maxChecked {
		o.tooBig = fmt.Sprintf("%.3g ops, more than %g", ops, float64(maxChecked))
		return nil
	}
	err := check.Plan(o.plan)
	var large *plan.UnsupportedError
	if errors.As(err, &large) {
		o.tooBig = large.Why
		return nil
	}
	o.checked = err == nil
	return err
}

// unproved is a row whose plan is too large for its proof, and what of it is.
type unproved struct {
	size int64
	why  string
}

// proofNotes says why #wrong is N/A, with the largest size as the example.
func (s *sweep) proofNotes(rows int) []string {
	if len(s.unproved) == 0 {
		return nil
	}
	most := slices.MaxFunc(s.unproved, func(a, b unproved) int { return cmp.Compare(a.size, b.size) })
	return []string{fmt.Sprintf("#wrong is N/A in %d of %d rows: the proof of the plan (-c 1) is too large; that of %d B would have %s",
		len(s.unproved), rows, most.size, most.why)}
}

// opsOf is how many ops a plan has, judged by rank 0's.
func opsOf(p *plan.Plan) float64 {
	n := int64(0)
	for _, pr := range p.Programs(0) {
		n += p.NumOps(&pr)
	}
	return float64(n) * float64(p.Comm.NRanks)
}
