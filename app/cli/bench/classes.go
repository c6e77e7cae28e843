package bench

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/simccl/simccl/app/cli"
	"github.com/simccl/simccl/internal/fail"
	"github.com/simccl/simccl/sim/gpu"
	"github.com/simccl/simccl/workload/inputs"
	"github.com/spf13/cobra"
)

// most is the largest accepted size of a class file, in bytes.
const most = 1 << 20

// Classes returns `simccl class`.
func Classes(a *cli.App) *cobra.Command {
	return cli.Long(cli.Group("class", "Show, compare and check machine classes", showClass(a),
		diffClasses(a), checkClassFile(a)),
		`A machine class holds the quantities of GPUs, NICs and proxy threads from which times
follow, each with its source and uncertainty. run --machine-class takes a built-in
one or a file; calibrate writes such files from measured times.`)
}

// loadClass returns the class of a name or a file.
func loadClass(a *cli.App, name string) (gpu.Class, error) {
	if slices.Contains(gpu.Names(), name) {
		return gpu.Named(name)
	}
	if !strings.ContainsAny(name, "./") {
		return gpu.Class{}, fail.Usage("no machine class %q is built in; there are %s, and files (./%s.json)",
			name, strings.Join(gpu.Names(), ", "), name)
	}
	data, err := a.ReadAs(name, most, inputs.MachineClass)
	if err != nil {
		return gpu.Class{}, err
	}
	c, err := gpu.Parse(data, name)
	return c, fail.Input(err)
}

// parameter is one quantity of a class.
type parameter struct {
	Name    string  `json:"name"`
	Value   float64 `json:"value"`
	Unit    string  `json:"unit"`
	Meaning string  `json:"meaning"`
	gpu.Origin
}

func parameters(c *gpu.Class) []parameter {
	var out []parameter
	for _, q := range gpu.Quantities() {
		out = append(out, parameter{q.Name, *q.At(c), q.Unit, q.Meaning, c.Origins[q.Name]})
	}
	return out
}

// classDocument is the JSON form of a class.
type classDocument struct {
	Name        string       `json:"name"`
	Machine     string       `json:"machine"`
	Source      gpu.Source   `json:"source"`
	Uncertainty float64      `json:"uncertainty"`
	Base        string       `json:"base"`
	Regimes     []gpu.Regime `json:"regimes"`
	Parameters  []parameter  `json:"parameters"`
}

// ClassShowOptions are the flags and arguments of show: a name, or a file with its path.
type ClassShowOptions struct{ Class string }

func showClass(a *cli.App) *cobra.Command {
	return &cobra.Command{Use: "show CLASS", Short: "Say what a machine class is made of, and where it holds",
		Long: `show prints every quantity of a machine class with its source and uncertainty, and
the regimes in which it was judged: by operation, GPUs and sizes, on times that no
fit saw. CLASS is a name, or a file with its path.`,
		Example: "  simccl class show nvswitch-sm90",
		Args:    cli.Exactly("CLASS"),
		RunE:    cli.RunOf(a, func(args []string) cli.Runner { return &ClassShowOptions{args[0]} })}
}

// Run prints the quantities of a class with unit, source and uncertainty.
func (o *ClassShowOptions) Run(_ context.Context, a *cli.App) error {
	c, err := loadClass(a, o.Class)
	if err != nil {
		return err
	}
	d := classDocument{c.Name, c.Machine, c.Source, c.Uncertainty, c.Base,
		append([]gpu.Regime{}, c.Regimes...), parameters(&c)}
	if a.JSON {
		return a.PrintJSON(d)
	}
	return a.PrintText(d.text(&c))
}

