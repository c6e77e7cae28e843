package diagnose

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/units"
)

// Suspects are simulated at so many sizes of a table: of the others the ratio lies between. Of more
// than many ranks they are tried on as many nodes as have these, where nothing describes a network.
const (
	sampled = 10
	many    = 32
)

// Times whose median differs from the expected one by no more than quiet are not explained: two
// machines of a kind differ so.
const quiet = 0.085

// tried is a candidate that was simulated.
type tried struct {
	candidate
	factor float64
	ratio  []float64 // of times with it to those without, at the sampled rows
	score  float64
	misfit float64
}

// hunt is a search for suspects on one table.
type hunt struct {
	*work
	b        *bench
	es       []expected
	every    []float64          // ln of measured to expected time, at all rows
	rows     []int              // sampled rows
	on       *bench             // what suspects are tried on: b, or fewer of its nodes
	base     []float64          // us at sampled rows, without a suspect
	measured []float64          // ln of measured to expected time, at them
	spread   []float64          // what a difference of logarithms is measured by
	anchors  []int              // places in rows
	known    map[string]float64 // ratios by change, factor and row; NaN where the change cannot be
}

// suspects tries what may explain the first table whose times are off.
func (q *work) suspects(ctx context.Context) error {
	var worst *hunt
	most := 0.0
	for i, b := range q.benches {
		h := newHunt(q, b, q.expects[i])
		if r := h.rms(h.every); h.off() && (worst == nil || r > most) {
			worst, most = h, r
		}
	}
	if worst == nil {
		return nil
	}
	if err := worst.bench(ctx); err != nil {
		return err
	}
	return worst.run(ctx)
}

// bench makes what suspects are tried on: the machine in lockstep, of many ranks and where nothing
// describes a network between them fewer of its nodes. Ratios of times are much the same there.
func (h *hunt) bench(ctx context.Context) error {
	site, t := h.b.run.Site, *h.b.table
	h.on = &bench{table: &t, spec: h.b.spec.Clone(), opt: h.b.opt}
	h.on.spec.Engine.Jitter = "off"
	per := site.Comm.NRanks / max(site.Comm.NNodes, 1)
	n := max(2, many/per)
	if nodes := h.on.spec.Machine.Nodes; site.Comm.NRanks > many && n < site.Comm.NNodes &&
		site.Network == nil &&
		len(nodes) == 1 {
		nodes[0].Count = n
	}
	if err := h.on.prepare(); err != nil || h.on.run.Site.Comm.NRanks != h.on.run.Site.Comm.NNodes*per {
		h.on.spec.Machine.Nodes = h.b.spec.Machine.Nodes // a part of the machine is none by itself
		if err = h.on.prepare(); err != nil {
			return err
		}
	}
	on := h.on.run.Site.Comm
	t.rows = slices.Clone(t.rows)
	for i := range t.rows {
		if r := &t.rows[i]; on.NRanks != site.Comm.NRanks {
			r.op.Count = coll.ExactSizes(t.fn, units.Bytes(r.bytes), r.op.Type, on.NRanks).Count
		}
	}
	if on.NNodes != site.Comm.NNodes {
		h.note("suspects were tried on %d of the %d nodes", on.NNodes, site.Comm.NNodes)
	}
	outs, err := h.on.simulate(ctx, h.on.run, h.rows)
	for k := range outs {
		h.base = append(h.base, outs[k].Result.Elapsed.Micros())
	}
	return err
}

func newHunt(q *work, b *bench, es []expected) *hunt {
	h := &hunt{work: q, b: b, es: es, known: map[string]float64{}}
	for i, row := range b.table.rows {
		h.every = append(h.every, math.Log(row.us/es[i].us))
	}
	h.rows = h.sample()
	for _, i := range h.rows {
		h.measured = append(h.measured, h.every[i])
		below, _ := b.widths(b.table.rows[i].bytes)
		h.spread = append(h.spread, below/2)
	}
	z := func(k int) float64 { return math.Abs(h.measured[k]) / h.spread[k] }
	most := slices.MaxFunc(all(len(h.rows)), func(i, k int) int { return cmp.Compare(z(i), z(k)) })
	// Of sizes that are about as far off the smallest is simulated soonest.
	far := slices.IndexFunc(all(len(h.rows)), func(k int) bool { return z(k) >= 0.8*z(most) })
	h.anchors = []int{far}
	if largest := len(h.rows) - 1; largest != far {
		h.anchors = append(h.anchors, largest)
	}
	return h
}

// sample spreads rows over the table, the smallest, the farthest off and the last that counts among
// them: beyond plateau sizes that are off as much as it say nothing new.
func (h *hunt) sample() (out []int) {
	const plateau = 256 << 20
	rows := h.b.table.rows
	n := len(rows)
	for n > 2 && rows[n-2].bytes >= plateau && math.Abs(h.every[n-1]-h.every[n-2]) < 0.05 {
		n--
	}
	if n <= sampled {
		return all(n)
	}
	for i := range sampled {
		out = append(out, (i*(n-1)+(sampled-1)/2)/(sampled-1))
	}
	farthest := slices.MaxFunc(all(n), func(i, k int) int {
		return cmp.Compare(math.Abs(h.every[i]), math.Abs(h.every[k]))
	})
	if !slices.Contains(out, farthest) {
		out = append(out, farthest)
		slices.Sort(out)
	}
	return out
}

