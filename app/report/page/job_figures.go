package page

import (
	"fmt"

	"github.com/simccl/simccl/app/report/chart"
	"github.com/simccl/simccl/study/replay"
)

// ranksDrawn is the most ranks of which a figure has a bar each; of more it has their mean.
const ranksDrawn = 16

// Figures are the parts of an iteration, by rank or beside other options, and the calls' times.
func (p *JobPage) Figures() []chart.Named {
	it := &chart.Chart{XName: "rank", YName: "iteration_ms", Stacked: true}
	for _, c := range short {
		it.Series = append(it.Series, chart.Series{Name: c})
	}
	bar := func(name string, ranks []replay.Rank) {
		for i := range it.Series {
			mean := 0.0
			for k := range ranks {
				mean += parts(&ranks[k])[i] / float64(len(ranks))
			}
			it.Series[i].Points = append(it.Series[i].Points, chart.Point{X: float64(len(it.Cats)),
				Y: mean / 1000})
		}
		it.Cats = append(it.Cats, name)
	}
	switch r := p.Report; {
	case len(p.Versus) > 0:
		it.XName = "options"
		bar("as given", r.ByRank)
		for _, v := range p.Versus {
			bar(v.Options, v.Report.ByRank)
		}
	case len(r.ByRank) > ranksDrawn:
		bar(fmt.Sprintf("mean of %d ranks", len(r.ByRank)), r.ByRank)
	default:
		for i := range r.ByRank {
			bar(fmt.Sprintf("rank %d", r.ByRank[i].Rank), r.ByRank[i:i+1])
		}
	}
	out := []chart.Named{{File: "iteration", Title: "Parts of an iteration", Chart: it}}
	var calls []chart.Sample
	recorded := func(c *replay.Call) string {
		for _, o := range p.Report.Calls {
			if o.Func != c.Func {
				return c.Func + " rec."
			}
		}
		return "recorded"
	}
	for _, c := range p.Report.Calls {
		if c.Bytes <= 0 {
			continue
		}
		calls = append(calls, chart.Sample{X: float64(c.Bytes), Y: c.Us, By: c.Func})
		if c.RecordedUs != nil && *c.RecordedUs > 0 {
			calls = append(calls, chart.Sample{X: float64(c.Bytes), Y: *c.RecordedUs, By: recorded(&c)})
		}
	}
	if len(calls) > 0 {
		c := chart.New(calls, "bytes", "time_us", "")
		c.LogX = true
		out = append(out, chart.Named{File: "calls", Title: "Calls by size", Chart: c})
	}
	return out
}
