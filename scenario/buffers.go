package scenario

import (
	"context"
	"slices"

	"github.com/simccl/simccl/comm"
	"github.com/simccl/simccl/plan"
	"github.com/simccl/simccl/sim"
	"github.com/simccl/simccl/trace"
	"github.com/simccl/simccl/units"
)

// buffers is what NCCL knows of the buffers.
func (w *Workload) buffers() comm.Buffers {
	switch {
	case w.Buffers == "windows" || w.Kernel == SymmetricKernel:
		return comm.Windows
	case w.Buffers == "registered":
		return comm.Registered
	}
	return comm.Plain
}

// Op is an operation of this run as the communicator plans it.
func (r *Running) Op(o Operation) comm.Op {
	op := o.Op(r.fn)
	op.Buffers, op.Graph, op.CTAPolicy = r.Spec.Workload.buffers(), r.Spec.Engine.Launch == "graph",
		r.Spec.Workload.CTAPolicy
	op.Misalign = int64(r.Spec.Workload.Unalign) * int64(o.Type.Size())
	return op
}

// ginWarning says what NCCL would take if GPUs drove the nets.
func (r *Running) ginWarning() string {
	for _, t := range r.types {
		op := r.Op(Operation{Count: 1, Type: t})
		if w := r.Site.Comm.GINWarning(op); w != "" {
			return w
		}
	}
	return ""
}

// windows chooses for an operation that NCCL does by copy engines or by a kernel over
// symmetric windows; ok is false for one that it plans otherwise.
func (r *Running) windows(o Operation, prove bool) (out Outcome, ok bool, err error) {
	op := r.Op(o)
	if o.Pairs != nil { // a group of sends and receives
		return out, false, nil
	}
	if w := &r.Spec.Workload; w.Device > 0 {
		l, err := r.Site.Comm.Device(op, w.Device, w.DeviceBlocks)
		return Outcome{Kernel: &l}, true, err
	}
	if p, ok, err := r.peers(op); ok || err != nil {
		if err == nil && prove && !r.Spec.Engine.NoProof {
			err, out.Checked = p.Check(), true
		}
		if out.Peer = p; err != nil {
			err = &OperationError{r.fn, o.Count, err}
		}
		return out, true, err
	}
	if p, ok := r.Site.Comm.CopyEngines(op); ok {
		return Outcome{Copies: &p}, true, nil
	}
	l, ok, err := r.Site.Comm.SymmetricKernel(op)
	if err == nil && !ok && r.Spec.Workload.Kernel == SymmetricKernel && r.Site.Comm.NRanks > 1 {
		err = r.noSymmetric(op)
	}
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
	if o.Peer != nil {
		o, err := r.served(ctx, o)
		if err == nil {
			sim.Timeline(sink, &o.Result, o.Peer.Op+" "+o.Peer.Kernel, trace.Int("bytes", peerBytes(o.Peer)),
				trace.Int("blocks", int64(o.Peer.Blocks)))
		}
		return o, err
	}
	o, err := r.copies(ctx, o)
	if err == nil && o.Kernel != nil {
		sim.Timeline(sink, &o.Result, o.Kernel.Kernel.String(), trace.Int("bytes", o.Kernel.Bytes),
			trace.Int("blocks", int64(o.Kernel.Channels)))
	} else if err == nil {
		sim.Timeline(sink, &o.Result, "Copies", trace.Int("bytes", int64(o.Copies.Each)),
			trace.Int("peers", int64(o.Copies.Peers)))
	}
	r.hostTimed(&o, o.Result.Finish, []*plan.Plan{nil}, 1)
	return o, err
}

// copies simulates an operation of copy engines, or of one kernel over symmetric windows.
func (r *Running) copies(ctx context.Context, o Outcome) (Outcome, error) {
	x, err := r.executor(nil)
	if err != nil {
		return Outcome{}, err
	}
	if o.Kernel != nil {
		o.Result, err = x.Symmetric(ctx, o.Kernel)
	} else {
		o.Result, err = x.Copies(ctx, o.Copies)
	}
	return o, err
}

// hostTimed gives a result the time of a host that waits, which n operations of kernels
// with these plans are launched by at a time and which end so long after the launch on
// each rank; and what the launch of one costs it, where that is measured. Waits are
// nccl-tests': after each group, and for -z 1 a barrier for each of its operations; the
// barrier of -z 3 it takes off again.
func (r *Running) hostTimed(o *Outcome, ends []units.Time, kernels []*plan.Plan, n int) {
	e, c := &r.Spec.Engine, r.Site.Class()
	if o.Result.Elapsed == 0 || !e.CPUTime && e.Blocking == 0 {
		return
	}
	host := units.Time(0)
	for _, p := range kernels {
		host += r.hostTime(p)
	}
	if e.Blocking > 0 { // launches wait then, so that the host's time is the whole
		o.Result.Elapsed = (host + slices.Max(ends) + units.FromMicros(c.HostWait)) / units.Time(n)
		if e.Blocking == 1 {
			o.Result.Elapsed += units.FromMicros(c.HostBarrier)
		}
		return
	}
	o.Host = host / units.Time(n)
}

// modelUs is NCCL's own estimate in microseconds, 0 where it makes none.
func (o *Outcome) modelUs() float64 {
	if o.Kernel != nil {
		return float64(o.Kernel.TimeUs)
	}
	return float64(o.Choice.TimeUs)
}