func (h *hunt) rms(d []float64) float64 {
	sum := 0.0
	for _, v := range d {
		sum += v * v
	}
	return math.Sqrt(sum / float64(max(len(d), 1)))
}

// off reports whether a size is outside of what is expected, or all of them are off in one direction.
func (h *hunt) off() bool {
	for i, row := range h.b.table.rows {
		if row.us > h.es[i].most || row.us < h.es[i].least {
			return true
		}
	}
	return math.Abs(median(h.every)) > quiet
}

// scatter is by how much single sizes of a table are off a curve that is right, as ln: 5 % from run to
// run, and as much that a simulated difference is wrong by.
const scatter = 0.07

// fit is how badly ratios follow the measured ones, over some places: -2 ln of their likelihood by
// place. All times of a machine may be off by one factor, within what its class states (spread), and
// each by scatter, in Student's distribution of tails degrees of freedom: a size that is off for a
// reason of its own decides nothing.
func (h *hunt) fit(ratio []float64, places []int) float64 {
	const tails = 3
	d := make([]float64, len(places))
	class := 0.0
	for k, at := range places {
		d[k] = h.measured[at] - math.Log(ratio[k])
		class += h.spread[at] / float64(len(places))
	}
	sorted := slices.Sorted(slices.Values(d))
	factor := (sorted[(len(d)-1)/2] + sorted[len(d)/2]) / 2
	factor = max(-2*class, min(factor, 2*class))
	out := factor * factor / (class * class)
	for _, v := range d {
		v = (v - factor) / scatter
		out += (tails + 1) * math.Log1p(v*v/tails)
	}
	return out / float64(len(places))
}

// gain is by how much n places are likelier with a suspect than without, as ln.
func gain(without, with float64, n int) float64 { return float64(n) * (without - with) / 2 }

func ones(n int) []float64 {
	out := make([]float64, n)
	for i := range out {
		out[i] = 1
	}
	return out
}

// run tries all candidates: at two sizes first, then those that may fit at all sampled ones.
func (h *hunt) run(ctx context.Context) error {
	base := h.fit(ones(len(h.anchors)), h.anchors)
	var left []tried
	for _, c := range candidates(h.on, h.left) {
		t, ratio := h.begin(ctx, c)
		if err := ctx.Err(); err != nil {
			return err
		}
		if ratio == nil {
			continue
		}
		if t.misfit = h.fit(ratio, h.anchors); gain(base, t.misfit, len(h.anchors)) > 1 {
			left = append(left, *t)
		}
	}
	slices.SortStableFunc(left, func(a, b tried) int {
		return int(100 * (a.misfit + a.assumes - b.misfit - b.assumes))
	})
	left = h.promising(left)
	places := all(len(h.rows))
	whole := h.fit(ones(len(h.rows)), places)
	n := float64(min(len(h.rows), sampled))
	var out []tried
	for i := range left {
		t := &left[i]
		if t.ratio = h.ratios(ctx, t, places); t.ratio == nil {
			continue
		}
		t.misfit = h.fit(t.ratio, places)
		t.score = n*t.misfit/2 + t.assumes + h.facts(t.kind)
		if t.fitted {
			t.score++ // the factor is one more assumption
		}
		if gain(whole, t.misfit, int(n)) > t.assumes+3 {
			out = append(out, *t)
		}
	}
	h.report(out)
	return ctx.Err()
}

// deep is how many candidates are simulated at all sampled sizes, and apart by how much they may be
// worse than the best at the anchors.
const deep, apart = 10, 6

// promising are the candidates that are simulated at all sampled sizes, of those that are sorted.
func (h *hunt) promising(left []tried) []tried {
	best := math.Inf(1)
	for i := range left {
		best = min(best, left[i].misfit)
	}
	left = slices.DeleteFunc(left, func(t tried) bool { return t.misfit > best+apart })
	return left[:min(len(left), deep)]
}

// facts is what lines of the files say of a kind, as an addition to its score.
func (h *hunt) facts(kind string) float64 {
	if slices.ContainsFunc(h.m.facts, func(f fact) bool { return f.kind == kind }) {
		return -6
	}
	return 0
}

