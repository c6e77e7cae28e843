package calibrate

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/internal/fail"
	"github.com/simccl/simccl/sim"
	"github.com/simccl/simccl/sim/gpu"
)

// Errors sums up how far simulated times are from measured ones.
type Errors struct {
	Points int     `json:"points"`
	Mean   float64 `json:"mean"` // of |simulated/measured - 1|
	Max    float64 `json:"max"`
	Bias   float64 `json:"bias"` // mean of simulated/measured - 1
	Large  float64 `json:"mean_from_1_MiB"`
	large  int
}

func (e *Errors) add(r *Residual, us float64) {
	d := us/r.Us - 1
	e.Mean, e.Bias, e.Max = e.Mean+math.Abs(d), e.Bias+d, max(e.Max, math.Abs(d))
	e.Points++
	if r.Bytes >= 1<<20 {
		e.Large += math.Abs(d)
		e.large++
	}
}

func (e *Errors) end() {
	n := float64(max(e.Points, 1))
	e.Mean, e.Bias, e.Large = e.Mean/n, e.Bias/n, e.Large/float64(max(e.large, 1))
}

// Summary is the errors of one operation, or of several together.
type Summary struct {
	Op     string `json:"operation"`
	Held   bool   `json:"held_out"`
	Before Errors `json:"before"` // with the class that the fit began with
	After  Errors `json:"after"`
}

// five is the name of the sum over the collectives that NCCL's model covers.
const five = "five collectives"

// Summarise combines residuals by operation, with the held-out ones separate.
func Summarise(all []Residual) []Summary {
	var out []Summary
	for _, held := range []bool{false, true} {
		total := Summary{Op: five, Held: held}
		for _, f := range coll.Funcs() {
			s := Summary{Op: f.TestName(), Held: held}
			for i := range all {
				if r := &all[i]; r.Op.Func == f && r.Held == held {
					s.Before.add(r, r.Before)
					s.After.add(r, r.After)
					if !f.IsP2P() {
						total.Before.add(r, r.Before)
						total.After.add(r, r.After)
					}
				}
			}
			if s.After.Points > 0 {
				out = append(out, s)
			}
		}
		if total.After.Points > 0 {
			out = append(out, total)
		}
	}
	for i := range out {
		out[i].Before.end()
		out[i].After.end()
	}
	return out
}

// Check predicts points with a class; every point counts as held out, because no fit used it.
func Check(ctx context.Context, points []Point, class *gpu.Class) ([]Residual, error) {
	us, err := Predict(ctx, points, class)
	out := make([]Residual, len(us))
	for i := range us {
		out[i] = Residual{points[i].Sample, true, us[i], us[i]}
	}
	return out, err
}

func launchName(l sim.Launch) string {
	if l == sim.Graph {
		return "graph"
	}
	return "eager"
}

// CSV formats residuals, one point per line.
func CSV(all []Residual) []byte {
	var b strings.Builder
	b.WriteString(
		"file,settings,launch,ranks,operation,type,in_place,bytes,held_out,measured_us,before_us," +
			"simulated_us,error_percent\n")
	for i := range all {
		r := &all[i]
		fmt.Fprintf(&b, "%s,%s,%s,%d,%s,%s,%v,%d,%v,%.3f,%.3f,%.3f,%.2f\n", r.Run.File,
			strings.Join(r.Run.Env, " "), launchName(r.Run.Launch), r.Run.Ranks,
			r.Op.Func.TestName(), r.Op.Type.TestName(), r.Op.InPlace, r.Bytes, r.Held, r.Us, r.Before,
			r.After, 100*(r.After/r.Us-1))
	}
	return []byte(b.String())
}

// percent formats a share with its sign.
func percent(v float64) string { return fmt.Sprintf("%+.1f", 100*v) }

// bySize is a table of mean deviations by size and operation.
func bySize(b *strings.Builder, all []Residual) {
	var ops []coll.Func
	sizes := map[int]bool{} // by power of two
	type key struct {
		f    coll.Func
		size int
	}
	cells := map[key]*Errors{}
	for i := range all {
		r := &all[i]
		k := key{r.Op.Func, int(math.Log2(float64(max(r.Bytes, 1))))}
		if !slices.Contains(ops, k.f) {
			ops = append(ops, k.f)
		}
		if cells[k] == nil {
			cells[k] = new(Errors)
		}
		cells[k].add(r, r.After)
		sizes[k.size] = true
	}
	slices.Sort(ops)
	fmt.Fprintf(b, "%-10s", "size")
	for _, f := range ops {
		fmt.Fprintf(b, " %14s", f.TestName())
	}
	b.WriteByte('\n')
	for s := range 63 {
		if !sizes[s] {
			continue
		}
		fmt.Fprintf(b, "%-10d", int64(1)<<s)
		for _, f := range ops {
			if e := cells[key{f, s}]; e != nil {
				e.end()
				fmt.Fprintf(b, " %14s", percent(e.Bias))
			} else {
				fmt.Fprintf(b, " %14s", "-")
			}
		}
		b.WriteByte('\n')
	}
}

