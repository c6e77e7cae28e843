package sim

import (
	"context"

	"github.com/simccl/simccl/exec"
	"github.com/simccl/simccl/plan"
	"github.com/simccl/simccl/sim/internal/engine"
	"github.com/simccl/simccl/sim/wire"
	"github.com/simccl/simccl/trace"
	"github.com/simccl/simccl/units"
)

// Method is how Run would simulate one operation, with a forecast of what that costs. Nothing
// runs. Errors are those of Run that are known by then. What of a trace is not meant.
func (x *Executor) Method(ctx context.Context, p *plan.Plan) (exec.Account, error) {
	dry := *x
	dry.cfg.Wire = func() wire.Model { return &declared{} }
	// frames are needed only once queues build up
	dry.flowsOnly = x.cfg.Packets != nil && x.cfg.Packets.Hybrid
	m, err := dry.decide(ctx, p, trace.Discard)
	if err != nil {
		return exec.Account{}, err
	}
	return dry.forecast(ctx, m)
}

// forecast lays out what a method runs, and sums up its cost.
func (x *Executor) forecast(ctx context.Context, m *method) (exec.Account, error) {
	parts, err := m.runs()
	if err != nil {
		return exec.Account{}, err
	}
	var a exec.Account
	var sum exec.Cost
	for i, p := range parts {
		e, q := m.e, m.q
		if p != m.whole || e == nil {
			if e, q, err = x.folded(ctx, p, m.whole, trace.Discard, m.jitter, m.times(p)); err != nil {
				return exec.Account{}, err
			}
		}
		c := x.costOf(p, e, q)
		if q == nil {
			err = x.refuseUnlaid(p, e, c, m.instead == nil)
		} else if m.instead == nil {
			err = x.affordable(p, c)
		}
		if err != nil {
			return exec.Account{}, err
		}
		if i == 0 {
			a = account(e, q)
		}
		sum.Time += c.time()
		sum.Memory = max(sum.Memory, units.Bytes(c.memory()))
	}
	if m.parted() {
		of := max(m.Iterations.Of-m.Iterations.Ran, m.Blocks.Of-m.Blocks.Ran)
		a = m.account(a, of, 0)
	}
	m.Cost = sum
	return m.accounted(a), nil
}

// refuseUnlaid refuses a run of every rank as laying it out would.
func (x *Executor) refuseUnlaid(p *plan.Plan, e *engine.Engine, c cost, toItsEnd bool) error {
	if err := x.fits(p); err != nil {
		return err
	}
	if err := x.framed(p, int64(e.Jobs[0].Kernels)); err != nil {
		return err
	}
	if !toItsEnd {
		return nil
	}
	return x.affordable(p, c)
}

// runs lists the plans that a method simulates.
func (m *method) runs() ([]*plan.Plan, error) {
	parts := []*plan.Plan{m.rest}
	if m.full != nil && m.full != m.rest {
		parts = append(parts, m.full)
	}
	if m.full != nil {
		parts = append(parts, m.half)
	}
	if m.Blocks.Ran == 0 {
		return parts, nil
	}
	var out []*plan.Plan
	for _, p := range parts {
		for i := range int64(2) {
			short, err := p.InTurns(m.Blocks.Ran / (1 + i))
			if err != nil {
				return nil, err
			}
			out = append(out, short)
		}
	}
	return out, nil
}
