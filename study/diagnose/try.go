package diagnose

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/simccl/simccl/exec"
	"github.com/simccl/simccl/sim"
)

// tried is a candidate that was simulated.
type tried struct {
	candidate
	factor float64
	ratio  []float64 // of times with it to those without, at the sampled rows, or the anchors
	score  float64   // ln of its odds against that nothing is wrong, below 0
	set    int       // of those whose curves the table does not distinguish, from 1
}

// run tries all candidates: at one size first, then at three, in lockstep, and those that may fit at all
// sampled ones, with jitter.
func (h *hunt) run(ctx context.Context) error {
	jittered, err := h.lockstep(ctx)
	if err != nil {
		return err
	}
	var left []tried
	for _, c := range candidates(&h.place, h.left) {
		if t := h.begin(ctx, c); t != nil {
			left = append(left, *t)
		}
		if err := ctx.Err(); err != nil {
			return err
		}
	}
	jittered()
	h.sort(left, h.anchors)
	var whole []tried
	for _, t := range h.promising(left) {
		if t.ratio = h.ratios(ctx, &t, all(len(h.rows))); t.ratio != nil {
			whole = append(whole, t)
		}
	}
	h.sort(whole, all(len(h.rows)))
	for i := range whole {
		if whole[i].score <= whole[0].score+apart {
			whole[i] = h.refine(ctx, whole[i])
		}
	}
	h.report(h.judged(whole))
	return ctx.Err()
}

// lockstep has suspects tried without jitter, where it is simulated at all: large sizes take up to forty
// times as long with it. Without it the right suspect left up to 14 % of the times of 16 and 64 MiB that
// TestRightSuspectLeavesNothing has, so that factors and curves are found anew with it. What it returns puts
// jitter back.
func (h *hunt) lockstep(ctx context.Context) (back func(), err error) {
	on, base := h.on, h.base
	if on.run.Site.Comm.NRanks > sim.JitterRanks || on.spec.Engine.Jitter == "off" {
		return func() {}, nil
	}
	h.on = &bench{table: on.table, spec: on.spec.Clone(), opt: on.opt}
	h.on.spec.Engine.Jitter = "off"
	if err := h.on.prepare(); err != nil {
		return nil, err
	}
	outs, err := h.on.simulate(ctx, h.on.run, h.rows)
	h.base = nil
	for k := range outs {
		h.base = append(h.base, outs[k].Result.Elapsed.Micros())
	}
	return func() {
		h.on, h.base = on, base
		clear(h.known)
	}, err
}

// refine has the factor follow the mean of all sizes at which a suspect shows at least half as much as where
// it shows most, as long as that is another: that of the first anchor is off by chance, too. The likeliest is
// kept.
func (h *hunt) refine(ctx context.Context, t tried) (best tried) {
	places := all(len(h.rows))
	best = t
	most, _ := h.likely(&t, places)
	for range 2 {
		least := math.Log(slices.Max(t.ratio)) / 2
		by, n := 0.0, 0.0
		for k, r := range t.ratio {
			if math.Log(r) >= least {
				by, n = by+h.measured[k]-math.Log(r), n+1
			}
		}
		factor := digits(t.factor * math.Exp(by/n))
		if !t.fitted || math.Abs(by/n) < 0.01 || factor == t.factor {
			break
		}
		t.factor = factor
		if t.ratio = h.ratios(ctx, &t, places); t.ratio == nil {
			break
		}
		if ln, _ := h.likely(&t, places); ln > most {
			best, most = t, ln
		}
	}
	return best
}

// digits keeps three of a factor, within what is tried, so that what was simulated is what is said.
func digits(f float64) float64 {
	f, _ = strconv.ParseFloat(strconv.FormatFloat(min(max(f, 1.02), strongest), 'g', 3, 64), 64)
	return f
}

// deep is how many curves are simulated at all sampled sizes, and apart by how much less likely than the best
// they may be at the anchors, as ln.
const deep, apart = 16, 9

// promising are the candidates that are simulated at all sampled sizes, of those that are sorted.
func (h *hunt) promising(left []tried) (out []tried) {
	curves := map[string]bool{}
	for i := range left {
		t := &left[i]
		curves[h.curve(t)] = true
		if t.score <= left[0].score+apart && len(curves) <= deep {
			out = append(out, *t)
		}
	}
	return out
}

// curve names what is simulated for a candidate of a factor.
func (h *hunt) curve(t *tried) string {
	return fmt.Sprint(cmp.Or(h.place.curve(&t.candidate), t.kind+" "+t.what), " ", t.factor)
}

