package page

import (
	"github.com/simccl/simccl/app/report/chart"
)

// Figures are the curves of the page for a paper: bandwidth and time by size, with a bar from the slowest to
// the fastest draw of hashed routes. The bound of the limiting link is on the page alone.
func (p *page) Figures() []chart.Named {
	if len(p.Points) == 0 {
		return nil
	}
	of := func(name string, value func(Sample) float64) *chart.Chart {
		c := &chart.Chart{XName: "bytes", YName: name, LogX: true}
		all := lines(p.Points, p.Measured)
		all[0] = all[drawnLast] // the simulated curve, in place of the bound
		for k, l := range all {
			if k == drawnLast {
				continue
			}
			s := chart.Series{Name: l.short}
			for i, at := range l.points {
				v := value(at)
				if v <= 0 {
					continue
				}
				q := chart.Point{X: float64(max(at.Size, 1)), Y: v, N: 1, Least: v, Most: v}
				if a, b := value(p.Points[min(i, len(p.Points)-1)].Least),
					value(p.Points[min(i, len(p.Points)-1)].Most); l.class == "sim" && a > 0 && b > 0 {
					q.N, q.Least, q.Most = 2, min(a, b), max(a, b)
				}
				s.Points = append(s.Points, q)
			}
			if len(s.Points) > 0 {
				c.Series, c.Samples = append(c.Series, s), c.Samples+len(s.Points)
			}
		}
		return c
	}
	out := []chart.Named{{File: "time", Title: "Time by size", Chart: of("time_us", func(s Sample) float64 {
		return s.TimeUs
	})}}
	out[0].LogY = true
	if bw := of("busbw", func(s Sample) float64 { return s.BusBW }); bw.Samples > 0 {
		out = append(out, chart.Named{File: "bandwidth", Title: "Bus bandwidth by size", Chart: bw})
	}
	return out
}