// CheckText formats the comparison of a class with measurements as text.
func CheckText(all []Residual) string {
	var b strings.Builder
	fmt.Fprintf(&b, "\n%-18s %7s %8s %8s %8s %8s   |simulated/measured - 1| in %%\n", "operation", "points",
		"mean", "max", "bias", ">= 1 MiB")
	for _, s := range Summarise(all) {
		e := &s.After
		fmt.Fprintf(&b, "%-18s %7d %8.1f %8.1f %8s %8.1f\n", s.Op, e.Points, 100*e.Mean, 100*e.Max,
			percent(e.Bias), 100*e.Large)
	}
	b.WriteString("\nsimulated/measured - 1 by size, in %, mean of all settings\n")
	bySize(&b, all)
	return b.String()
}

// Text formats a fit as text.
func (r *Result) Text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "# %d rounds; cost %.4g -> %.4g\n\n", r.Rounds, r.Cost[0], r.Cost[1])
	fmt.Fprintf(&b, "%-20s %-12s %12s %12s %8s\n", "quantity", "unit", "before", "after", "+- %")
	for _, e := range r.Estimates {
		note := ""
		if !e.Identified {
			note = "  not determined"
		}
		fmt.Fprintf(&b, "%-20s %-12s %12.5g %12.5g %8.1f%s\n", e.Name, e.Unit, e.Before, e.Value,
			100*e.Uncertainty, note)
	}
	fmt.Fprintf(&b, "\n%-9s %-18s %7s | %8s %8s | %8s %8s %8s %8s   |simulated/measured - 1| in %%\n",
		"", "operation", "points", "before", "max", "after", "max", "bias", ">= 1 MiB")
	for _, s := range Summarise(r.Residuals) {
		what := "fitted"
		if s.Held {
			what = "held out"
		}
		fmt.Fprintf(&b, "%-9s %-18s %7d | %8.1f %8.1f | %8.1f %8.1f %8s %8.1f\n", what, s.Op, s.After.Points,
			100*s.Before.Mean, 100*s.Before.Max,
			100*s.After.Mean, 100*s.After.Max, percent(s.After.Bias), 100*s.After.Large)
	}
	b.WriteString("\nsimulated/measured - 1 by size, in %, mean of all settings and both parts\n")
	bySize(&b, r.Residuals)
	return b.String()
}

// Document is a fit in JSON form.
type Document struct {
	Class      string           `json:"class"`
	Machine    string           `json:"machine"`
	Rounds     int              `json:"rounds"`
	Quantities []QuantityReport `json:"quantities"`
	Errors     []Summary        `json:"errors"`
}

// QuantityReport is an Estimate in JSON form.
type QuantityReport struct {
	Name        string  `json:"name"`
	Unit        string  `json:"unit"`
	Before      float64 `json:"before"`
	Value       float64 `json:"value"`
	Uncertainty float64 `json:"uncertainty"`
	Determined  bool    `json:"determined"`
}

// Document converts a fit to its JSON form.
func (r *Result) Document() *Document {
	d := &Document{Class: r.Class.Name, Machine: r.Class.Machine, Rounds: r.Rounds,
		Errors: Summarise(r.Residuals)}
	for _, e := range r.Estimates {
		d.Quantities = append(d.Quantities, QuantityReport{e.Name, e.Unit, e.Before, e.Value, e.Uncertainty,
			e.Identified})
	}
	return d
}

// Describe names the fitted class and writes down where its values are from:
// those that the data determine are measured, the others stay what they were,
// or become estimates where they were measured on another machine.
func (r *Result) Describe(name, machine string) {
	c := &r.Class
	if slices.Contains(gpu.Names(), c.Name) {
		c.Base = c.Name
	}
	start := c.Name
	c.Name, c.Machine, c.Source = name, machine, r.source()
	origins := map[string]gpu.Origin{}
	for _, q := range gpu.Quantities() {
		o := c.Origins[q.Name]
		if o.Source.Times() {
			o = gpu.Origin{Source: gpu.Estimated, Uncertainty: o.Uncertainty, Note: "as " + start}
		}
		origins[q.Name] = o
	}
	for _, e := range r.Estimates {
		o := gpu.Origin{Source: c.Source, Uncertainty: round(e.Uncertainty, 2)}
		if !e.Identified {
			o.Source, o.Note = gpu.Estimated, "not determined by these times"
		}
		*e.At(c) = round(e.Value, 5)
		origins[e.Name] = o
	}
	c.Origins = origins
	held := Errors{}
	for i := range r.Residuals {
		if x := &r.Residuals[i]; x.Held {
			held.add(x, x.After)
		}
	}
	held.end()
	c.Uncertainty = max(0.001, round(held.Mean, 2))
	c.Regimes = Regimes(r.Residuals)
}