func (d *classDocument) text(c *gpu.Class) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n", c.Summary(gpu.NoNetwork))
	if len(d.Regimes) > 0 {
		fmt.Fprintf(&b,
			"\n%-16s %5s %12s %12s %7s %8s %8s   |simulated/measured - 1| in %%, of times that no fit saw\n",
			"operation", "GPUs", "from bytes", "to bytes", "points", "mean", "max")
	}
	for _, g := range d.Regimes {
		fmt.Fprintf(&b, "%-16s %5d %12d %12d %7d %8.1f %8.1f\n", g.Op, g.Ranks, g.From, g.To, g.Points,
			100*g.Mean, 100*g.Max)
	}
	fmt.Fprintf(&b, "\n%-20s %-6s %12s %6s  %-10s  %s\n", "quantity", "unit", "value", "+- %", "source",
		"what it is")
	for _, p := range d.Parameters {
		meaning := p.Meaning
		if p.Note != "" {
			meaning += " (" + p.Note + ")"
		}
		fmt.Fprintf(&b, "%-20s %-6s %12g %6.0f  %-10s  %s\n", p.Name, p.Unit, p.Value, 100*p.Uncertainty,
			p.Source, meaning)
	}
	return b.String()
}

// classChange is a quantity that differs between two classes.
type classChange struct {
	Name  string  `json:"name"`
	Unit  string  `json:"unit"`
	A     float64 `json:"a"`
	B     float64 `json:"b"`
	Ratio float64 `json:"ratio"`  // b/a
	Sigma float64 `json:"sigmas"` // the difference in their standard deviations together
}

// ClassDiffOptions are the flags and arguments of diff, as ShowOptions.
type ClassDiffOptions struct{ A, B string }

func diffClasses(a *cli.App) *cobra.Command {
	return &cobra.Command{Use: "diff CLASS OTHER", Short: "Compare two machine classes, quantity by quantity",
		Long: `diff lists the quantities that differ, the surest first: by how many of their
standard deviations. Below 2 a difference is one that two calibrations of equal
machines have, too.`,
		Example: "  simccl class diff nvswitch-sm90 nvswitch-sm80",
		Args:    cli.Exactly("CLASS", "OTHER"),
		RunE:    cli.RunOf(a, func(args []string) cli.Runner { return &ClassDiffOptions{args[0], args[1]} })}
}

// Run prints the differences of two classes.
func (o *ClassDiffOptions) Run(_ context.Context, a *cli.App) error {
	var c [2]gpu.Class
	for i, name := range []string{o.A, o.B} {
		var err error
		if c[i], err = loadClass(a, name); err != nil {
			return err
		}
	}
	list := classChanges(&c[0], &c[1])
	if a.JSON {
		return a.PrintJSON(struct {
			A       string        `json:"a"`
			B       string        `json:"b"`
			Changes []classChange `json:"changes"`
		}{c[0].Name, c[1].Name, list})
	}
	var b strings.Builder
	fmt.Fprintf(&b, "A  %s\nB  %s\n\n", c[0].Summary(gpu.NoNetwork), c[1].Summary(gpu.NoNetwork))
	fmt.Fprintf(&b, "%-20s %-6s %12s %12s %8s %10s\n", "quantity", "unit", "A", "B", "B/A", "deviations")
	for _, x := range list {
		fmt.Fprintf(&b, "%-20s %-6s %12g %12g %8.3f %10.1f\n", x.Name, x.Unit, x.A, x.B, x.Ratio, x.Sigma)
	}
	fmt.Fprintf(&b, "%d of %d quantities differ\n", len(list), len(gpu.Quantities()))
	return a.PrintText(b.String())
}

// classChanges returns the parameters that differ, those with the most significant difference first.
func classChanges(a, b *gpu.Class) []classChange {
	out := []classChange{}
	for _, q := range gpu.Quantities() {
		x, y := *q.At(a), *q.At(b)
		if x == y {
			continue
		}
		c := classChange{Name: q.Name, Unit: q.Unit, A: x, B: y}
		if x != 0 {
			c.Ratio = y / x
		}
		if s := math.Hypot(x*a.Origins[q.Name].Uncertainty, y*b.Origins[q.Name].Uncertainty); s > 0 {
			c.Sigma = math.Abs(y-x) / s
		}
		out = append(out, c)
	}
	slices.SortStableFunc(out, func(x, y classChange) int { return cmp.Compare(y.Sigma, x.Sigma) })
	return out
}

