package scenario

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/simccl/simccl/exec"
	"github.com/simccl/simccl/internal/parallel"
	"github.com/simccl/simccl/sim"
	"github.com/simccl/simccl/sim/gpu"
	"github.com/simccl/simccl/sim/netpreset"
	"github.com/simccl/simccl/topo/fabric"
	"github.com/simccl/simccl/trace"
	"github.com/simccl/simccl/trace/nccl"
	"github.com/simccl/simccl/units"
)

// Where switches choose among routes by a hash of each queue pair, one seed is one draw of
// many: by chance several queue pairs share a cable or none do. So a Spec without a seed has
// the median of several draws, where a draw can matter (sim.Executor.Hashed):
//
// The routes of the seeds 1 to drawsN are laid out, and put in the order of what the fullest
// cable needs for its bytes, which takes milliseconds. The first, the last, the median and
// the quartiles are simulated. If times follow that order, the other draws lie between: the
// median of drawsN is that of the simulated ones. If they do not (messages queue otherwise,
// jitter outweighs the cables), or where frames are simulated, seeds 1 to fewDraws or fewFrames
// are simulated, and no others count.
const (
	drawsN    = 21 // odd: the median is a draw of its own
	fewDraws  = 9
	fewFrames = 5
	inOrder   = 0.02 // by how much of itself a time may be shorter than one of a less full cable
	same      = 0.01 // of Band: draws that differ less count as equal
	banded    = 1.1  // of most over least, from which on settings that spread queue pairs are tried
)

// Draws are what an operation takes over draws of hashed routes.
type Draws struct {
	N        int     `json:"n"` // seeds 1 to N
	MedianUs float64 `json:"median_us"`
	LeastUs  float64 `json:"least_us"`
	MostUs   float64 `json:"most_us"`
	// LeastBusBW and MostBusBW are the bus bandwidths of the slowest and of the fastest draw, GB/s.
	LeastBusBW float64 `json:"least_busbw_GBs"`
	MostBusBW  float64 `json:"most_busbw_GBs"`
	Seed       uint64  `json:"seed"` // of the median, whose draw the rest of the row is
	// Simulated are the draws that were simulated, by time; the others of N lie between them by
	// the time that their fullest cable needs.
	Simulated []Draw `json:"simulated"`
	// Crowd is the cable that most hold up in the median draw; nil where none does.
	Crowd *Crowd `json:"crowd,omitempty"`
	// Spread are settings that spread queue pairs, each simulated with the median's seed.
	Spread []Spread `json:"spread,omitempty"`
}

// Draw is one seed.
type Draw struct {
	Seed uint64  `json:"seed"`
	Us   float64 `json:"us"`
	// For is how many of N draws it represents, those that are nearest to it by their fullest cables.
	For int `json:"for"`
}

// Crowd is how many queue pairs share a cable that a hash chose for them.
type Crowd struct {
	Link       string `json:"link"`
	QueuePairs int32  `json:"queue_pairs"`
	Of         int32  `json:"of"`     // that take it or one of those beside it
	Beside     int    `json:"beside"` // cables that would have done as well, it included
}

// String says it in words.
func (c *Crowd) String() string {
	return fmt.Sprintf("%d of %d queue pairs share %s, one of %d equal-cost cables", c.QueuePairs, c.Of,
		c.Link, c.Beside)
}

// Spread is a setting with the time that the operation takes then.
type Spread struct {
	Setting string  `json:"setting"`
	Us      float64 `json:"us"`
}

// Band is the most over the least time, less 1: 0.5 where the worst draw takes half as long again.
func (d *Draws) Band() float64 {
	if d == nil || d.LeastUs <= 0 {
		return 0
	}
	return d.MostUs/d.LeastUs - 1
}

