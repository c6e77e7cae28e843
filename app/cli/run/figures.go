package run

import (
	"fmt"
	"io"

	"github.com/simccl/simccl/app/cli"
	"github.com/simccl/simccl/app/report/chart"
	"github.com/simccl/simccl/app/report/page"
	"github.com/simccl/simccl/study/packetrun"
)

// networkFigures are the drawings that a run has: those of no flow that ended, or of no samples, are left
// out.
func networkFigures(r *packetrun.Report) (out []chart.Named) {
	add := func(file, title, text, x, y string, curves []packetrun.Curve) *chart.Chart {
		var all []chart.Sample
		for _, c := range curves {
			for _, p := range c.Points {
				all = append(all, chart.Sample{X: p[0], Y: p[1], By: c.Name, Name: c.Name})
			}
		}
		if len(all) == 0 {
			return &chart.Chart{}
		}
		c := chart.New(all, x, y, "")
		c.LogY = false
		out = append(out, chart.Named{File: file, Title: title, Text: text, Chart: c})
		return c
	}
	if r.Series != nil {
		add("queue", "Queues over time", "The deepest egress queues of switches: data that waits, the most "+
			"within each step of the drawing. Ports by their nodes.", "time (µs)", "queue (kB)",
			r.QueueCurves())
		add("rate", "Rates over time",
			"Payload that was acknowledged, of the flows with the greatest slowdown.",
			"time (µs)", "rate (Gb/s)", r.RateCurves())
	}
	if d := r.Slowdown; d != nil {
		if len(d.Sizes) > 1 {
			add("slowdown", "Slowdown by size",
				"The completion time of flows by the time that they would take "+
					"alone, by their size.", "bytes", "slowdown", d.Curves())
		}
		cdf := packetrun.Curve{Points: d.CDF}
		c := add("cdf", "Distribution of the slowdown", "The share of flows whose slowdown is not above.",
			"slowdown", "share of flows", []packetrun.Curve{cdf})
		c.LogX, c.Steps = false, true
	}
	return out
}

// draw writes the page and the figures that are asked for.
func (o *NetworkOptions) draw(a *cli.App, r *packetrun.Report) error {
	all := networkFigures(r)
	if o.Page != "" {
		if err := a.Save(o.Page, "open it in a browser", func(w io.Writer) error {
			return o.page(w, r, all)
		}); err != nil {
			return err
		}
	}
	if o.Figures == "" {
		return nil
	}
	return a.SaveFigures(o.Figures, all)
}

// page is the report as a page: its text, and the figures.
func (o *NetworkOptions) page(w io.Writer, r *packetrun.Report, all []chart.Named) error {
	facts := []page.Fact{{Name: "model", Value: r.Model}, {Name: "seed", Value: fmt.Sprint(r.Seed)},
		{Name: "flows", Value: fmt.Sprint(len(r.Flows))}}
	if r.Line != nil {
		facts = append(facts, page.Fact{Name: "line's use", Value: fmt.Sprintf("%.1f %%, %s > %s",
			100*r.Line.Use,
			r.Node(r.Line.Link[0]), r.Node(r.Line.Link[1]))})
	}
	var sections []page.Section
	for _, f := range all {
		sections = append(sections, page.Section{Title: f.Title, Text: f.Text, Markup: f.SVG()})
	}
	return page.WriteDocument(w, "Network run", "simccl network run "+o.input(), facts,
		append(sections, page.Section{Title: "Summary", Markup: page.Pre(r.Text())}))
}

// input names what a run reads.
func (o *NetworkOptions) input() string {
	switch {
	case o.NS3 != "":
		return "--ns3 " + o.NS3
	case o.Fabric != "":
		return "--fabric " + o.Fabric + " --traffic " + o.Kind
	}
	return "--htsim " + o.Htsim.Matrix + " --topo " + o.Htsim.Topo
}
