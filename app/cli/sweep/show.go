package sweep

import (
	"fmt"
	"io"
	"strings"

	"github.com/simccl/simccl/app/cli"
	"github.com/simccl/simccl/app/report/chart"
	"github.com/simccl/simccl/app/report/page"
	"github.com/simccl/simccl/internal/fail"
	"github.com/simccl/simccl/internal/newfile"
	"github.com/simccl/simccl/study/sweep"
	"github.com/spf13/cobra"
)

// view is what show draws.
type view struct {
	x, y, by, where, kind, file string
	partial                     bool
}

// Kinds of drawings.
const (
	curves = "curves"
	heat   = "heat"
	front  = "front"
)

func show(a *cli.App) *cobra.Command {
	var v view
	c := &cobra.Command{Use: "show DIR...",
		Short: "Draw the results of a sweep: curves, heat maps, the front of cost and time",
		Long: `show draws the results of a sweep in the terminal, or into a page (-o FILE.html) or a
picture (-o FILE.svg). --x, --y, --by and --where take columns of the results,
names that the sweep sets, and expressions of them as where of a specification.
Rows that fall on one place are drawn as their mean.

  curves  --y over --x, a curve for each value of --by
  heat    --y as colour, --x by --by
  front   all points, and those that no other beats in both --x and --y, which are
          to be small; with prices in the specification --x is usd_h, USD an hour
          of the machine, and usd_million is what a million operations cost`,
		Example: "  simccl sweep show results --x bytes --y busbw --by nodes\n" +
			"  simccl sweep show results --kind heat --x size --by nodes -o results.html",
		Args: cobra.MinimumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			m, err := merged(a, args, v.partial)
			if err != nil {
				return err
			}
			return v.draw(a, m, args)
		}}
	c.Flags().StringVar(&v.x, "x", "",
		"`COLUMN` or expression of the horizontal axis (default bytes; of a front usd_h)")
	c.Flags().StringVar(&v.y, "y", "",
		"`COLUMN` or expression that is drawn (default busbw; of a front time_us)")
	c.Flags().StringVar(&v.by, "by", "", "`COLUMN` or expression that groups")
	c.Flags().StringVar(&v.where, "where", "", "`CONDITION` that rows must meet")
	c.Flags().StringVar(&v.kind, "kind", curves, "curves, heat or front")
	c.Flags().StringVarP(&v.file, "output", "o", "", "`FILE`.html or .svg in place of text")
	c.Flags().BoolVar(&v.partial, "partial", true, "points may be missing")
	return c
}

// merged reads folders, with the prices of the first's specification.
func merged(a *cli.App, dirs []string, partial bool) (*sweep.Merged, error) {
	var paths []string
	for _, d := range dirs {
		paths = append(paths, a.Path(d))
	}
	m, err := sweep.Merge(paths...)
	if err != nil {
		return nil, err
	}
	if m.Missing > 0 && !partial {
		return nil, fail.Check("%d of %d points have no result; run the sweep to its end, or write --partial",
			m.Missing, m.Missing+len(m.Lines))
	}
	return m, m.UsePrices(paths[0])
}

// defaults fills in what was not asked for.
func (v *view) defaults() error {
	switch v.kind {
	case curves, heat:
		v.x, v.y = or(v.x, "bytes"), or(v.y, "busbw")
	case front:
		v.x, v.y = or(v.x, sweep.Priced[0]), or(v.y, "time_us")
	default:
		return fail.Usage("--kind %s: write %s, %s or %s", v.kind, curves, heat, front)
	}
	return nil
}

