package packetrun

import (
	"cmp"
	"fmt"
	"slices"
)

// Curve is one line of a figure.
type Curve struct {
	Name   string
	Points [][2]float64
}

// Curves of a figure, and values of one over time, at most.
const (
	mostCurves = 4
	mostBins   = 120
)

// bins divides the time of a series: their number, and the length of one in ns.
func (s *Series) bins() (n int, ns int64) {
	n = int(min(mostBins, max(1, s.EndNs/s.IntervalNs)))
	return n, max(1, (s.EndNs+int64(n)-1)/int64(n))
}

// QueueCurves returns the deepest queues over time: time in µs, and the largest sample of a bin in kB.
func (x *Report) QueueCurves() (out []Curve) {
	s := x.Series
	all := slices.Clone(s.Queues)
	peak := func(q QueueSeries) (most int64) {
		for _, p := range q.Points {
			most = max(most, p[1])
		}
		return most
	}
	slices.SortStableFunc(all, func(a, b QueueSeries) int { return cmp.Compare(peak(b), peak(a)) })
	n, ns := s.bins()
	for _, q := range all[:min(mostCurves, len(all))] {
		c, bytes, at := Curve{Name: fmt.Sprintf("%s > %s", x.Node(q.Link[0]), x.Node(q.Link[1]))}, int64(0), 0
		for k := range n {
			most := bytes // the value at the end of the bin before
			for ; at < len(q.Points) && (q.Points[at][0] < int64(k+1)*ns || k == n-1); at++ {
				bytes = q.Points[at][1]
				most = max(most, bytes)
			}
			c.Points = append(c.Points, [2]float64{float64(int64(k)*ns) / 1e3, float64(most) / 1e3})
		}
		out = append(out, c)
	}
	return out
}

// RateCurves returns the rates over time of the flows with the largest slowdown: time in µs, and the payload
// acknowledged within a bin as a rate in Gb/s.
func (x *Report) RateCurves() (out []Curve) {
	s := x.Series
	all := slices.Clone(s.Rates)
	slices.SortStableFunc(all, func(a, b RateSeries) int {
		return cmp.Compare(x.Flows[b.Flow].Slowdown, x.Flows[a.Flow].Slowdown)
	})
	n, ns := s.bins()
	for _, r := range all[:min(mostCurves, len(all))] {
		f := &x.Flows[r.Flow]
		c, acked, at := Curve{Name: fmt.Sprintf("flow %d, %s > %s", r.Flow, x.Node(f.Src), x.Node(f.Dst))},
			int64(0), 0
		for k := range n {
			before := acked
			for ; at < len(r.Points) && (r.Points[at][0] < int64(k+1)*ns || k == n-1); at++ {
				acked = r.Points[at][2]
			}
			c.Points = append(c.Points, [2]float64{float64(int64(k)*ns) / 1e3, float64(acked-before) * 8 /
				float64(ns)})
		}
		out = append(out, c)
	}
	return out
}

// Curves returns the median, 95th and 99th percentile of the slowdown by size of flows; the x of a group is
// its largest size.
func (x *Slowdown) Curves() []Curve {
	out := []Curve{{Name: "median"}, {Name: "p95"}, {Name: "p99"}}
	for _, g := range x.Sizes {
		for i, v := range []float64{g.Median, g.P95, g.P99} {
			out[i].Points = append(out[i].Points, [2]float64{float64(g.Most), v})
		}
	}
	return out
}