// begin simulates a candidate at the anchors; of a fitted one it finds the factor. It returns nil
// ratios where the candidate cannot be here.
func (h *hunt) begin(ctx context.Context, c candidate) (*tried, []float64) {
	t := &tried{candidate: c, factor: 1}
	if !c.fitted {
		return t, h.ratios(ctx, t, h.anchors)
	}
	want := h.measured[h.anchors[0]]
	if want < 0.05 {
		return t, nil
	}
	t.factor = min(math.Exp(want), strongest)
	for range 3 {
		r := h.ratios(ctx, t, h.anchors[:1])
		if r == nil {
			return t, nil
		}
		got := math.Log(r[0])
		if math.Abs(got-want) < 0.03 {
			break
		}
		if got < 0.03 {
			if t.factor >= strongest {
				return t, nil
			}
			t.factor = min(4*t.factor, strongest)
			continue
		}
		// What bounds takes as many times as long as it is slower, beyond a factor that hides it.
		t.factor *= math.Exp(want - got)
		t.factor = min(max(t.factor, 1.02), strongest)
	}
	t.factor, _ = strconv.ParseFloat(strconv.FormatFloat(t.factor, 'g', 3, 64), 64)
	return t, h.ratios(ctx, t, h.anchors)
}

// strongest is the largest factor that is tried.
const strongest = 16

// ratios simulates a candidate at places of the sampled rows, those that were not simulated before; nil where
// it cannot be.
func (h *hunt) ratios(ctx context.Context, t *tried, places []int) []float64 {
	key := func(at int) string {
		return fmt.Sprint(cmp.Or(t.shared(), t.kind+" "+t.what), " ", t.factor, " ", at)
	}
	var missing []int
	for _, at := range places {
		if _, ok := h.known[key(at)]; !ok {
			missing = append(missing, at)
		}
	}
	if len(missing) > 0 {
		found := h.ratiosOf(ctx, t, missing)
		for k, at := range missing {
			if h.known[key(at)] = math.NaN(); found != nil {
				h.known[key(at)] = found[k]
			}
		}
	}
	out := make([]float64, len(places))
	for k, at := range places {
		if out[k] = h.known[key(at)]; math.IsNaN(out[k]) {
			return nil
		}
	}
	return out
}

func (h *hunt) ratiosOf(ctx context.Context, t *tried, places []int) []float64 {
	tr := h.on.trial()
	if t.change(tr, t.factor) != nil {
		return nil
	}
	r, err := tr.ready()
	if err != nil {
		return nil
	}
	rows := make([]int, len(places))
	for k, at := range places {
		rows[k] = h.rows[at]
	}
	outs, err := h.on.simulate(ctx, r, rows)
	if err != nil {
		return nil
	}
	ratio := make([]float64, len(outs))
	for k := range outs {
		ratio[k] = outs[k].Result.Elapsed.Micros() / h.base[places[k]]
	}
	return ratio
}

// report names the best of each kind, as far as they explain about as well as the best.
func (h *hunt) report(all []tried) {
	slices.SortStableFunc(all, func(a, b tried) int {
		switch {
		case a.score < b.score:
			return -1
		case a.score > b.score:
			return 1
		}
		return 0
	})
	for i := range all {
		t := &all[i]
		if len(h.rep.Suspects) >= mostSuspects || t.score > all[0].score+12 {
			break
		}
		if slices.ContainsFunc(h.rep.Suspects, func(s Suspect) bool { return s.Kind == t.kind }) {
			continue
		}
		s := Suspect{Kind: t.kind, What: t.what, Explains: round(h.explains(t)), Prove: t.prove,
			Remedy:   t.remedy,
			Evidence: []string{h.where(t)}, misfit: t.misfit}
		if t.fitted {
			s.What = strings.ReplaceAll(t.what, "%s", strconv.FormatFloat(t.factor, 'g', 3, 64))
		}
		for _, f := range h.m.facts {
			if f.kind == t.kind {
				s.Evidence = append(s.Evidence, f.text)
			}
		}
		h.rep.Suspects = append(h.rep.Suspects, s)
	}
}

// mostSuspects bounds the suspects of a report.
const mostSuspects = 6

// explains is the geometric mean of its ratios from 1 MiB on, or of all.
func (h *hunt) explains(t *tried) float64 {
	sum, n := 0.0, 0
	for _, from := range []int64{large, 0} {
		for k, i := range h.rows {
			if h.b.table.rows[i].bytes >= from {
				sum += math.Log(t.ratio[k])
				n++
			}
		}
		if n > 0 {
			break
		}
	}
	return math.Exp(sum / float64(n))
}

// where says at which sizes a suspect shows, and at which not.
func (h *hunt) where(t *tried) string {
	var shows, not []string
	for k, i := range h.rows {
		text := fmt.Sprint(h.b.table.rows[i].bytes)
		if math.Abs(math.Log(t.ratio[k])) > 0.1 {
			shows = append(shows, fmt.Sprintf("%s (%.2f, measured %.2f)", text, t.ratio[k],
				math.Exp(h.measured[k])))
		} else {
			not = append(not, text)
		}
	}
	text := "simulated, it shows at " + strings.Join(shows, ", ") + " B"
	if len(shows) == 0 {
		text = "simulated, it shows at no size"
	}
	if len(not) > 0 {
		text += "; not at " + strings.Join(not, ", ") + " B"
	}
	return text
}