// source returns the origin of a fit's times: measured here, or published by others.
func (r *Result) source() gpu.Source {
	if slices.ContainsFunc(r.Residuals, func(x Residual) bool { return x.Run.Source != "" }) {
		return gpu.Published
	}
	return gpu.Measured
}

// Regimes summarises the held-out points by operation and number of GPUs, below 1 MiB and from there.
func Regimes(all []Residual) []gpu.Regime {
	var out []gpu.Regime
	type key struct {
		op    string
		ranks int
		large bool
	}
	at := map[key]int{}
	for i := range all {
		x := &all[i]
		if !x.Held {
			continue
		}
		k := key{x.Op.Func.TestName(), x.Run.Ranks, x.Bytes >= 1<<20}
		j, known := at[k]
		if !known {
			j = len(out)
			at[k] = j
			out = append(out, gpu.Regime{Op: k.op, Ranks: k.ranks, From: int64(x.Bytes), To: int64(x.Bytes)})
		}
		g, d := &out[j], math.Abs(x.After/x.Us-1)
		g.From, g.To = min(g.From, int64(x.Bytes)), max(g.To, int64(x.Bytes))
		g.Points, g.Mean, g.Max = g.Points+1, g.Mean+d, max(g.Max, d)
	}
	for i := range out {
		out[i].Mean, out[i].Max = round(out[i].Mean/float64(out[i].Points), 2), round(out[i].Max, 2)
	}
	slices.SortFunc(out, func(a, b gpu.Regime) int {
		return cmp.Or(strings.Compare(a.Op, b.Op), cmp.Compare(a.Ranks, b.Ranks), cmp.Compare(a.From, b.From))
	})
	return out
}

// round rounds to n significant digits.
func round(v float64, n int) float64 {
	if v == 0 || math.IsInf(v, 0) || math.IsNaN(v) {
		return v
	}
	p := math.Pow(10, float64(n)-math.Ceil(math.Log10(math.Abs(v))))
	return math.Round(v*p) / p
}

// Machine describes what points were measured on, as far as their files say:
// "4 x NVIDIA H200, NCCL 22809, 2026-11-21".
func Machine(points []Point) string {
	most := slices.MaxFunc(points, func(a, b Point) int { return cmp.Compare(a.Run.Ranks, b.Run.Ranks) }).Run
	name, date := "GPUs", ""
	for _, p := range points {
		if p.Run.GPU != "" {
			name = p.Run.GPU
		}
		date = max(date, p.Run.Date)
	}
	s := fmt.Sprintf("%d x %s", most.Ranks, name)
	if most.NCCL > 0 {
		s += fmt.Sprintf(", NCCL %d", most.NCCL)
	}
	if date != "" {
		s += ", " + date
	}
	return s
}

// Worst returns the operation with the largest mean error; sums must not be empty.
func Worst(sums []Summary) Summary {
	return slices.MaxFunc(sums, func(x, y Summary) int { return cmp.Compare(x.After.Mean, y.After.Mean) })
}

// Only selects the points of the named operations; no name selects all. It returns an error if no point is
// left.
func Only(points []Point, names []string) ([]Point, error) {
	var ops []coll.Func
	for _, name := range names {
		f, err := coll.ParseFunc(name)
		if err != nil {
			return nil, err
		}
		ops = append(ops, f)
	}
	if len(ops) > 0 {
		points = slices.DeleteFunc(points, func(p Point) bool { return !slices.Contains(ops, p.Op.Func) })
	}
	if len(points) == 0 {
		return nil, fail.Usage("--ops %s: none of them was measured", strings.Join(names, ","))
	}
	return points, nil
}

// NameAfter names the class that a fit makes of another.
func NameAfter(start string) string { return strings.TrimSuffix(start, "-calibrated") + "-calibrated" }

// Summary returns one line: the file, and the settings that are assumed for its measurements.
func (r *Run) Summary() string {
	settings := "; it says nothing of settings: NCCL's defaults"
	if r.From != "" {
		settings = fmt.Sprintf("; %s says %s", r.From, strings.Join(r.Env, " "))
	}
	return fmt.Sprintf("%s: %d ranks, %d times%s", r.File, r.Ranks, len(r.Samples), settings)
}
