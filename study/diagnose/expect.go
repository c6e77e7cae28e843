package diagnose

import (
	"context"
	"math"
	"runtime"
	"slices"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/internal/parallel"
	"github.com/simccl/simccl/scenario"
	"github.com/simccl/simccl/sim"
	"github.com/simccl/simccl/sim/gpu"
)

// expected is what a size should take.
type expected struct {
	least, us, most float64 // microseconds
	choice          string
}

// expect simulates every size of a bench's table.
func (b *bench) expect(ctx context.Context) ([]expected, error) {
	outs, err := b.simulate(ctx, b.run, all(len(b.table.rows)))
	if err != nil {
		return nil, err
	}
	es := make([]expected, len(outs))
	for i := range outs {
		o := &outs[i]
		us := o.Result.Elapsed.Micros()
		es[i] = expected{us, us, us, o.Label()}
		if d := o.Draws; d != nil {
			es[i].least, es[i].most = d.LeastUs, d.MostUs
		}
		below, above := b.widths(b.table.rows[i].bytes)
		es[i].least, es[i].most = es[i].least/(1+below), es[i].most/(1-above)
		if launch, most := b.launches(); us < 1.5*launch {
			es[i].least, es[i].most = es[i].least/hosts, max(es[i].most, most)
		}
	}
	return es, nil
}

func all(n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = i
	}
	return out
}

// simulate runs rows of the table on a machine, several at a time.
func (b *bench) simulate(ctx context.Context, r *scenario.Running, rows []int) ([]scenario.Outcome, error) {
	outs, errs := make([]scenario.Outcome, len(rows)), make([]error, len(rows))
	parallel.Each(runtime.GOMAXPROCS(0), len(rows), func(i int) {
		if ctx.Err() == nil {
			outs[i], errs[i] = r.Drawn(ctx, b.table.rows[rows[i]].op, false, nil)
		}
	})
	if i := slices.IndexFunc(errs, func(err error) bool { return err != nil }); i >= 0 {
		return nil, errs[i]
	}
	return outs, ctx.Err()
}

// What is stated is a mean of |simulated/measured - 1| over many points on the machines that were measured. A
// single point of another machine of the kind is off by point more (docs/results/ACCURACY.md: the largest
// deviations of held-out sizes from 1 MiB, and what two machines of a kind differ by). Between nodes
// that nothing describes, an ideal network is assumed: each doubling of the nodes makes it less
// likely that no cable is shared, unshared of the time. A statement of more than lost is one of it.
const (
	point    = 0.18
	unshared = 0.05
	lost     = 0.95
)

// widths are by how much a simulated time may be above and below the measured one, as a share of it: the
// error of the machine class for the operation and size and what is added for a release that was not
// measured, or that of the network class where it is larger: that of whole times between nodes.
func (b *bench) widths(bytes int64) (below, above float64) {
	site := b.run.Site
	class := site.Class()
	u, known := b.recorded(class.Regimes, bytes, func(g *gpu.Regime) bool {
		return g.Ranks == site.Comm.NRanks/max(site.Comm.NNodes, 1)
	})
	if !known {
		u = [2]float64{class.Uncertainty, class.Uncertainty}
	}
	release := site.Uncertainty() - class.Uncertainty
	below, above = u[0]+release, u[1]+release
	shared := 0.0
	if site.Between() != gpu.NoNetwork {
		u, known = b.recorded(b.between(), bytes, func(g *gpu.Regime) bool {
			return g.NodesFrom <= site.Comm.NNodes && site.Comm.NNodes <= g.NodesTo
		})
		if !known {
			u = elsewhere(bytes)
		}
		below, above = max(below, u[0]), max(above, u[1])
		if site.Network == nil && !known {
			shared = unshared * math.Log2(float64(site.Comm.NNodes))
		}
	}
	return math.Hypot(below, point), min(math.Hypot(math.Hypot(above, point), shared), lost)
}

// between are the regimes of the network class, of InfiniBand's where the machine class has its NICs.
func (b *bench) between() []gpu.Regime {
	site := b.run.Site
	if c := site.Class(); c.Network != "" || site.Between() != gpu.RDMA {
		return c.Between
	}
	n, err := gpu.NetworkNamed("infiniband")
	if err != nil {
		return nil // cannot be: it is part of the program
	}
	return n.Regimes
}

// recorded is the mean error of a size, of simulated times that are too long and too short, in those of the
// regimes that hold: of the operation itself, or else of its like: a collective, or sends and receives. Where
// all times are off in one direction there is none in the other.
func (b *bench) recorded(of []gpu.Regime, bytes int64, holds func(*gpu.Regime) bool) (u [2]float64, ok bool) {
	var sum [2][2]float64
	var n [2]float64
	for i := range of {
		g := &of[i]
		fn, err := coll.ParseFunc(g.Op)
		if err != nil || fn.IsP2P() != b.table.fn.IsP2P() || bytes < g.From || bytes > g.To || !holds(g) {
			continue
		}
		k := 0
		if fn != b.table.fn {
			k = 1
		}
		points := float64(g.Points)
		n[k] += points
		sum[k][0] += points * min(g.Mean, g.Mean+g.Bias)
		sum[k][1] += points * min(g.Mean, g.Mean-g.Bias)
	}
	for k := range n {
		if n[k] > 0 {
			return [2]float64{sum[k][0] / n[k], sum[k][1] / n[k]}, true
		}
	}
	return u, false
}

// elsewhere is how far times over networks of other classes are off on the page of accuracy: of sizes that
// cables bound, of those that messages bound, and below what the network classes state of a message.
func elsewhere(bytes int64) [2]float64 {
	switch {
	case bytes >= 64<<20:
		return [2]float64{0.1, 0.1}
	case bytes >= large:
		return [2]float64{0.15, 0.15}
	}
	return [2]float64{0.3, 0.3}
}

// launches is the time that the host needs for an operation where it is launched eagerly: hosts
// differ by up to most times the class's, which no class states.
func (b *bench) launches() (us, most float64) {
	r := b.table.run
	if r.Launch == sim.Graph {
		return 0, 0
	}
	us = b.run.Site.Class().Launch(max(r.PerThread, 1))
	return us, us * hosts
}

// hosts is by how much the launches of hosts differ: nccl-tests' floors of one process that drives
// 2 to 8 GPUs are 17 to 57 us in tables of equal GPUs.
const hosts = 1.8