// ClassCheckOptions are the flags and arguments of check, as ShowOptions.
type ClassCheckOptions struct{ File string }

func checkClassFile(a *cli.App) *cobra.Command {
	return &cobra.Command{Use: "check FILE", Short: "Check a machine class before it is given to others",
		Long: `check reads a class file and says what others would have to ask: on which machine
it was measured, how well it predicts what it was not fitted to, which quantities
are far from those of any class that is built in. With a problem it ends with exit
status 7.`,
		Example: "  simccl class check testdata/measured/h200x2/calibrate/classes/two.json",
		Args:    cli.Exactly("FILE"),
		RunE:    cli.RunOf(a, func(args []string) cli.Runner { return &ClassCheckOptions{args[0]} })}
}

// Run prints what is missing in a class for use by others, and returns an error if anything is.
func (o *ClassCheckOptions) Run(_ context.Context, a *cli.App) error {
	c, err := loadClass(a, o.File)
	if err != nil {
		return err
	}
	found := classProblems(&c)
	if a.JSON {
		err := a.PrintJSON(struct {
			Name     string   `json:"name"`
			OK       bool     `json:"ok"`
			Problems []string `json:"problems"`
		}{c.Name, len(found) == 0, found})
		if err != nil || len(found) == 0 {
			return err
		}
		return fail.Printed("%s has %d problems", o.File, len(found))
	}
	if len(found) > 0 {
		return fail.Check("%s: %s", o.File, strings.Join(found, "\n  "))
	}
	return a.PrintText(fmt.Sprintf("%s: nothing to ask about; it can be given to others as it is\n",
		c.Summary(gpu.NoNetwork)))
}

// far is by which factor a quantity may differ from the nearest of a class that is
// built in.
const far = 4

// classProblems returns why a class is not ready to be shared: a built-in class's name, no machine, no
// regimes.
func classProblems(c *gpu.Class) []string {
	out := []string{}
	say := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	if slices.Contains(gpu.Names(), c.Name) {
		say("name %s is that of a class that is built in; give it another (calibrate fit --name)", c.Name)
	}
	if c.Machine == "" {
		say("machine is empty; write GPUs, driver, version of NCCL and date")
	}
	if c.Source.Times() && len(c.Regimes) == 0 {
		say("source is measured or published tables, but no regimes say how well it predicts; calibrate " +
			"writes them")
	}
	for _, g := range c.Regimes {
		if g.Points < 1 || g.Mean < 0 || g.Max < g.Mean || g.From > g.To || g.Ranks < 1 {
			say("regime %s of %d GPUs: points, sizes or errors cannot be", g.Op, g.Ranks)
		} else if g.Mean > 0.1 {
			say("regime %s of %d GPUs, %d to %d bytes: predicts with a mean error of %.0f %%; say so to "+
				"who uses it, or measure more", g.Op, g.Ranks, g.From, g.To, 100*g.Mean)
		}
	}
	var known []gpu.Class
	for _, name := range gpu.Names() {
		if b, err := gpu.Named(name); err == nil {
			known = append(known, b)
		}
	}
	for _, q := range gpu.Quantities() {
		v, o := *q.At(c), c.Origins[q.Name]
		if o.Source == gpu.Measured && o.Uncertainty > 1 {
			say("%s is measured with an uncertainty of %.0f %%: that is no measurement; write estimated",
				q.Name, 100*o.Uncertainty)
		}
		if near := nearest(known, &q, v); o.Source != gpu.Estimated && v > 0 && near > 0 &&
			max(v/near, near/v) > far {
			say("%s is %g %s; the nearest of a class that is built in is %g", q.Name, v, q.Unit, near)
		}
	}
	return out
}

// nearest returns the value of a quantity among some classes that is nearest to v in its logarithm.
func nearest(of []gpu.Class, q *gpu.Quantity, v float64) float64 {
	best := 0.0
	for i := range of {
		if x := *q.At(&of[i]); x > 0 && (best == 0 || math.Abs(math.Log(x/v)) < math.Abs(math.Log(best/v))) {
			best = x
		}
	}
	return best
}
