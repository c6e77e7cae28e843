package scenario

import (
	"context"
	"slices"

	"github.com/simccl/simccl/comm"
	"github.com/simccl/simccl/sim"
	"github.com/simccl/simccl/trace"
	"github.com/simccl/simccl/units"
)

// buffers is what NCCL knows of the buffers.
func (w *Workload) buffers() comm.Buffers {
	switch w.Buffers {
	case "registered":
		return comm.Registered
	case "windows":
		return comm.Windows
	}
	return comm.Plain
}

// op is an operation of this run as the communicator plans it.
func (r *Running) op(o Operation) comm.Op {
	op := o.Op(r.fn)
	op.Buffers, op.Graph, op.CTAPolicy = r.Spec.Workload.buffers(), r.Spec.Engine.Launch == "graph", r.Spec.Workload.CTAPolicy
	op.Misalign = int64(r.Spec.Workload.Unalign) * int64(o.Type.Size())
	return op
}

// windows chooses for an operation that NCCL does by copy engines or by a kernel over
// symmetric windows; ok is false for one that it plans otherwise.
func (r *Running) windows(o Operation, prove bool) (out Outcome, ok bool, err error) {
	op := r.op(o)
	if p, ok := r.Site.Comm.CopyEngines(op); ok {
		return Outcome{Copies: &p}, true, nil
	}
	l, ok, err := r.Site.Comm.SymmetricKernel(op)
	if err == nil && ok && prove && !r.Spec.Engine.NoProof {
		err = l.Check()
		out.Checked = true
	}
	if err != nil || !ok {
		if err != nil {
			err = &OperationError{r.fn, o.Count, err}
		}
		return Outcome{}, false, err
	}
	out.Kernel = &l
	return out, true, nil
}

// lockstep simulates an operation whose ranks all do the same at a time.
func (r *Running) lockstep(ctx context.Context, o Outcome, sink trace.Sink) (Outcome, error) {
	cfg, err := r.Site.SimConfig(&r.Spec)
	if err != nil {
		return Outcome{}, err
	}
	x, err := sim.New(cfg)
	switch {
	case err != nil:
	case o.Kernel != nil:
		o.Result, err = x.Symmetric(ctx, o.Kernel)
	default:
		o.Result, err = x.Copies(ctx, o.Copies)
	}
	if err == nil && o.Kernel != nil {
		sim.Timeline(sink, &o.Result, o.Kernel.Kernel.String(), trace.Int("bytes", o.Kernel.Bytes), trace.Int("blocks", int64(o.Kernel.Channels)))
	} else if err == nil {
		sim.Timeline(sink, &o.Result, "Copies", trace.Int("bytes", int64(o.Copies.Each)), trace.Int("peers", int64(o.Copies.Peers)))
	}
	r.hostTimed(&o)
	return o, err
}

// hostTimed gives a result the time that a host has which waits for each operation, or
// which measures its own launches.
func (r *Running) hostTimed(o *Outcome) {
	e, c := &r.Spec.Engine, r.Site.Class()
	switch {
	case o.Result.Elapsed == 0:
	case e.CPUTime:
		o.Result.Elapsed = r.hostTime(o.Plan)
	case e.Blocking > 0:
		wait := c.HostWait
		if e.Blocking == 1 {
			wait += c.HostBarrier
		}
		o.Result.Elapsed = r.hostTime(o.Plan) + slices.Max(o.Result.Finish) + units.FromMicros(wait)
	}
}

// modelUs is NCCL's own estimate in microseconds, 0 where it makes none.
func (o *Outcome) modelUs() float64 {
	if o.Kernel != nil {
		return float64(o.Kernel.TimeUs)
	}
	return float64(o.Choice.TimeUs)
}
