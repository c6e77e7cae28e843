package sweep

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/simccl/simccl/app/cli"
	"github.com/simccl/simccl/app/report/chart"
	"github.com/simccl/simccl/app/report/page"
	"github.com/simccl/simccl/internal/fail"
	"github.com/simccl/simccl/study/sweep"
	"github.com/spf13/cobra"
)

// ShowOptions are the flags and arguments of show. X, Y, By and Where are columns of the results, or
// expressions of them.
type ShowOptions struct {
	Dirs     []string
	X, Y, By string // axes and grouping; empty: by Kind
	Where    string // that rows must meet
	Kind     string // curves, heat or front
	File     string // .html, .svg or .pdf; empty: text
	Partial  bool   // points may be missing
}

// Kinds of drawings.
const (
	curves = "curves"
	heat   = "heat"
	front  = "front"
)

func show(a *cli.App) *cobra.Command {
	var o ShowOptions
	c := &cobra.Command{Use: "show DIR...",
		Short: "Draw the results of a sweep: curves, heat maps, the front of cost and time",
		Long: `show draws the results of a sweep in the terminal, into a page (-o FILE.html), or as a figure
of one column for a paper (-o FILE.svg or FILE.pdf). --x, --y, --by and --where take columns of the results,
names that the sweep sets, and expressions of them as where of a specification.
Rows that fall on one place are drawn as their mean, in a figure with a bar from least to most.

  curves  --y over --x, a curve for each value of --by
  heat    --y as colour, --x by --by
  front   all points, and those that no other beats in both --x and --y, which are
          to be small; with prices in the specification --x is usd_h, USD an hour
          of the machine, and usd_million is what a million operations cost`,
		Example: "  simccl sweep show results --x bytes --y busbw --by nodes\n" +
			"  simccl sweep show results --kind heat --x size --by nodes -o results.html",
		Args: cli.Arguments(1, "DIR..."),
		RunE: cli.RunWith(a, &o, &o.Dirs)}
	f := c.Flags()
	f.StringVar(&o.X, "x", "",
		"`COLUMN` or expression of the horizontal axis (default bytes; of a front usd_h; "+
			"of network run load, if that is varied)")
	f.StringVar(&o.Y, "y", "",
		"`COLUMN` or expression that is drawn (default busbw; of a front time_us; of network "+
			"run slowdown_p99)")
	f.StringVar(&o.By, "by", "", "`COLUMN` or expression that groups")
	f.StringVar(&o.Where, "where", "", "`CONDITION` that rows must meet")
	f.StringVar(&o.Kind, "kind", curves, "curves, heat or front")
	f.StringVarP(&o.File, "output", "o", "", "`FILE`.html, .svg or .pdf in place of text")
	f.BoolVar(&o.Partial, "partial", true, "points may be missing")
	return c
}

// Run draws the results, with the prices of the first folder's specification.
func (o *ShowOptions) Run(_ context.Context, a *cli.App) error {
	m, err := merged(a, o.Dirs, o.Partial)
	if err != nil {
		return err
	}
	if err := m.UsePrices(a.Path(o.Dirs[0])); err != nil {
		return err
	}
	own := *o
	if names := m.ColumnNames(); o.Kind == curves && !slices.Contains(names, "busbw") { // of network run
		for _, x := range []string{"load", "bytes"} {
			if slices.Contains(names, x) {
				own.X = cmp.Or(own.X, x)
			}
		}
		own.Y = cmp.Or(own.Y, "slowdown_p99")
	}
	return own.draw(a, m)
}

// defaults sets options that were not given.
func (o *ShowOptions) defaults() error {
	switch o.Kind {
	case curves, heat:
		o.X, o.Y = cmp.Or(o.X, "bytes"), cmp.Or(o.Y, "busbw")
	case front:
		o.X, o.Y = cmp.Or(o.X, sweep.Priced[0]), cmp.Or(o.Y, "time_us")
	default:
		return fail.Usage("--kind %s: write %s, %s or %s", o.Kind, curves, heat, front)
	}
	return nil
}

// chart builds the requested chart.
func (o *ShowOptions) chart(a *cli.App, m *sweep.Merged) (*chart.Chart, error) {
	var exprs [4]*sweep.Expr
	for i, text := range []string{o.X, o.Y, o.By, o.Where} {
		if text == "" {
			continue
		}
		e, err := sweep.NewExpr(text, m.ColumnNames())
		if err != nil {
			return nil, err
		}
		exprs[i] = e
	}
	var samples []chart.Sample
	over := mixed{}
	err := m.Each(func(r *sweep.Record, row map[string]any) error {
		s := chart.Sample{Name: label(r)}
		if e := exprs[3]; e != nil {
			keep, err := e.Value(row)
			if b, ok := keep.(bool); err != nil || !ok && keep != nil {
				return cmp.Or(err, fail.Usage("--where %s is neither true nor false", o.Where))
			} else if !b {
				return nil
			}
		}
		x, err := exprs[0].Value(row)
		if err != nil {
			return err
		}
		y, err := exprs[1].Value(row)
		if err != nil {
			return err
		}
		if e := exprs[2]; e != nil {
			by, err := e.Value(row)
			if err != nil {
				return err
			}
			s.By = value(by)
		}
		number, ok := y.(float64)
		if !ok || x == nil {
			return nil
		}
		if s.X, s.Y = x, number; o.Kind == front {
			if _, ok := x.(float64); !ok {
				return fail.Usage("--x %s is no number, which a front needs; write prices in the "+
					"specification, or a column", o.X)
			}
		}
		if b, ok := x.(bool); ok {
			s.X = value(b)
		}
		over.add(&s, r)
		samples = append(samples, s)
		return nil
	})
	if err == nil && len(samples) == 0 {
		err = fail.Usage("no row has a number as %s over %s%s; columns are %s", o.Y, o.X,
			map[bool]string{true: " where " + o.Where}[o.Where != ""], strings.Join(m.ColumnNames(), ", "))
	}
	if names := slices.Sorted(maps.Keys(over.differ)); o.Kind != front && len(names) > 0 {
		a.Warn("each point is a mean over %s too: separate them with --by or --where",
			strings.Join(names, ", "))
	}
	return chart.New(samples, o.X, o.Y, o.By), err
}

