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

// tried is a candidate that was simulated.
type tried struct {
	candidate
	factor float64
	ratio  []float64 // of times with it to those without, at the sampled rows, or the anchors
	score  float64
	misfit float64
	same   bool // its curve is that of the one before, as far as the table shows
}

// What the right suspect leaves of measured over simulated times, as ln, is of two kinds: scatter from
// run to run, of each size by itself, and what the simulated machine is off by, which is much the same at
// sizes that are close: its correlation falls to 1/e over a factor of far in bytes. How large both are, the
// table says (see tempered): scatter is no less than two runs differ by, and a bias is less likely the more
// it is than usual, what the classes of machines that nothing was measured on state.
type doubt struct{ scatter, bias float64 }

const (
	far   = 64
	usual = 0.3
)

var (
	scatters = [...]float64{0.05, 0.08, 0.12, 0.2, 0.3}
	biases   = [...]float64{0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.5, 0.8}
)

// fit is how badly ratios follow the measured ones, over some places: -2 ln of their likelihood under a
// doubt, but for a constant.
func (h *hunt) fit(ratio []float64, places []int, of doubt) float64 {
	d := make([]float64, len(places))
	for i, at := range places {
		d[i] = h.measured[at] - math.Log(ratio[i])
	}
	off, width := h.distance(d, places, of)
	return off + width
}

// distance is how far differences of logarithms at some places are from none, squared, in what a doubt makes
// of them, and ln of the determinant of its covariance. d is overwritten.
func (h *hunt) distance(d []float64, places []int, of doubt) (off, width float64) {
	// The covariance's triangular root, row by row, and the differences divided by it.
	root := make([][]float64, len(places))
	for i, at := range places {
		root[i] = make([]float64, i+1)
		for k := range i + 1 {
			apart := math.Abs(h.size(at)-h.size(places[k])) / math.Log(far)
			v := of.bias * of.bias * math.Exp(-apart)
			if k == i {
				v += of.scatter * of.scatter
			}
			for j := range k {
				v -= root[i][j] * root[k][j]
			}
			if k < i {
				root[i][k] = v / root[k][k]
				d[i] -= root[i][k] * d[k]
			} else {
				root[i][i] = math.Sqrt(v)
			}
		}
		d[i] /= root[i][i]
		off, width = off+d[i]*d[i], width+2*math.Log(root[i][i])
	}
	return off, width
}

// size is ln of the bytes of a sampled row.
func (h *hunt) size(at int) float64 { return math.Log(float64(h.b.table.rows[h.rows[at]].bytes)) }

// tempered is the doubt under which the likeliest of some suspects, or none, is likeliest: curves that are
// off by more than runs differ are those of a machine that is not quite the simulated one, and
// distinguish less.
func (h *hunt) tempered(tries []tried, places []int) (best doubt) {
	least := math.Inf(1)
	for _, s := range scatters {
		for _, b := range biases {
			of := doubt{s, b}
			v := h.fit(ones(len(places)), places, of)
			for i := range tries {
				v = min(v, h.fit(tries[i].ratio, places, of)+2*tries[i].supposes())
			}
			if v += b * b / (usual * usual); v < least {
				best, least = of, v
			}
		}
	}
	return best
}

func ones(n int) []float64 {
	out := make([]float64, n)
	for i := range out {
		out[i] = 1
	}
	return out
}

// run tries all candidates: at one size first, then at three, and those that may fit at all sampled ones.
func (h *hunt) run(ctx context.Context) error {
	var left []tried
	for _, c := range candidates(&h.place, h.left) {
		if t := h.begin(ctx, c); t != nil {
			left = append(left, *t)
		}
		if err := ctx.Err(); err != nil {
			return err
		}
	}
	of := h.tempered(left, h.anchors)
	for i := range left {
		left[i].misfit = h.fit(left[i].ratio, h.anchors, of)
	}
	slices.SortStableFunc(left, func(a, b tried) int {
		return cmp.Compare(a.misfit/2+a.supposes(), b.misfit/2+b.supposes())
	})
	var whole []tried
	for _, t := range h.promising(left) {
		if t.ratio = h.ratios(ctx, &t, all(len(h.rows))); t.ratio != nil {
			whole = append(whole, t)
			if t.fitted && h.refine(ctx, &t) {
				whole = append(whole, t)
			}
		}
	}
	h.report(h.judged(whole))
	return ctx.Err()
}

// refine finds the factor by the mean of all sizes at which a suspect shows at least half as much as
// where it shows most, if it is another than by the first anchor: that one is off by chance, too.
func (h *hunt) refine(ctx context.Context, t *tried) bool {
	least := math.Log(slices.Max(t.ratio)) / 2
	by, n := 0.0, 0.0
	for k, r := range t.ratio {
		if math.Log(r) >= least {
			by, n = by+h.measured[k]-math.Log(r), n+1
		}
	}
	factor := digits(t.factor * math.Exp(by/n))
	if math.Abs(by/n) < 0.02 || factor == t.factor {
		return false
	}
	t.factor = factor
	t.ratio = h.ratios(ctx, t, all(len(h.rows)))
	return t.ratio != nil
}