// Lines says in words what the draws came to; busBW is the bus bandwidth of a time of us.
func (d *Draws) Lines(busBW, us float64) []string {
	bus := func(t float64) string { return fmt.Sprintf("%.2f GB/s", busBW*us/max(t, 1e-9)) }
	var seeds []string
	for _, s := range d.Simulated {
		seeds = append(seeds, fmt.Sprint(s.Seed))
	}
	which := "all simulated"
	if len(seeds) < d.N {
		which = "in the order of their fullest cables; " + strings.Join(seeds, ", ") + " simulated"
	}
	out := []string{fmt.Sprintf("routes are hashed: %s is the median of %d draws, %s to %s (seeds 1 to %d, "+
		"%s); --seed %d is this row's",
		bus(d.MedianUs), d.N, bus(d.MostUs), bus(d.LeastUs), d.N, which, d.Seed)}
	var parts []string
	if d.Crowd != nil {
		parts = append(parts, d.Crowd.String())
	}
	for _, s := range d.Spread {
		parts = append(parts, s.Setting+": "+bus(s.Us))
	}
	if len(parts) > 0 {
		out = append(out, strings.Join(parts, "; "))
	}
	return out
}

// Draws reports whether a Spec asks for the median of draws where they matter.
func (m *Site) Draws(spec *Spec) bool {
	n := m.Network
	return spec.Seed == 0 && n != nil && (n.Routing == fabric.ECMP || n.Routing == "") &&
		spec.Engine.Fidelity != "alpha" &&
		spec.Engine.Fidelity != "step" && !spec.frameByFrameRouted()
}

// frameByFrameRouted reports whether the Spec has frames choose routes.
func (s *Spec) frameByFrameRouted() bool {
	return netpreset.Framed(s.Network.Model) && s.Network.Balance != "" && s.Network.Balance != "queue-pair"
}

// MayDraw reports whether rows may be medians of draws of hashed routes.
func (r *Running) MayDraw() bool { return r.Site.Draws(&r.Spec) }

// SeedText names the seed: "drawn" where rows may be medians of draws, which they name.
func (r *Running) SeedText() string {
	if r.MayDraw() {
		return "drawn"
	}
	return fmt.Sprint(r.Spec.seed())
}

// hash is how an operation's queue pairs may be spread; binds is false where no draw matters.
// It is nil where that binds and loads are not known.
func (r *Running) hash(ctx context.Context, at Operation) (h *sim.Hash, binds bool, err error) {
	if at.Count == 0 || !r.MayDraw() {
		return nil, false, nil
	}
	out, err := r.planned(at, false, false)
	if err != nil || out.Plan == nil || out.Kernel != nil || out.Copies != nil {
		return nil, false, nil // the simulation meets the error again
	}
	x, err := r.executor(nil)
	if err != nil {
		return nil, false, err
	}
	h, err = x.Hashed(ctx, out.Plan)
	if errors.Is(err, exec.ErrNotImplemented) {
		return nil, true, nil
	}
	var none *fabric.NoRouteError
	if errors.As(err, &none) {
		return nil, false, nil // likewise
	}
	return h, h != nil, err
}

// vary is the run with a seed and other settings of the simulator; nil: none.
func (r *Running) vary(seed uint64, change func(*sim.Config)) *Running {
	v := &Running{Spec: r.Spec, Site: r.Site, opt: r.opt, fn: r.fn, sizes: r.sizes, types: r.types,
		redops: r.redops, roots: r.roots,
		planner: r.planner, change: change}
	v.Spec.Seed, v.Spec.Engine.NoProof, v.Spec.Engine.Rivals = seed, true, false
	return v
}

// seeded is the run of a seed; the sizes of a sweep share what was simulated of it.
func (r *Running) seeded(seed uint64) *Running {
	r.seedsMu.Lock()
	defer r.seedsMu.Unlock()
	if r.seeds == nil {
		r.seeds = map[uint64]*Running{}
	}
	if r.seeds[seed] == nil {
		r.seeds[seed] = r.vary(seed, nil)
	}
	return r.seeds[seed]
}

// Of is the run that an outcome is of: another one than r where it is the median of draws.
func (r *Running) Of(o *Outcome) *Running { return r.drawn(o) }

// drawn is the run whose draw an outcome is: r itself where no draw matters.
func (r *Running) drawn(o *Outcome) *Running {
	if o.Draws == nil {
		return r
	}
	return r.seeded(o.Draws.Seed)
}

