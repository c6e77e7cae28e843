package sim

import (
	"context"
	"fmt"
	"slices"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/exec"
	"github.com/simccl/simccl/plan/peer"
	"github.com/simccl/simccl/plan/sym"
	"github.com/simccl/simccl/sim/internal/symk"
	"github.com/simccl/simccl/topo"
	"github.com/simccl/simccl/trace"
	"github.com/simccl/simccl/units"
)

// Symmetric simulates one kernel over symmetric windows, launched again and again as
// Run does. Errors: those of ctx, a
// *exec.NotImplementedError for kernels of the tensor memory accelerator and for
// faults, or a *RouteError.
func (x *Executor) Symmetric(ctx context.Context, l *sym.Launch) (exec.Result, error) {
	if err := x.lockstep(ctx, l.Kernel.String(), true); err != nil {
		return exec.Result{Wrong: -1}, err
	}
	if l.Kernel.TMA() {
		return exec.Result{Wrong: -1}, &exec.NotImplementedError{Feature: "kernel " + l.Kernel.String(),
			Missing: "what the tensor memory accelerator moves was not measured; unset NCCL_SYM_TMA_ENABLE"}
	}
	m := x.machine()
	t, err := m.Kernel(l)
	if err != nil {
		return exec.Result{Wrong: -1}, err
	}
	task := l.Works[0].Task
	bytes := float64(l.Bytes)
	if task.Func != coll.AllReduce {
		bytes *= float64(x.cfg.Comm.NRanks)
	}
	return x.timed(t, task.Func, bytes, x.class.Launch(x.cfg.PerThread), l.Channels), nil
}

// Copies simulates one collective by copy engines. Errors as Symmetric.
func (x *Executor) Copies(ctx context.Context, p *sym.Copies) (exec.Result, error) {
	if err := x.lockstep(ctx, "copy engines", false); err != nil {
		return exec.Result{Wrong: -1}, err
	}
	m := x.machine()
	t, err := m.Copies(p)
	if err != nil {
		return exec.Result{Wrong: -1}, err
	}
	bytes := float64(p.Each) * float64(x.cfg.Comm.NRanks)
	return x.timed(t, p.Func, bytes, x.class.Launch(x.cfg.PerThread), 0), nil
}

// Peer simulates one operation of a kernel of serving, over the memory of peers and between
// nodes over an ideal network. Errors as Symmetric.
func (x *Executor) Peer(ctx context.Context, p *peer.Plan) (exec.Result, error) {
	if err := x.lockstep(ctx, p.Op+" by kernel "+p.Kernel, true); err != nil {
		return exec.Result{Wrong: -1}, err
	}
	if x.cfg.Fabric != nil && x.cfg.Comm.NNodes > 1 {
		return exec.Result{Wrong: -1}, &exec.NotImplementedError{
			Feature: p.Op + " over a network of switches",
			Missing: "its writes between nodes are timed over an ideal network; leave out the fabric"}
	}
	if err := x.posts(p); err != nil {
		return exec.Result{Wrong: -1}, err
	}
	m := x.machine()
	t, err := m.Peer(p)
	if err != nil {
		return exec.Result{Wrong: -1}, err
	}
	bytes := 0.0
	for _, part := range p.Parts {
		bytes += float64(part.Bytes)
	}
	f, err := coll.ParseFunc(p.Op)
	if err != nil {
		f = coll.AllReduce
	}
	if f == coll.AllToAll {
		bytes /= float64(p.Ranks)
	}
	host := x.class.Peer.Host
	if p.Kernel == peer.MultimemCopy { // two copies are called beside the kernel
		host += 2 * x.class.One.CopyLaunch
	}
	r := x.timed(t, f, bytes, host, p.Blocks)
	o := x.class.Origins["peer_gap"]
	r.Account.Method = exec.Formula
	r.Account.Margin = max(o.Uncertainty, x.class.Uncertainty)
	r.Account.Note = "kernels of serving are timed as a whole, by quantities from " + string(o.Source)
	return r, nil
}

// posts refuses kernels whose GPUs post writes to NICs (IBGDA, GIN) where GPUs cannot.
func (x *Executor) posts(p *peer.Plan) error {
	if p.Tokens == nil || !p.Tokens.Remote {
		return nil
	}
	network := x.class.Network
	for _, s := range x.cfg.Systems {
		for _, n := range s.Of(topo.NET) {
			if s.Nodes[n].Net.Sockets {
				network = "sockets"
			}
		}
	}
	switch network {
	case "", "infiniband", "roce":
		return nil
	}
	return &exec.NotImplementedError{Feature: p.Op + " by kernel " + p.Kernel + " over " + network,
		Missing: "its GPUs post writes to InfiniBand or RoCE NICs; what a host's proxy takes for them " +
			"elsewhere was not measured; write kernel nccl"}
}

// lockstep refuses what ranks that all do the same at a time cannot show; slow says that
// slow ranks can be.
func (x *Executor) lockstep(ctx context.Context, what string, slow bool) error {
	if ctx.Err() != nil {
		return fmt.Errorf("simulate %s: %w", what, context.Cause(ctx))
	}
	for _, f := range x.cfg.Faults {
		if !slow || f.Rank < 0 || f.Down {
			return &exec.NotImplementedError{Feature: what + " with faults",
				Missing: "its ranks are simulated in lockstep, of which only a slow rank's kernel holds up " +
					"all; leave out the faults, or the registration"}
		}
	}
	return nil
}

func (x *Executor) machine() *symk.Machine {
	return &symk.Machine{Comm: x.cfg.Comm, Systems: x.cfg.Systems, Class: &x.class, Set: x.cfg.Set,
		Place: x.cfg.Place, Slow: slices.Max(append(x.cfg.slowness(), 1))}
}

// timed is the result of an operation that moves bytes in all and whose launch takes
// the host so many microseconds.
func (x *Executor) timed(t symk.Time, f coll.Func, bytes, host float64, programs int) exec.Result {
	n := x.cfg.Comm.NRanks
	r := exec.Result{Finish: make([]units.Time, n), Wrong: -1, Links: t.Links, Account: exec.Account{
		Method: exec.Folded, Programs: programs}}
	r.Elapsed = units.FromMicros(t.Gap + t.Busy)
	for i := range r.Finish {
		r.Finish[i] = r.Elapsed
	}
	if x.cfg.Launch == Eager {
		h := units.FromMicros(host)
		r.Elapsed = max(r.Elapsed, h) + min(r.Elapsed, h)/timed
	}
	if r.Elapsed > 0 {
		r.AlgBW = bytes / (float64(r.Elapsed) * 1e-3)
	}
	r.BusBW = r.AlgBW * f.BusFactor(n)
	return r
}

// Timeline writes an operation that is timed as a whole: a slice on every rank, from the
// begin of its kernel, or of its copies, to the end.
func Timeline(sink trace.Sink, r *exec.Result, name string, args ...trace.Arg) {
	for rank, end := range r.Finish {
		track := sink.Track(trace.Track{Process: int64(rank), ProcessName: fmt.Sprintf("rank %d", rank),
			ProcessSort: int64(rank), ThreadName: "kernels"})
		sink.Emit(&trace.Event{Track: track, Dur: end, Cat: "NCCL", Name: name, Args: args})
	}
}
