package sim

import (
	"context"
	"fmt"

	"github.com/simccl/simccl/exec"
	"github.com/simccl/simccl/plan"
	"github.com/simccl/simccl/sim/internal/engine"
	"github.com/simccl/simccl/sim/internal/fluid"
	"github.com/simccl/simccl/sim/wire"
	"github.com/simccl/simccl/trace"
	"github.com/simccl/simccl/units"
)

// Alone is what one operation takes on a machine that does nothing else.
type Alone struct {
	Time  units.Time      // from the begin of all kernels until the last one ends
	Ends  []units.Time    // when each rank's kernel ends
	Again units.Time      // from one operation to the next where they follow without a pause
	Links []exec.LinkLoad // what each link carries
	// Kernels is what Time would be over links of any speed; 0 where that was not
	// asked for.
	Kernels units.Time
}

// Alone simulates one operation by itself, on the device alone. With kernels it is
// simulated a second time, over links that hold nothing up.
func (x *Executor) Alone(ctx context.Context, p *plan.Plan, kernels bool) (Alone, error) {
	own := *x
	own.cfg.Launch, own.cfg.Progress = Graph, nil
	r, err := own.Run(ctx, exec.One(p), trace.Discard)
	if err != nil {
		return Alone{}, err
	}
	a := Alone{Ends: r.Finish, Links: r.Links}
	for _, t := range r.Finish {
		a.Time = max(a.Time, t)
	}
	a.Again = min(a.Time, (timed*r.Elapsed-a.Time)/(timed-1))
	if r.Account.Method != exec.Each {
		if a.Links, err = own.Loads(ctx, p); err != nil {
			return Alone{}, err
		}
	}
	if !kernels {
		return a, nil
	}
	own.cfg.Wire = func() wire.Model { return &endless{Model: fluid.New()} }
	own.cfg.Kernels = 1
	if r, err = own.Run(ctx, exec.One(p), trace.Discard); err != nil {
		return Alone{}, err
	}
	for _, t := range r.Finish {
		a.Kernels = max(a.Kernels, t)
	}
	a.Kernels = min(a.Kernels, a.Time)
	return a, nil
}

// endless is a model whose links hold nothing up.
type endless struct{ wire.Model }

// endlessTimes is by how much faster they are than declared.
const endlessTimes = 1000

// AddLink implements wire.Links.
func (m *endless) AddLink(name string, c wire.Rate) wire.LinkID {
	return m.Model.AddLink(name, c*endlessTimes)
}

// Limit implements wire.Links.
func (m *endless) Limit(l wire.LinkID, c wire.Rate) { m.Model.Limit(l, c*endlessTimes) }

// Capacity implements wire.Links.
func (m *endless) Capacity(l wire.LinkID) wire.Rate { return m.Model.Capacity(l) / endlessTimes }

// declared is a model that only declares.
type declared struct{ wire.Layout }

func (*declared) Seal()                                                    {}
func (*declared) Carry(wire.RouteID, wire.Work)                            {}
func (*declared) SetRate(units.Time, wire.FlowID, wire.Rate)               {}
func (*declared) Next() (units.Time, bool)                                 { return 0, false }
func (*declared) Advance(_ units.Time, done []int32) []int32               { return done }
func (*declared) Loads() []wire.Load                                       { return nil }
func (*declared) Watch(func(l wire.LinkID, at units.Time, rate wire.Rate)) {}
func (*declared) Start(units.Time, wire.RouteID, wire.Rate, wire.Work, int32, int32) wire.FlowID {
	return 0
}

// maxCounted is how many ops Loads counts one by one; of longer programs it takes
// the first ones for all.
const maxCounted = 1 << 22

// maxLoads is how many connections Loads lays out.
const maxLoads = 1 << 18

// Loads counts what a plan moves over each link, from its ops, without a clock.
func (x *Executor) Loads(ctx context.Context, p *plan.Plan) ([]exec.LinkLoad, error) {
	if n := p.NumConns(); n > maxLoads {
		return nil, &exec.NotImplementedError{Feature: fmt.Sprintf("loads of links of %v of %d ranks", p.Req.Func, p.Comm.NRanks),
			Missing: fmt.Sprintf("%d connections; %d are laid out at most", n, maxLoads)}
	}
	m := &declared{}
	e := engine.New(&engine.Options{Class: &x.class, Systems: x.cfg.Systems, Model: m, Network: x.cfg.network(), Place: x.cfg.Place, Kernels: 1}, p)
	e.Cancelled = ctx.Err
	if err := e.LayAll(e.Jobs[0]); err != nil {
		return nil, err
	}
	var sums []float64 // by link, in nano-bytes
	e.Count(maxCounted, func(r wire.RouteID, work float64) {
		for _, u := range m.Uses(r) {
			for int(u.Link) >= len(sums) {
				sums = append(sums, 0)
			}
			sums[u.Link] += work * float64(u.Count)
		}
	})
	out := make([]exec.LinkLoad, len(sums))
	for i := range out {
		l := wire.LinkID(i)
		out[i] = exec.LinkLoad{Name: m.Name(l), Capacity: units.GBps(float64(m.Capacity(l)) * 1e-6), Bytes: units.Bytes(sums[i] / wire.NanoBytes)}
	}
	return out, nil
}
