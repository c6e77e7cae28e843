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

// errNeedsFrames ends a run with flows in which a queue became so long that frames are needed.
var errNeedsFrames = errors.New("frames are needed")

// hybrid simulates one operation where the network is a hybrid. As long as no queue
// becomes so long that a switch acts on it, all messages are flows, and what is simulated
// in part without frames is so here. Where one does, all of the operation goes
// frame by frame from its begin: which frames are marked follows from their numbers at a
// port, and a time that depends on marks is another one if only some are simulated.
func (x *Executor) hybrid(ctx context.Context, p *plan.Plan, sink trace.Sink) (exec.Result, error) {
	y := *x
	y.flowsOnly = true
	if sink != trace.Discard { // only of a run that is known to be calm to its end
		y.cfg.Progress = nil
	}
	res, err := y.single(ctx, p, trace.Discard)
	switch {
	case errors.Is(err, errNeedsFrames):
		y.flowsOnly, y.cfg.Progress = false, x.cfg.Progress
		set := *x.cfg.Packets
		set.Hybrid = false
		y.cfg.Packets = &set
	case err != nil || sink == trace.Discard:
		return res, err
	}
	return y.single(ctx, p, sink)
}

// stopWhenFramed ends the run of an engine with errNeedsFrames once a queue would grow so long that flows no
// longer describe it.
func stopWhenFramed(e *engine.Engine) {
	if m, ok := e.Wire.(*packets.Model); ok {
		m.OnFramed(func() { e.Stop(errNeedsFrames) })
	}
}