// Adaptive has the run's network choose the routes of queue pairs by what they meet, in place
// of a hash.
func (r *Running) Adaptive() {
	r.change = func(c *sim.Config) {
		if c.Fabric != nil {
			c.Fabric = c.Fabric.Routed(fabric.Adaptive)
		}
	}
}

// simConfig is the simulator's configuration.
func (r *Running) simConfig() (sim.Config, error) {
	cfg, err := r.Site.SimConfig(&r.Spec)
	if err == nil && r.change != nil {
		r.change(&cfg)
	}
	return cfg, err
}

// Drawn simulates an operation as Simulate does, but the median of several draws where its
// routes are hashed and the Spec has no seed: the Outcome then has Draws. spread has it try
// settings that spread queue pairs, too, where the draws differ much.
func (r *Running) Drawn(ctx context.Context, at Operation, spread bool, progress func(float64)) (Outcome,
	error) {
	h, binds, err := r.hash(ctx, at)
	if err != nil {
		return Outcome{}, err
	}
	if !binds {
		return r.Simulate(ctx, at, trace.Discard, nccl.Options{}, progress)
	}
	return r.draw(ctx, at, h, spread, progress)
}

// draw simulates the draws of an operation and returns the median one.
func (r *Running) draw(ctx context.Context, at Operation, h *sim.Hash, spread bool, progress func(float64)) (
	Outcome, error) {
	g := &drawing{r: r, at: at, outcomes: map[uint64]Outcome{}, progress: progress}
	n, seeds, err := r.representative(h)
	if err != nil {
		return Outcome{}, err
	}
	if err := g.simulate(ctx, seeds); err != nil {
		return Outcome{}, err
	}
	if n > len(seeds) && !g.ordered(seeds) {
		if n, seeds = fewDraws, upTo(fewDraws); err == nil {
			err = g.simulate(ctx, seeds)
		}
		if err != nil {
			return Outcome{}, err
		}
	}
	out := g.median(n, seeds)
	if err := r.crowd(h, &out); err != nil {
		return Outcome{}, err
	}
	if err := r.prove(at, &out); err != nil {
		return Outcome{}, err
	}
	if spread && r.OfDraws == 0 && out.Draws.Band() > banded-1 {
		err = r.spread(ctx, at, &out)
	}
	return out, err
}

// representative is which seeds represent how many: those at equal distances in the order of
// what their fullest cables need.
func (r *Running) representative(h *sim.Hash) (n int, seeds []uint64, err error) {
	if r.OfDraws == 1 && (h == nil || netpreset.Framed(r.Spec.Network.Model)) {
		return 1, upTo(1), nil
	}
	if h == nil || netpreset.Framed(r.Spec.Network.Model) {
		return fewFrames, upTo(fewFrames), nil
	}
	need := map[uint64]units.Time{}
	all := upTo(drawsN)
	for _, s := range all {
		l, err := h.Fullest(s, "")
		if err != nil {
			return 0, nil, err
		}
		need[s] = l.Need
	}
	slices.SortStableFunc(all, func(a, b uint64) int { return cmp.Compare(need[a], need[b]) })
	if r.OfDraws == 1 {
		return drawsN, all[drawsN/2 : drawsN/2+1], nil
	}
	for i := range fewFrames {
		seeds = append(seeds, all[i*(drawsN-1)/(fewFrames-1)])
	}
	return drawsN, seeds, nil
}

// upTo is the seeds from 1 to n.
func upTo(n int) []uint64 {
	out := make([]uint64, n)
	for i := range out {
		out[i] = uint64(i + 1)
	}
	return out
}

// drawing simulates draws of one operation.
type drawing struct {
	r        *Running
	at       Operation
	mu       sync.Mutex
	outcomes map[uint64]Outcome
	progress func(float64)
}

// simulate simulates the seeds that were not yet, side by side.
func (g *drawing) simulate(ctx context.Context, seeds []uint64) error {
	var todo []uint64
	for _, s := range seeds {
		if _, ok := g.outcomes[s]; !ok {
			todo = append(todo, s)
		}
	}
	errs := make([]error, len(todo))
	var done atomic.Int64
	parallel.Each(max(1, cmp.Or(g.r.cores, g.r.workers())), len(todo), func(i int) {
		run := g.r.seeded(todo[i])
		out, err := run.Simulate(ctx, g.at, trace.Discard, nccl.Options{}, nil)
		errs[i] = err
		g.mu.Lock()
		g.outcomes[todo[i]] = out
		g.mu.Unlock()
		if n := done.Add(1); g.progress != nil {
			g.progress(float64(n) / float64(len(todo)))
		}
	})
	return errors.Join(errs...)
}

