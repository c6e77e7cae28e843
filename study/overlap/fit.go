package overlap

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/simccl/simccl/sim/gpu"
)

// FitFile is the table of a directory of measured times that Fit is for.
const FitFile = "overlap.txt"

// Fitted describes a fit of the quantities of sharing and its error.
type Fitted struct {
	Rows, Held    int     // rows that the fit saw, and those held out
	Before, After float64 // mean |log| of collectives' slow-downs, of the rows held out
	Quantities    []Estimate
}

// Estimate is a fitted quantity. Uncertainty 0 means that the rows do not determine it.
type Estimate struct {
	Name                       string
	Before, Value, Uncertainty float64
}

// sharing lists the quantities that Fit varies, with their upper bounds.
var sharing = [3]struct {
	name string
	most float64
	at   func(*gpu.Class) *float64
}{
	{"beside_busy", 2, func(c *gpu.Class) *float64 { return &c.Share.Busy }},
	{"beside_traffic", 3, func(c *gpu.Class) *float64 { return &c.Share.Traffic }},
	{"beside_wait", 6, func(c *gpu.Class) *float64 { return &c.Share.Wait }},
}

// ErrFewRows reports a table with too few rows of collectives with concurrent compute.
var ErrFewRows = errors.New("four rows of collectives beside compute, or more, are needed")

// Fit fits the slow-down of collectives by concurrent compute: it searches ever finer grids for the
// quantities with which every second row of section gemm is reproduced best. The other rows are held out; if
// their error does not decrease, the class is unchanged. on returns the machines of a class.
func (t *Table) Fit(ctx context.Context, on func(*gpu.Class) Machines, class gpu.Class) (gpu.Class, *Fitted,
	error) {
	f := &fitter{ctx: ctx, on: on, class: class, train: *t, held: *t}
	f.train.Rows, f.held.Rows = nil, nil
	for i := range t.Rows {
		if r := t.Rows[i]; r.Section == "gemm" && r.Measured["x"] > 0 {
			if len(f.train.Rows) > len(f.held.Rows) {
				f.held.Rows = append(f.held.Rows, r)
			} else {
				f.train.Rows = append(f.train.Rows, r)
			}
		}
	}
	if len(f.held.Rows) < 2 {
		return class, nil, ErrFewRows
	}
	out := &Fitted{Rows: len(f.train.Rows), Held: len(f.held.Rows), Before: f.mean(&f.held, math.Abs)}
	f.search()
	for _, q := range sharing {
		e := Estimate{Name: q.name, Before: *q.at(&class), Value: *q.at(&f.class),
			Uncertainty: f.uncertainty(q.at(&f.class))}
		if e.Uncertainty == 0 {
			e.Value = e.Before
			*q.at(&f.class) = e.Before
		}
		out.Quantities = append(out.Quantities, e)
	}
	if out.After = f.mean(&f.held, math.Abs); out.After > out.Before { // it follows the rows that it saw
		for i, q := range sharing {
			*q.at(&f.class) = *q.at(&class)
			out.Quantities[i] = Estimate{Name: q.name, Before: *q.at(&class), Value: *q.at(&class)}
		}
		out.After = out.Before
	}
	return f.class, out, f.err
}

// Of the search: grids, each finer, and points of each along a quantity.
const (
	grids  = 3
	points = 7
)

// fitter holds the training and held-out rows and the class at the current point of the search. err is the
// first error of a simulation; it ends the search.
type fitter struct {
	ctx         context.Context
	on          func(*gpu.Class) Machines
	class       gpu.Class
	train, held Table
	err         error
}

// loss returns the mean loss of the training rows: quadratic in the deviation up to about scale.
func (f *fitter) loss() float64 {
	return f.mean(&f.train, func(d float64) float64 { return math.Sqrt(1+float64(d/scale*d/scale)) - 1 })
}

// scale is the |log| beyond which a deviation counts linearly, as an error of the model.
const scale = 0.1

