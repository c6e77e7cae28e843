package diagnose

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Suspects are simulated at so many sizes of a table: of the others the ratio lies between.
const (
	sampled     = 10
	sampledMany = 4 // of more than many ranks
	many        = 32
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
	return worst.run(ctx)
}

func newHunt(q *work, b *bench, es []expected) *hunt {
	h := &hunt{work: q, b: b, es: es, known: map[string]float64{}}
	farthest := 0
	for i, row := range b.table.rows {
		h.every = append(h.every, math.Log(row.us/es[i].us))
		if math.Abs(h.every[i]) > math.Abs(h.every[farthest]) {
			farthest = i
		}
	}
	h.rows = sample(b)
	if !slices.Contains(h.rows, farthest) {
		h.rows = append(h.rows, farthest)
		slices.Sort(h.rows)
	}
	for _, i := range h.rows {
		row := b.table.rows[i]
		h.measured = append(h.measured, math.Log(row.us/es[i].us))
		below, _ := b.widths(row.bytes)
		h.spread = append(h.spread, below/2)
	}
	largest, far := len(h.rows)-1, 0
	for k, m := range h.measured {
		if math.Abs(m)/h.spread[k] > math.Abs(h.measured[far])/h.spread[far] {
			far = k
		}
	}
	h.anchors = []int{far}
	if largest != far {
		h.anchors = append(h.anchors, largest)
	}
	return h
}

// sample spreads rows over the table, the smallest and the largest among them.
func sample(b *bench) []int {
	n, k := len(b.table.rows), sampled
	if b.run.Site.Comm.NRanks > many {
		k = sampledMany
	}
	if n <= k {
		return all(n)
	}
	out := make([]int, 0, k)
	for i := range k {
		out = append(out, (i*(n-1)+(k-1)/2)/(k-1))
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

// fit is how badly ratios follow the measured ones, over some places: the mean square of their
// difference by its spread, of no place more than capped.
func (h *hunt) fit(ratio []float64, places []int) float64 {
	const capped = 16
	sum := 0.0
	for k, at := range places {
		d := (h.measured[at] - math.Log(ratio[k])) / h.spread[at]
		sum += min(d*d, capped)
	}
	return sum / float64(len(places))
}

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
	for _, c := range candidates(h.b, h.left) {
		t, ratio := h.begin(ctx, c)
		if err := ctx.Err(); err != nil {
			return err
		}
		if ratio == nil {
			continue
		}
		if t.misfit = h.fit(ratio, h.anchors); t.misfit < 0.7*base {
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
		if t.misfit < 0.6*whole {
			out = append(out, *t)
		}
	}
	h.report(out)
	return ctx.Err()
}

// deep is how many candidates are simulated at all sampled sizes, and apart by how much they may be
// worse than the best at the anchors; few of more than many ranks.
const deep, few, apart = 10, 4, 2.5

// promising are the candidates that are simulated at all sampled sizes, of those that are sorted.
func (h *hunt) promising(left []tried) []tried {
	best := math.Inf(1)
	for i := range left {
		best = min(best, left[i].misfit)
	}
	left = slices.DeleteFunc(left, func(t tried) bool { return t.misfit > best+apart })
	most := deep
	if h.large() {
		most = few
	}
	return left[:min(len(left), most)]
}

// large reports whether a run of every rank by itself takes long.
func (h *hunt) large() bool { return h.b.run.Site.Comm.NRanks > many }

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
	t.factor = 4
	steps := 3
	if h.large() {
		steps = 1
	}
	for range steps {
		r := h.ratios(ctx, t, h.anchors[:1])
		if r == nil {
			return t, nil
		}
		got := math.Log(r[0])
		if math.Abs(got-want) < 0.02 {
			break
		}
		if got < 0.03 && t.factor >= 4 {
			if t.factor >= strongest {
				return t, nil
			}
			t.factor = strongest
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
	tr := h.b.trial()
	if t.change(tr, t.factor) != nil {
		return nil
	}
	r, err := tr.ready()
	if err != nil {
		return nil
	}
	if tr.worst {
		r.OfDraws = 5
	}
	rows := make([]int, len(places))
	for k, at := range places {
		rows[k] = h.rows[at]
	}
	outs, err := h.b.simulate(ctx, r, rows)
	if err != nil {
		return nil
	}
	ratio := make([]float64, len(outs))
	for k := range outs {
		us := outs[k].Result.Elapsed.Micros()
		if d := outs[k].Draws; d != nil && tr.worst {
			us = d.MostUs
		}
		ratio[k] = us / h.es[rows[k]].us
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
