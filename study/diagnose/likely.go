package diagnose

import (
	"cmp"
	"math"
	"slices"
	"sync"
)

// What the right suspect leaves of measured over simulated times, as ln, is of two kinds: scatter from
// run to run, of each size by itself, and what the simulated machine is off by, which is much the same at
// sizes that are close: its correlation falls to 1/e over a factor of far in bytes. How large both are is
// not known, and is not the same for all suspects: each is judged by the mean of its likelihood over both,
// all of a logarithmic scale equally likely, but a bias the less, the more it is than usual, what the
// classes of machines that nothing was measured on state. A curve that leaves no bias says that the
// simulated machine is right, and is far ahead of one that leaves some; where all leave some, they are close.
type doubt struct{ scatter, bias float64 }

const (
	far   = 64
	usual = 0.3
)

var (
	scatters = [...]float64{0.02, 0.03, 0.05, 0.08, 0.12, 0.2, 0.3}
	biases   = [...]float64{0.005, 0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64}
)

// likely is ln of the likelihood of the measured times at some places by a suspect, but for a constant, and
// the doubt under which it is largest.
func (h *hunt) likely(t *tried, places []int) (ln float64, best doubt) {
	most, sum, total := math.Inf(-1), 0.0, 0.0
	var all []float64
	for _, s := range scatters {
		for _, b := range biases {
			of, weight := doubt{s, b}, math.Exp(-b*b/(2*usual*usual))
			v := math.Log(weight) - h.fit(t.ratio, places, of)/2
			if t.fitted {
				v += t.chance(h.blur(t, places, of))
			}
			if all, total = append(all, v), total+weight; v > most {
				most, best = v, of
			}
		}
	}
	for _, v := range all {
		sum += math.Exp(v - most)
	}
	return most + math.Log(sum/total), best
}

// blur is by how much ln of a suspect's factor may be off, under a doubt: where it shows, times are
// proportional to it.
func (h *hunt) blur(t *tried, places []int, of doubt) float64 {
	d, most := make([]float64, len(places)), 0.0
	for k, r := range t.ratio {
		d[k] = max(0, math.Log(r))
		most = max(most, d[k])
	}
	for k := range d {
		d[k] /= max(most, 1e-9)
	}
	off, _ := h.distance(d, places, of)
	return 1 / math.Sqrt(max(off, 1e-9))
}

// chance is ln of the share of factors that are as close to the one found as it may be off by. A suspect
// without a factor has none: that its curve fits is no choice.
func (t *tried) chance(blur float64) float64 {
	return min(0, math.Log(blur*math.Sqrt(2*math.Pi)*t.density(math.Log(t.factor), blur)))
}

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

func ones(n int) []float64 {
	out := make([]float64, n)
	for i := range out {
		out[i] = 1
	}
	return out
}

// sort puts the likeliest suspects by some places first, and returns the doubt under which the first is.
func (h *hunt) sort(tries []tried, places []int) (of doubt) {
	for i := range tries {
		t := &tries[i]
		ln, by := h.likely(t, places)
		if t.score = t.assumes - ln; i == 0 || t.score < slices.MinFunc(tries[:i], byScore).score {
			of = by
		}
	}
	slices.SortStableFunc(tries, byScore)
	return of
}

func byScore(a, b tried) int { return cmp.Compare(a.score, b.score) }

// found are how often maintainers found a kind, of the eight collected reports of a cause
// (reference/causes.json) that rules may be chosen on: wrong HCAs in two, and the wrong NIC in two, which
// is a list of HCAs or a NIC at the other CPU.
var found = map[string]float64{"wrong-hca": 3, "numa": 1, "slow-node": 1, "acs": 1, "channels": 1, "mtu": 1}

// common is ln of how much likelier a kind is than the mean of all kinds, before anything of a machine is
// known: the mean of a multinomial distribution under Jeffreys' prior, by which reports are few and kinds not
// equally frequent.
func common(kind string) float64 {
	const unseen = 0.5
	kinds, reports := float64(numKinds()), 0.0
	for _, n := range found { //lint:sorted a sum of whole numbers
		reports += n
	}
	return math.Log((found[kind] + unseen) * kinds / (reports + unseen*kinds))
}

// numKinds is how many kinds of suspects there are.
var numKinds = sync.OnceValue(func() int {
	kinds := map[string]bool{}
	for kind := range found { //lint:sorted a set
		kinds[kind] = true
	}
	for _, c := range everyKind() {
		kinds[c.kind] = true
	}
	return len(kinds)
})

// judged are the kinds of suspects, best first, each by the best of its suspects; that there are several of
// equal curves makes a kind no less likely. Where the machine is slower as a whole the likeliest few are
// named whatever they explain: they say what to look at.
func (h *hunt) judged(tries []tried) (out []tried) {
	places := all(len(h.rows))
	without, _ := h.likely(&tried{ratio: ones(len(places))}, places)
	best := h.sort(tries, places)
	odds := 0.0 // that something is wrong
	gains := func(t *tried) bool { return t.score+h.weight(t.kind)+common(t.kind) < t.assumes }
	for _, t := range tries {
		if t.score += without - h.weight(t.kind) - common(t.kind); gains(&t) {
			odds += math.Exp(-t.score)
		}
		if k := slices.IndexFunc(out, func(o tried) bool { return o.kind == t.kind }); k < 0 {
			out = append(out, t)
		} else {
			out[k].score -= math.Log1p(math.Exp(out[k].score - t.score))
		}
	}
	slices.SortStableFunc(out, byScore)
	bound := math.Inf(-1)
	if math.Log(odds) > enough {
		bound = max(-enough, out[0].score+near)
	}
	n := 0
	out = slices.DeleteFunc(out, func(t tried) bool {
		named := t.score < bound || h.weight(t.kind) >= sure || h.slower && n < fewest
		byNICs := slices.ContainsFunc(h.rep.Suspects, func(s Suspect) bool { return s.Kind == t.kind })
		if !named || !gains(&t) || byNICs {
			return true
		}
		n++
		return false
	})
	h.sets(out, best)
	return out
}

// Something is wrong where all suspects together are likelier than none by enough, as ln: before the times
// are known each of some fifty has about a fiftieth of the odds. Then those are named that are likelier by as
// much themselves, or that are near the best.
const enough, near = 4.0, 3.0

// sets numbers suspects so that those that nothing in the input separates from the best of them have its
// number: they are the same change, or their curves differ by so little that times of them would name the
// right one with odds of less than e, by runs and the bias that the table itself shows, but no more than the
// machine's class states. Files that name one of them separate it.
func (h *hunt) sets(tries []tried, of doubt) {
	of = doubt{max(runs, min(of.scatter, h.before.scatter)), min(of.bias, h.before.bias)}
	for i := range tries {
		if tries[i].set > 0 {
			continue
		}
		for k := i; k < len(tries); k++ {
			if tries[k].set == 0 && h.weight(tries[k].kind) == h.weight(tries[i].kind) &&
				h.between(&tries[i], &tries[k], of) < 1 {
				tries[k].set = i + 1
			}
		}
	}
}

// runs is what times of two runs differ by.
const runs = 0.05

// between is ln of the odds by which times of one curve would distinguish it from another.
func (h *hunt) between(a, b *tried, of doubt) float64 {
	d := make([]float64, len(a.ratio))
	for k := range d {
		d[k] = math.Log(a.ratio[k] / b.ratio[k])
	}
	off, _ := h.distance(d, all(len(d)), of)
	return off / 2
}