// ordered reports whether times follow the order of seeds.
func (g *drawing) ordered(seeds []uint64) bool {
	longest := units.Time(0)
	for _, s := range seeds {
		t := g.outcomes[s].Result.Elapsed
		if float64(t) < (1-inOrder)*float64(longest) {
			return false
		}
		longest = max(longest, t)
	}
	return true
}

// median is the median outcome of the seeds, which represent n.
func (g *drawing) median(n int, seeds []uint64) Outcome {
	sorted := slices.Clone(seeds)
	slices.SortStableFunc(sorted, func(a, b uint64) int {
		return cmp.Compare(g.outcomes[a].Result.Elapsed, g.outcomes[b].Result.Elapsed)
	})
	d := &Draws{N: n}
	for i, s := range sorted {
		d.Simulated = append(d.Simulated, Draw{s, g.outcomes[s].Result.Elapsed.Micros(),
			share(i, len(sorted), n)})
	}
	middle := d.Simulated[len(sorted)/2]
	d.Seed, d.MedianUs, d.LeastUs, d.MostUs = middle.Seed, middle.Us, d.Simulated[0].Us,
		d.Simulated[len(sorted)-1].Us
	out := g.outcomes[d.Seed]
	out.Draws = d
	return out
}

// share is how many of n draws the i-th of k represents, at equal distances from the first to
// the last: those that are nearer to it than to others.
func share(i, k, n int) int {
	if k == 1 {
		return n
	}
	edge := func(i int) int { // draws before the middle between the i-th and the one before it
		switch i {
		case 0:
			return 0
		case k:
			return n
		}
		return ((2*i-1)*(n-1)/(k-1) + 1 + 1) / 2
	}
	return edge(i+1) - edge(i)
}

// crowd names the cable that holds the median draw up.
func (r *Running) crowd(h *sim.Hash, out *Outcome) error {
	if h == nil || out.Draws.Band() < same {
		return nil
	}
	limit, _ := Limiting(out.Result.Links)
	l, err := h.Fullest(out.Draws.Seed, limit.Name)
	if err == nil && l.Beside > 1 && float64(l.Need) > banded*float64(l.Even) {
		out.Draws.Crowd = &Crowd{Link: l.Name, QueuePairs: l.Pairs, Of: l.Of, Beside: l.Beside}
	}
	return err
}

// Eight queue pairs of a connection that share its bytes: what is tried to spread them.
const (
	manyQPs   = 8
	spreadQPs = "NCCL_IB_QPS_PER_CONNECTION=8 NCCL_IB_SPLIT_DATA_ON_QPS=1"
	adaptive  = "adaptive routing"
)

// spread simulates settings that spread queue pairs over cables.
func (r *Running) spread(ctx context.Context, at Operation, out *Outcome) error {
	for _, s := range []struct {
		name   string
		change func(*sim.Config)
		skip   bool
	}{
		{spreadQPs, func(c *sim.Config) { c.QPs, c.SplitData = manyQPs, true },
			r.Site.Between() == gpu.Sockets},
		{adaptive, func(c *sim.Config) { c.Fabric = c.Fabric.Routed(fabric.Adaptive) },
			netpreset.Framed(r.Spec.Network.Model)},
	} {
		if s.skip {
			continue
		}
		v := r.vary(out.Draws.Seed, s.change)
		v.cores = r.cores
		done, err := v.Simulate(ctx, at, trace.Discard, nccl.Options{}, nil)
		if errors.Is(err, exec.ErrNotImplemented) {
			continue // too many messages to be simulated
		}
		if err != nil {
			return err
		}
		out.Draws.Spread = append(out.Draws.Spread,
			Spread{s.name, math.Round(1e4*done.Result.Elapsed.Micros()) / 1e4})
	}
	return nil
}