// begin simulates a candidate at the first anchor, and where it explains something of it at all; of a
// fitted one it finds the factor, there or, where that contradicts the others, at the last. nil: the
// candidate cannot be here, or explains nothing.
func (h *hunt) begin(ctx context.Context, c candidate) *tried {
	if !c.fitted {
		return h.explain(ctx, &tried{candidate: c, factor: 1})
	}
	for _, at := range []int{h.anchors[0], len(h.rows) - 1} {
		t := &tried{candidate: c, factor: 1}
		if h.factored(ctx, t, at) {
			if t = h.explain(ctx, t); t != nil {
				return t
			}
		}
	}
	return nil
}

// explain simulates a candidate at the anchors as long as it may explain something; nil where it does not.
// What the machine lacks at large sizes may be hidden at the first anchor, where it is off by itself.
func (h *hunt) explain(ctx context.Context, t *tried) *tried {
	must := h.slower || h.weight(t.kind) >= sure // what it is has to be said
	for n := 1; n <= len(h.anchors); n++ {
		at := h.anchors[:n]
		if t.ratio = h.ratios(ctx, t, at); t.ratio == nil {
			return nil
		}
		need := min(float64(n), 2)
		if must {
			need = 0.1
		}
		gain := h.fit(ones(n), at, equals) - h.fit(t.ratio, at, equals)
		if gain < need && (!must || n == len(h.anchors) || gain < -need) {
			return nil
		}
	}
	return t
}

// factored finds the factor of a fitted candidate that explains a sampled row. What bounds the time takes
// as many times as long as it is slower, beyond a factor that something else hides.
func (h *hunt) factored(ctx context.Context, t *tried, at int) bool {
	want := h.measured[at]
	if want < 0.05 || want > math.Log(t.most()) {
		return false
	}
	next, hidden := math.Exp(want), 0.0 // hidden: ln of the ratio at a factor that was too small
	for range 5 {
		if next = digits(next); t.factor == next {
			break
		}
		t.factor = next
		r := h.ratios(ctx, t, []int{at})
		if r == nil {
			return false
		}
		got := math.Log(r[0])
		switch {
		case math.Abs(got-want) < 0.03:
			return true
		case got < want && t.factor >= strongest:
			return got > 0.03
		case got < want && got-hidden < 0.03: // the ratio does not follow the factor yet
			next = 2 * t.factor * math.Exp(want-got)
		default:
			next = t.factor * math.Exp(want-got)
		}
		hidden = got
	}
	return true
}

// strongest is the largest factor that is tried.
const strongest = 16

// ratios simulates a candidate at places of the sampled rows, those that were not simulated before; nil where
// it cannot be.
func (h *hunt) ratios(ctx context.Context, t *tried, places []int) []float64 {
	key := func(at int) string {
		return fmt.Sprint(h.curve(t), " ", at)
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
		if _, costly := errors.AsType[*exec.NotImplementedError](err); costly {
			h.note("not tried, as its simulation takes too long or is not possible: %s", t.kind)
		}
		return nil
	}
	ratio := make([]float64, len(outs))
	for k := range outs {
		ratio[k] = outs[k].Result.Elapsed.Micros() / h.base[places[k]]
	}
	return ratio
}

// report names suspects of a few ranks, as far as one of each explains about as well as the best.
func (h *hunt) report(all []tried) {
	named := map[int]bool{}
	for i := range all {
		t := &all[i]
		if n := len(named); !named[t.set] &&
			(n >= mostSuspects || n >= fewest && t.score > all[0].score+12) {
			continue
		}
		named[t.set] = true
		h.rep.Suspects = append(h.rep.Suspects, h.suspect(t))
	}
}

func (h *hunt) suspect(t *tried) Suspect {
	s := Suspect{Kind: t.kind, set: t.set, What: t.what, Explains: round(h.explains(t)), Prove: t.prove,
		Remedy: t.remedy, Evidence: []string{h.where(t)}}
	for k, at := range h.rows {
		s.Curve = append(s.Curve, Point{h.b.table.rows[at].bytes, h.es[at].us * t.ratio[k]})
	}
	if len(h.m.tables) > 1 {
		s.Table = h.b.table.name()
	}
	if t.fitted {
		s.What = strings.ReplaceAll(t.what, "%s", strconv.FormatFloat(t.factor, 'g', 3, 64))
	}
	for _, f := range h.m.facts {
		if f.kind == t.kind {
			s.Evidence = append(s.Evidence, f.text)
		}
	}
	return s
}

// mostSuspects bounds the ranks of suspects of a report; fewest kinds are named of what is slower.
const mostSuspects, fewest = 6, 3

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
