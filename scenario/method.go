package scenario

import (
	"context"

	"github.com/simccl/simccl/exec"
	"github.com/simccl/simccl/plan"
	"github.com/simccl/simccl/sim"
)

// Method is how Simulate would find the time of an operation, with a forecast of what that costs;
// nothing is simulated. Of a group it is that of its first kernel that has a plan. Errors are those
// of Simulate that are known by then.
func (r *Running) Method(ctx context.Context, o Operation) (exec.Account, error) {
	p, err := r.planOf(o)
	if p == nil || err != nil {
		return exec.Account{Method: exec.Formula}, err
	}
	cfg, err := r.simConfig()
	if err != nil {
		return exec.Account{}, err
	}
	cfg.Windows = &r.parts
	x, err := sim.New(cfg)
	if err != nil {
		return exec.Account{}, err
	}
	return x.Method(ctx, p)
}

// planOf is the plan that is simulated of an operation; nil where a formula has its time.
func (r *Running) planOf(o Operation) (*plan.Plan, error) {
	if o.Count == 0 || r.Spec.Engine.Fidelity == "alpha" {
		return nil, nil
	}
	out, err := r.planned(o, false, false)
	if err != nil || !r.grouped() || out.Copies != nil {
		return out.Plan, err
	}
	_, _, kernels, err := r.kernels(o)
	if err != nil {
		return nil, err
	}
	for _, p := range kernels.Plans {
		if p != nil {
			return p, nil
		}
	}
	return nil, nil
}
