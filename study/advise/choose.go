package advise

import (
	"cmp"
	"math"
	"slices"
	"strings"
)

// tie is the factor by which a later setting must gain more to replace an earlier one, which is simpler.
const tie = 1.002

// choose finds the best setting of each kind at each size and sums up sizes that agree.
func (r *Report) choose(least float64) {
	n := len(r.base.cells)
	best := make([][numKinds]int, n) // index of a trial, -1 for none
	first := make([]int, n)          // the kind that gains most
	for i := range n {
		best[i], first[i] = r.bestAt(i, least)
	}
	for from := 0; from < n; {
		to := from + 1
		for to < n && first[to] == first[from] &&
			(first[from] < 0 || best[to][first[from]] == best[from][first[from]]) {
			to++
		}
		r.segment(best[from:to], first[from], from)
		from = to
	}
	r.rows(best, first)
	slices.SortStableFunc(r.Advice, func(a, b Advice) int { return cmp.Compare(b.Gain, a.Gain) })
}

// doubt returns the relative uncertainty of a trial's gain at a size.
func (r *Report) doubt(t *trial, i int) float64 {
	return trust(r.site, r.op, t.kind, &r.base.cells[i], &t.cells[i])
}

// sure returns a trial's gain at a size, divided by its uncertainty.
func (r *Report) sure(j, i int) float64 {
	t := &r.trials[j]
	return t.gain(r.base, i) / (1 + r.doubt(t, i))
}

// bestAt returns the best trial of each kind at a size, and the kind of the best of all after subtraction of
// its uncertainty; -1 for none.
func (r *Report) bestAt(i int, least float64) (best [numKinds]int, first int) {
	for k := range best {
		best[k] = -1
	}
	first = -1
	for j := range r.trials {
		t := &r.trials[j]
		g := t.gain(r.base, i)
		if k := t.kind; g >= least && (best[k] < 0 || g > tie*r.trials[best[k]].gain(r.base, i)) {
			best[k] = j
		}
	}
	for k, j := range best {
		if j >= 0 && (first < 0 || r.sure(j, i) > tie*r.sure(best[first], i)) {
			first = k
		}
	}
	return best, first
}

// segment adds the advice for a range of sizes with one winner: the winner, and settings of other kinds that
// are the best of their kind over the whole range.
func (r *Report) segment(best [][numKinds]int, first, from int) {
	if first < 0 {
		return
	}
	for k := range numKinds {
		j := best[0][k]
		if j >= 0 && !slices.ContainsFunc(best, func(b [numKinds]int) bool { return b[k] != j }) {
			r.Advice = append(r.Advice, r.advice(&r.trials[j], from, from+len(best)))
		}
	}
}

// advice returns the advice to use a trial's setting for sizes with index from to to-1.
func (r *Report) advice(t *trial, from, to int) Advice {
	a := Advice{Setting: t.Name(), Value: t.Value(), Line: t.export(), Risk: t.Risk,
		Sizes: [2]int64{r.base.cells[from].bytes, r.base.cells[to-1].bytes}}
	if r.job != [2]int64{} {
		a.Sizes = r.job
	}
	sum := 0.0
	for i := from; i < to; i++ {
		sum += math.Log(t.gain(r.base, i))
		a.Uncertainty = max(a.Uncertainty, r.doubt(t, i))
	}
	a.Gain = round(math.Exp(sum / float64(to-from)))
	a.Uncertainty = round(a.Uncertainty)
	if was, is := r.base.cells[from].text(), t.cells[from].text(); was != is {
		a.Changes = was + " → " + is
	}
	return a
}

// round rounds to four decimal places.
func round(v float64) float64 { return math.Round(1e4*v) / 1e4 }

// rows lists each size with its best setting.
func (r *Report) rows(best [][numKinds]int, first []int) {
	for i, c := range r.base.cells {
		row := Row{Bytes: c.bytes, Us: c.time.Micros(), Choice: strings.TrimSuffix(c.choice, " -"),
			Channels: c.channels, BestUs: c.time.Micros(), LeastUs: c.least, MostUs: c.most}
		if first[i] >= 0 {
			t := &r.trials[best[i][first[i]]]
			row.Best, row.BestUs = strings.Join(t.Lines(), " "), t.cells[i].time.Micros()
		}
		r.Rows = append(r.Rows, row)
	}
}
