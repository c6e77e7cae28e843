package sim

import (
	"context"
	"errors"

	"github.com/simccl/simccl/exec"
	"github.com/simccl/simccl/plan"
	"github.com/simccl/simccl/sim/internal/engine"
	"github.com/simccl/simccl/sim/internal/packets"
	"github.com/simccl/simccl/trace"
)

// errStirred ends a run in which a queue became so long that frames are needed.
var errStirred = errors.New("frames are needed")

// inCalm simulates a part of a plan for all of it, where the network is a hybrid and no
// queue becomes long in that part: as without frames then. ok is false where one does,
// or where nothing is saved; then all is simulated.
func (x *Executor) inCalm(ctx context.Context, p *plan.Plan) (res exec.Result, ok bool, err error) {
	if s := x.cfg.Packets; s == nil || !s.Hybrid || len(s.Timed) > 0 || x.cfg.Fold == Unfolded {
		return res, false, nil
	}
	y := *x
	y.calm = true
	w, err := y.window(p, trace.Discard)
	switch {
	case err != nil:
		return res, false, err
	case w != nil && w.full != nil:
		res, err = y.extrapolate(ctx, w)
	case w == nil && y.shortens(p, trace.Discard):
		var e *engine.Engine
		if e, _, err = y.folded(ctx, p, nil, trace.Discard, noJitter); err != nil {
			return res, false, err
		}
		l, _ := y.long(p, e, nil)
		if l == nil {
			return res, false, nil
		}
		res, err = y.beyondParts(ctx, l)
	default:
		return res, false, nil
	}
	if errors.Is(err, errStirred) {
		return res, false, nil
	}
	return res, err == nil, err
}

// runCalm runs an engine until frames are needed.
func runCalm(ctx context.Context, e *engine.Engine) error {
	m, ok := e.Wire.(*packets.Model)
	if !ok {
		return e.Run(ctx)
	}
	ctx, end := context.WithCancel(ctx)
	defer end()
	m.OnStir(end)
	err := e.Run(ctx)
	if m.Stirred() {
		return errStirred
	}
	return err
}
