package sim

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/simccl/simccl/exec"
	"github.com/simccl/simccl/plan"
	"github.com/simccl/simccl/sim/gpu"
	"github.com/simccl/simccl/sim/internal/engine"
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
	// Slowed is what Time would be if kernels were slower, by ascending factors of that; empty
	// where that was not asked for.
	Slowed []Slowed
	// Half is what Time would be over links of half their speed; 0 where that was not asked for.
	Half units.Time
}

// Slowed is that an operation takes Time where its kernels take Kernels times as long, and what
// they wait for too, and Wait more for each time more that the latter takes.
type Slowed struct {
	Kernels    float64
	Time, Wait units.Time
}

// slowBy are the factors of Alone.Slowed: beside compute kernels take at most some two and a half
// times as long.
var slowBy = [...]float64{1.5, 2.5}

// Quantities are those of the Config's class on which an operation alone depends; nil without a
// class.
func (c *Config) Quantities() []float64 {
	if c.Class == nil {
		return nil
	}
	var out []float64
	for _, q := range gpu.Quantities() {
		if !gpu.Sharing(q.Name) {
			out = append(out, *q.At(c.Class))
		}
	}
	return out
}

// Ask says what Alone finds in addition, each for another simulation.
type Ask struct{ Slowed, Half bool }

// Alone simulates one operation by itself, on the device alone.
func (x *Executor) Alone(ctx context.Context, p *plan.Plan, ask Ask) (Alone, error) {
	own := *x
	own.cfg.Launch, own.cfg.Progress, own.windows = Graph, nil, new(Windows) // windows are of one Config
	r, err := own.Run(ctx, exec.One(p), trace.Discard)
	if err != nil {
		return Alone{}, err
	}
	a := Alone{Ends: r.Finish, Links: r.Links, Time: slices.Max(r.Finish)}
	a.Again = min(a.Time, (timed*r.Elapsed-a.Time)/(timed-1))
	if r.Account.Method != exec.Each {
		if a.Links, err = own.Loads(ctx, p); err != nil {
			return Alone{}, err
		}
	}
	if ask.Slowed {
		if a.Slowed, err = own.slowed(ctx, p, a.Time); err != nil {
			return Alone{}, err
		}
	}
	if ask.Half {
		if a.Half, err = own.at(ctx, p, 0.5); err != nil {
			return Alone{}, err
		}
		a.Half = max(a.Half, a.Time)
	}
	return a, nil
}

// at is how long an operation takes over links of so many times their speed.
func (x *Executor) at(ctx context.Context, p *plan.Plan, times float64) (units.Time, error) {
	own := *x
	own.cfg.Wire = func() wire.Model { return &scaled{x.model(), times} }
	own.cfg.Kernels, own.windows = 1, new(Windows)
	r, err := own.Run(ctx, exec.One(p), trace.Discard)
	if err != nil {
		return 0, err
	}
	return slices.Max(r.Finish), nil
}

// slowed is how long an operation takes where kernels are slower: that many times what it does
// over links that are as much faster.
func (x *Executor) slowed(ctx context.Context, p *plan.Plan, alone units.Time) ([]Slowed, error) {
	const more = 0.5 // by how much longer than kernels what they wait for takes
	var out []Slowed
	for _, f := range slowBy {
		both, err := x.at(ctx, p, f)
		if err != nil {
			return nil, err
		}
		own := *x
		own.class.Wait(1 + more)
		waits, err := own.at(ctx, p, f)
		if err != nil {
			return nil, err
		}
		s := Slowed{Kernels: f, Time: max(alone, units.Time(f*float64(both)))}
		s.Wait = units.Time(math.Max(0, f*float64(waits)-float64(s.Time)) / (more * f))
		out = append(out, s)
	}
	return out, nil
}

// scaled is a model whose links have so many times their speed.
type scaled struct {
	wire.Model
	times float64
}

func (m *scaled) rate(c wire.Rate) wire.Rate { return max(1, wire.Rate(float64(c)*m.times)) }

// AddLink implements wire.Links.
func (m *scaled) AddLink(name string, c wire.Rate) wire.LinkID {
	return m.Model.AddLink(name, m.rate(c))
}

// Limit implements wire.Links.
func (m *scaled) Limit(l wire.LinkID, c wire.Rate) { m.Model.Limit(l, m.rate(c)) }

// Capacity implements wire.Links.
func (m *scaled) Capacity(l wire.LinkID) wire.Rate {
	return wire.Rate(float64(m.Model.Capacity(l)) / m.times)
}

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

// layable refuses a plan of more connections than are laid out to count what links carry.
func layable(p *plan.Plan) error {
	if n := p.NumConns(); n > maxLoads {
		return &exec.NotImplementedError{Feature: fmt.Sprintf("loads of links of %v of %d ranks", p.Req.Func,
			p.Comm.NRanks),
			Missing: fmt.Sprintf("%d connections; %d are laid out at most", n, maxLoads)}
	}
	return nil
}

// Loads counts what a plan moves over each link, from its ops, without a clock.
func (x *Executor) Loads(ctx context.Context, p *plan.Plan) ([]exec.LinkLoad, error) {
	if err := layable(p); err != nil {
		return nil, err
	}
	m := &declared{}
	e := engine.New(&engine.Options{Class: &x.class, Systems: x.cfg.Systems, Model: m,
		Network: x.cfg.network(), Place: x.cfg.Place, Kernels: 1}, p)
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
		out[i] = exec.LinkLoad{Name: m.Name(l), Capacity: units.GBps(float64(m.Capacity(l)) * 1e-6),
			Bytes: units.Bytes(sums[i] / wire.NanoBytes)}
	}
	return out, nil
}
