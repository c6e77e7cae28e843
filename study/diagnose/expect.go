package diagnose

import (
	"context"
	"math"
	"runtime"
	"slices"

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
		es[i].least, es[i].most = es[i].least/(1+below), es[i].most*(1+above)
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

// What is stated is a mean deviation of many points on the machines that were measured. A single
// point of another machine of the kind is off by point more (docs/results/ACCURACY.md: the largest
// deviations of held-out sizes from 1 MiB, and what two machines of a kind differ by). Between nodes
// that nothing describes, an ideal network is assumed: each doubling of the nodes makes it less
// likely that no cable is shared, unshared of the time.
const (
	point    = 0.18
	unshared = 0.05
)

// widths are by how much a time may be below and above the expected one, relative: the stated
// uncertainty of the class for the operation and size, that of a release that was not measured,
// and that of what goes between nodes.
func (b *bench) widths(bytes int64) (below, above float64) {
	site := b.run.Site
	class := site.Class()
	u := regime(class, b.table.fn.TestName(), site.Comm.NRanks/max(site.Comm.NNodes, 1), bytes)
	below = math.Hypot(u+site.Uncertainty()-class.Uncertainty, point)
	if site.Between() == gpu.NoNetwork {
		return below, below
	}
	below = math.Hypot(below, between(bytes))
	if above = below; site.Network == nil {
		above = math.Hypot(below, unshared*math.Log2(float64(site.Comm.NNodes)))
	}
	return below, above
}

// between is how far times over a network are off on the page of accuracy: of sizes that cables
// bound, of those that messages bound, and below what the network classes state of a message.
func between(bytes int64) float64 {
	switch {
	case bytes >= 64<<20:
		return 0.1
	case bytes >= large:
		return 0.15
	}
	return 0.3
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

// regime is the class's mean deviation for an operation of a size, as far as it says it.
func regime(c *gpu.Class, op string, ranks int, bytes int64) float64 {
	out := c.Uncertainty
	for _, r := range c.Regimes {
		if r.Op == op && r.Ranks == ranks && bytes >= r.From && bytes <= r.To {
			out = max(out, r.Mean)
		}
	}
	return out
}