// mixed has the first point of each place of a chart, and the settings in which others there differ from it.
type mixed struct {
	first  map[[2]string]*sweep.Record
	differ map[string]bool
}

// add takes a row. Rows that differ by their seed are draws of one thing, whose mean is what is looked for.
func (x *mixed) add(s *chart.Sample, r *sweep.Record) {
	if x.first == nil {
		x.first, x.differ = map[[2]string]*sweep.Record{}, map[string]bool{}
	}
	place := [2]string{value(s.X), s.By}
	one, found := x.first[place]
	if !found {
		x.first[place] = r
		return
	}
	for _, n := range r.Labels {
		if n != "seed" && value(one.Point[n]) != value(r.Point[n]) {
			x.differ[n] = true
		}
	}
}

// label returns the settings of a point, for tooltips.
func label(r *sweep.Record) string {
	var out []string
	for _, n := range r.Labels {
		out = append(out, n+" "+value(r.Point[n]))
	}
	return strings.Join(out, ", ")
}

func value(v any) string {
	switch v := v.(type) {
	case nil:
		return ""
	case float64:
		return fmt.Sprintf("%.6g", v)
	case []any:
		if len(v) == 1 {
			return value(v[0])
		}
	}
	return fmt.Sprint(v)
}

// draw writes the chart in the format of the file's ending.
func (o *ShowOptions) draw(a *cli.App, m *sweep.Merged) error {
	if err := o.defaults(); err != nil {
		return err
	}
	c, err := o.chart(a, m)
	if err != nil {
		return err
	}
	svg, text, figure := c.SVG, c.Text, c.CurvesFigure
	switch o.Kind {
	case heat:
		svg, text, figure = c.HeatSVG, c.HeatText, c.HeatFigure
	case front:
		svg, text, figure = c.FrontSVG, c.FrontText, c.FrontFigure
	}
	switch {
	case o.File == "" && a.JSON:
		return a.PrintJSON(map[string]any{"kind": o.Kind, "x": c.XName, "y": c.YName, "by": c.ByName,
			"categories": c.Cats, "series": c.Series, "front": c.Front()})
	case o.File == "":
		return a.PrintText(text())
	case strings.HasSuffix(o.File, ".svg"), strings.HasSuffix(o.File, ".pdf"):
		return a.SaveFigure(o.File, o.Kind, figure())
	case strings.HasSuffix(o.File, ".html"):
		return a.Save(o.File, o.Kind, func(w io.Writer) error { return o.page(w, m, c, svg()) })
	}
	return fail.Usage("-o %s: the name must end in .html, .svg or .pdf", o.File)
}

// page writes a page of its own: the drawing, and its values as a table.
func (o *ShowOptions) page(w io.Writer, m *sweep.Merged, c *chart.Chart, svg string) error {
	title := cmp.Or(m.Manifest.Name, "sweep")
	facts := []page.Fact{{Name: "points", Value: fmt.Sprintf("%d with a result, %d failed, %d missing",
		len(m.Lines)-m.Failed, m.Failed, m.Missing)}, {Name: "rows drawn", Value: fmt.Sprint(c.Samples)},
		{Name: "rules", Value: "NCCL " + m.Manifest.NCCL},
		{Name: "program", Value: "simccl " + m.Manifest.Version}}
	if o.Where != "" {
		facts = append(facts, page.Fact{Name: "where", Value: o.Where})
	}
	what := o.Y + " over " + o.X
	if o.By != "" {
		what += ", by " + o.By
	}
	sections := []page.Section{{Title: what, Markup: svg}}
	if o.Kind == front {
		sections[0].Text = "Small and grey: all points. Large and on the line: those that no other beats " +
			"in both."
	}
	return page.WriteDocument(w, title, "simccl sweep show "+strings.Join(o.Dirs, " "), facts,
		append(sections, page.Section{Title: "Values", Markup: o.table(c)}))
}

// table formats the chart's values, one row per group, or the points of a front.
func (o *ShowOptions) table(c *chart.Chart) string {
	var b strings.Builder
	cell := func(tag, text string) { fmt.Fprintf(&b, "<%s>%s</%s>", tag, page.Escape(text), tag) }
	b.WriteString("<table><thead><tr>")
	if o.Kind == front {
		cell("th", c.XName)
		cell("th", c.YName)
		b.WriteString(`<th class="t">point</th></tr></thead><tbody>`)
		for _, p := range c.Front() {
			fmt.Fprintf(&b, `<tr><td>%.5g</td><td>%.5g</td><td class="t">%s</td></tr>`, p.X, p.Y,
				page.Escape(p.Name))
		}
		return b.String() + "</tbody></table>"
	}
	cell("th", cmp.Or(c.ByName, "all"))
	columns, cells := c.Table()
	for _, x := range columns {
		cell("th", x)
	}
	b.WriteString("</tr></thead><tbody>")
	for i, s := range c.Series {
		b.WriteString("<tr>")
		cell("td", s.Name)
		for _, text := range cells[i] {
			cell("td", text)
		}
		b.WriteString("</tr>\n")
	}
	return b.String() + "</tbody></table>"
}
