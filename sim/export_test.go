package sim

import (
	"context"

	"github.com/simccl/simccl/exec"
	"github.com/simccl/simccl/plan"
	"github.com/simccl/simccl/trace"
	"github.com/simccl/simccl/units"
)

// Within sets how long a run may be before it is shortened.
func (x *Executor) Within(t units.Time) { x.whole = t }

// Share sets of how many pieces equivalent ranks share their jitter.
func (x *Executor) Share(pieces int64) { x.share = pieces }

// Parts is in how many parts a run was handled at most.
func (x *Executor) Parts() int { return x.parts }

// Frames forecasts how many frames a run of so many operations has, and its steps.
func (x *Executor) Frames(p *plan.Plan, kernels int64) (frames, steps float64, took units.Time) {
	frames, c, took := x.frames(p, kernels)
	return frames, c.pieces, took
}

// Settled is the pace of iterations beyond those of a window of so many, which ended at a time, half
// and a quarter of them at others.
func Settled(ran, of int64, full, half, quarter units.Time) float64 {
	return settled(&tally{first: full}, &tally{first: half}, &tally{first: quarter},
		exec.Part{Ran: ran, Of: of})
}

// InPlaceOf proposes some iterations of an operation over plain hosts.
func (x *Executor) InPlaceOf(p *plan.Plan) (exec.Reduction, error) {
	whole := &method{whole: p, rest: p}
	if err := x.layWhole(context.Background(), whole, trace.Discard); err != nil || x.little(whole) {
		return exec.Reduction{}, err
	}
	m, err := x.settling(context.Background(), whole)
	if m == nil {
		return exec.Reduction{}, err
	}
	return m.Reduction, err
}
