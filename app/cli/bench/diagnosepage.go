package bench

import (
	"fmt"
	"io"
	"strings"

	"github.com/simccl/simccl/app/report/chart"
	"github.com/simccl/simccl/app/report/page"
	"github.com/simccl/simccl/study/diagnose"
	"github.com/simccl/simccl/topo"
)

// page writes the answer as a page: measured times in the expected band with those of the suspects, the
// machine with what is suspected first, and the text.
func (o *DiagnoseOptions) page(w io.Writer, r *diagnose.Report) error {
	facts := []page.Fact{{Name: "verdict", Value: string(r.Verdict)}}
	if r.From != nil {
		facts = append(facts, page.Fact{Name: "parts from",
			Value: fmt.Sprintf("%d B (%s)", *r.From, r.Shape)})
	}
	if r.Machine != "" {
		facts = append(facts, page.Fact{Name: "machine", Value: r.Machine})
	}
	sections := curves(r)
	if r.System != nil {
		s := page.Section{Title: "Machine", Text: "A node."}
		marked := func(topo.NodeID) bool { return false }
		if len(r.Suspects) > 0 {
			first := &r.Suspects[0]
			s.Text = "A node; marked is what the first suspect (" + first.Kind + ") concerns. To prove it: " +
				first.Prove + "."
			marked = func(id topo.NodeID) bool { return first.Concerns(r.System.Nodes[id].Kind) }
		}
		s.Markup = page.Marked(r.System, marked)
		sections = append(sections, s)
	}
	return page.WriteDocument(w, "Diagnosis", "simccl diagnose "+strings.Join(o.Files, " "), facts,
		append(sections, page.Section{Title: "Answer", Markup: page.Pre(r.Text())}))
}

// curves are a chart of each table: times over bytes, expected ones with their band.
func curves(r *diagnose.Report) (out []page.Section) {
	for i := 0; i < len(r.Sizes); {
		table := r.Sizes[i].Table
		measured, expected := chart.Series{Name: "measured"}, chart.Series{Name: "expected", Band: true}
		n := 0
		for ; i < len(r.Sizes) && r.Sizes[i].Table == table; i++ {
			z := &r.Sizes[i]
			n++
			measured.Points = append(measured.Points, chart.Point{X: float64(z.Bytes), Y: z.Measured, N: 1,
				Least: z.Measured, Most: z.Measured})
			expected.Points = append(expected.Points, chart.Point{X: float64(z.Bytes), Y: z.Expected[1], N: 1,
				Least: z.Expected[0], Most: z.Expected[2]})
		}
		c := &chart.Chart{XName: "bytes", YName: "time, us", LogX: true, LogY: true, Samples: n,
			Series: []chart.Series{measured, expected}}
		for k := range r.Suspects {
			s := &r.Suspects[k]
			if s.Table != table || len(s.Curve) == 0 {
				continue
			}
			with := chart.Series{Name: fmt.Sprintf("%d. %s", s.Rank, s.Kind)}
			for _, p := range s.Curve {
				with.Points = append(with.Points, chart.Point{X: float64(p.Bytes), Y: p.Us, N: 1, Least: p.Us,
					Most: p.Us})
			}
			c.Series = append(c.Series, with)
		}
		title := "Times"
		if table != "" {
			title += ", " + table
		}
		out = append(out, page.Section{Title: title, Markup: c.SVG(),
			Text: "The area is what is expected, from least to most."})
	}
	return out
}