// digits keeps three of a factor, within what is tried, so that what was simulated is what is said.
func digits(f float64) float64 {
	f, _ = strconv.ParseFloat(strconv.FormatFloat(min(max(f, 1.02), strongest), 'g', 3, 64), 64)
	return f
}

// supposes is what a suspect assumes; a factor that is found from the times is one more assumption.
func (t *tried) supposes() float64 {
	if t.fitted {
		return t.assumes + 1
	}
	return t.assumes
}

// judged are suspects whose curve explains more than it assumes, best first. Where the machine is slower
// as a whole the likeliest few are named all the same: they say what to look at.
func (h *hunt) judged(tries []tried) (out []tried) {
	places := all(len(h.rows))
	of := h.tempered(tries, places)
	without := h.fit(ones(len(places)), places, of)
	for i := range tries {
		t := &tries[i]
		t.misfit = h.fit(t.ratio, places, of)
		t.score = t.misfit/2 + t.supposes() - h.weight(t.kind)
	}
	slices.SortStableFunc(tries, func(a, b tried) int { return cmp.Compare(a.score, b.score) })
	kinds := map[string]bool{}
	for _, t := range tries {
		explains := (without - t.misfit) / 2
		if explains > t.assumes+3 || explains > 0 && h.weight(t.kind) >= sure ||
			h.slower && explains > 0 && len(kinds) < fewest {
			out, kinds[t.kind] = append(out, t), true
		}
	}
	return h.sets(out, of)
}

// sets has suspects whose curves nothing in the input separates follow the best of them: those of the same
// change, or whose curves differ by so little that times of them would name the right one with odds of less
// than e: by the doubt that the table itself shows, but no more of a bias than the machine's class states.
// Files that name one of them separate it.
func (h *hunt) sets(tries []tried, of doubt) (out []tried) {
	of.bias, of.scatter = min(of.bias, h.before.bias), min(of.scatter, h.before.scatter)
	set := make([]int, len(tries))
	for i := range tries {
		if set[i] != 0 {
			continue
		}
		set[i] = i + 1
		tries[i].same = false
		out = append(out, tries[i])
		for k := i + 1; k < len(tries); k++ {
			if set[k] == 0 && h.weight(tries[k].kind) == h.weight(tries[i].kind) &&
				h.between(&tries[i], &tries[k], of) < 1 {
				set[k], tries[k].same = i+1, true
				out = append(out, tries[k])
			}
		}
	}
	return out
}

// between is ln of the odds by which times of one curve would distinguish it from another.
func (h *hunt) between(a, b *tried, of doubt) float64 {
	d := make([]float64, len(a.ratio))
	for k := range d {
		d[k] = math.Log(a.ratio[k] / b.ratio[k])
	}
	off, _ := h.distance(d, all(len(d)), of)
	return off / 2
}

// deep is how many curves are simulated at all sampled sizes, and apart by how much they may be worse
// than the best at the anchors, as -2 ln.
const deep, apart = 10, 20

// promising are the candidates that are simulated at all sampled sizes, of those that are sorted.
func (h *hunt) promising(left []tried) (out []tried) {
	best := math.Inf(1)
	for i := range left {
		best = min(best, left[i].misfit)
	}
	curves := map[string]bool{}
	for i := range left {
		t := &left[i]
		curves[h.curve(t)] = true
		if t.misfit <= best+apart && len(curves) <= deep {
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
		gain := h.fit(ones(n), at, h.before) - h.fit(t.ratio, at, h.before)
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
		return nil
	}
	ratio := make([]float64, len(outs))
	for k := range outs {
		ratio[k] = outs[k].Result.Elapsed.Micros() / h.base[places[k]]
	}
	return ratio
}

// report names the best of each kind, as far as they explain about as well as the best, and those that the
// table does not distinguish from these.
func (h *hunt) report(all []tried) {
	// begins: the first of a set was of a kind that is named already
	ranks, begins := len(h.rep.Suspects), false
	for i := range all {
		t := &all[i]
		if !t.same {
			if ranks >= mostSuspects || ranks >= fewest && t.score > all[0].score+12 {
				break
			}
			ranks++
			begins = true
		}
		if slices.ContainsFunc(h.rep.Suspects, func(s Suspect) bool { return s.Kind == t.kind }) {
			continue
		}
		s := h.suspect(t)
		s.same, begins = !begins, false
		h.rep.Suspects = append(h.rep.Suspects, s)
	}
}

func (h *hunt) suspect(t *tried) Suspect {
	s := Suspect{Kind: t.kind, What: t.what, Explains: round(h.explains(t)), Prove: t.prove, Remedy: t.remedy,
		Evidence: []string{h.where(t)}}
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