// mean returns the mean of a function (of) of log(simulated/measured slow-down).
func (f *fitter) mean(t *Table, of func(float64) float64) float64 {
	if f.err != nil {
		return 0
	}
	class := f.class
	rows, err := t.Predict(f.ctx, f.on(&class))
	if err != nil {
		f.err = err
		return 0
	}
	sum := 0.0
	for i := range rows {
		sum += of(math.Log(rows[i].Simulated["x"] / rows[i].Measured["x"]))
	}
	return sum / float64(len(rows))
}

// search minimises over a grid of the first two quantities, then the third alone, repeatedly with finer grids
// around the best point. The loss jumps where a collective just misses the end of a kernel, so gradients are
// useless.
func (f *fitter) search() {
	var low, step [len(sharing)]float64
	for i := range sharing {
		step[i] = sharing[i].most / (points - 1)
	}
	for range grids {
		best, at := math.Inf(1), low
		for i := range points {
			for k := range points {
				x := f.at()
				x[0], x[1] = low[0]+float64(i)*step[0], low[1]+float64(k)*step[1]
				if l := f.try(x); l < best {
					best, at = l, x
				}
			}
		}
		for i := range points {
			x := at
			x[2] = low[2] + float64(i)*step[2]
			if l := f.try(x); l < best {
				best, at = l, x
			}
		}
		for i := range step {
			low[i] = math.Max(0, at[i]-step[i])
			step[i] *= 2.0 / (points - 1)
		}
		f.set(at)
	}
}

// at returns the current values of the quantities.
func (f *fitter) at() (x [len(sharing)]float64) {
	for i := range sharing {
		x[i] = *sharing[i].at(&f.class)
	}
	return x
}

// try returns the loss with other values and restores the current ones.
func (f *fitter) try(x [len(sharing)]float64) float64 {
	old := f.at()
	defer f.set(old)
	f.set(x)
	return f.loss()
}

// set writes the quantities x into the class.
func (f *fitter) set(x [len(sharing)]float64) {
	for i := range sharing {
		*sharing[i].at(&f.class) = x[i]
	}
}

// uncertainty returns the relative change of a quantity that increases the loss by a tenth, at most 1; 0 if
// the loss does not depend on it.
func (f *fitter) uncertainty(v *float64) float64 {
	const by = 0.25
	best, least := *v, f.loss()
	rise := -least
	for _, times := range []float64{1 - by, 1 + by} {
		*v = best * times
		rise += f.loss() / 2
	}
	if *v = best; best == 0 || rise <= 1e-4*least {
		return 0
	}
	return math.Min(1, math.Max(0.05, by*math.Sqrt(0.1*least/rise)))
}

// Describe notes in a class where its quantities of sharing are from.
func (r *Fitted) Describe(c *gpu.Class) {
	origins := map[string]gpu.Origin{}
	for k, o := range c.Origins { //lint:sorted copied
		origins[k] = o
	}
	for _, e := range r.Quantities {
		if e.Uncertainty > 0 {
			origins[e.Name] = gpu.Origin{Source: gpu.Measured, Uncertainty: e.Uncertainty,
				Note: fmt.Sprintf("%d rows of collectives beside compute, %d held out", r.Rows, r.Held)}
		}
	}
	c.Origins = origins
}

// Text formats the fit as a table.
func (r *Fitted) Text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "\ncollectives beside compute: %d rows, %d held out, whose slow-downs are met within "+
		"%.1f %% on average (before: %.1f %%)\n", r.Rows, r.Held, 100*r.After, 100*r.Before)
	for _, e := range r.Quantities {
		note := ""
		if e.Uncertainty == 0 {
			note = "  not determined"
		}
		fmt.Fprintf(&b, "%-20s %-12s %12.5g %12.5g %8.1f%s\n", e.Name, "1", e.Before, e.Value,
			100*e.Uncertainty, note)
	}
	return b.String()
}