func or(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

// chart makes the chart that is asked for.
func (v *view) chart(m *sweep.Merged) (*chart.Chart, error) {
	var exprs [4]*sweep.Expr
	for i, text := range []string{v.x, v.y, v.by, v.where} {
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
	err := m.Each(func(r *sweep.Record, row map[string]any) error {
		s := chart.Sample{Name: label(r)}
		if e := exprs[3]; e != nil {
			keep, err := e.Value(row)
			if b, ok := keep.(bool); err != nil || !ok && keep != nil {
				return or2(err, fail.Usage("--where %s is neither true nor false", v.where))
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
		if s.X, s.Y = x, number; v.kind == front {
			if _, ok := x.(float64); !ok {
				return fail.Usage("--x %s is no number, which a front needs; write prices in the "+
					"specification, or a column", v.x)
			}
		}
		if b, ok := x.(bool); ok {
			s.X = value(b)
		}
		samples = append(samples, s)
		return nil
	})
	if err == nil && len(samples) == 0 {
		err = fail.Usage("no row has a number as %s over %s%s; columns are %s", v.y, v.x,
			map[bool]string{true: " where " + v.where}[v.where != ""], strings.Join(m.ColumnNames(), ", "))
	}
	return chart.New(samples, v.x, v.y, v.by), err
}

func or2(a, b error) error {
	if a != nil {
		return a
	}
	return b
}

// label names a point for hints: its settings.
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

// draw writes what was asked for in the form that the file's name says.
func (v *view) draw(a *cli.App, m *sweep.Merged, dirs []string) error {
	if err := v.defaults(); err != nil {
		return err
	}
	c, err := v.chart(m)
	if err != nil {
		return err
	}
	svg, text := c.SVG, c.Text
	switch v.kind {
	case heat:
		svg, text = c.HeatSVG, c.HeatText
	case front:
		svg, text = c.FrontSVG, c.FrontText
	}
	switch {
	case v.file == "" && a.JSON:
		return a.PrintJSON(map[string]any{"kind": v.kind, "x": c.XName, "y": c.YName, "by": c.ByName,
			"categories": c.Cats, "series": c.Series, "front": c.Front()})
	case v.file == "":
		return a.PrintText(text())
	case strings.HasSuffix(v.file, ".svg"):
		return save(a, v.file, v.kind, func(w io.Writer) error {
			_, err := io.WriteString(w, svg())
			return err
		})
	case strings.HasSuffix(v.file, ".html"):
		return save(a, v.file, v.kind, func(w io.Writer) error { return v.page(w, m, dirs, c, svg()) })
	}
	return fail.Usage("-o %s: the name must end in .html or .svg", v.file)
}

func save(a *cli.App, file, kind string, write func(w io.Writer) error) error {
	f, err := newfile.Create(a.Path(file))
	if err != nil {
		return fail.Input(err)
	}
	if err := f.Finish(write(f)); err != nil {
		return fail.Input(err)
	}
	a.Wrote(file, kind)
	return nil
}

// page writes a page of its own: the drawing, and its values as a table.
func (v *view) page(w io.Writer, m *sweep.Merged, dirs []string, c *chart.Chart, svg string) error {
	title := or(m.Manifest.Name, "sweep")
	facts := []page.Fact{{Name: "points", Value: fmt.Sprintf("%d with a result, %d failed, %d missing",
		len(m.Lines)-m.Failed, m.Failed, m.Missing)}, {Name: "rows drawn", Value: fmt.Sprint(c.Samples)},
		{Name: "rules", Value: "NCCL " + m.Manifest.NCCL},
		{Name: "program", Value: "simccl " + m.Manifest.Version}}
	if v.where != "" {
		facts = append(facts, page.Fact{Name: "where", Value: v.where})
	}
	what := v.y + " over " + v.x
	if v.by != "" {
		what += ", by " + v.by
	}
	sections := []page.Section{{Title: what, Markup: svg}}
	if v.kind == front {
		sections[0].Text = "Small and grey: all points. Large and on the line: those that no other beats " +
			"in both."
	}
	return page.WriteDocument(w, title, "simccl sweep show "+strings.Join(dirs, " "), facts,
		append(sections, page.Section{Title: "Values", Markup: table(v, c)}))
}

// table is the drawing's values, a row a group; of a front its points.
func table(v *view, c *chart.Chart) string {
	var b strings.Builder
	cell := func(tag, text string) { fmt.Fprintf(&b, "<%s>%s</%s>", tag, page.Escape(text), tag) }
	b.WriteString("<table><thead><tr>")
	if v.kind == front {
		cell("th", c.XName)
		cell("th", c.YName)
		b.WriteString(`<th class="t">point</th></tr></thead><tbody>`)
		for _, p := range c.Front() {
			fmt.Fprintf(&b, `<tr><td>%.5g</td><td>%.5g</td><td class="t">%s</td></tr>`, p.X, p.Y,
				page.Escape(p.Name))
		}
		return b.String() + "</tbody></table>"
	}
	cell("th", or(c.ByName, "all"))
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
