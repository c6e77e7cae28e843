package packetrun

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// Slowdown is the statistics over all ended flows of their slowdown: the completion time divided by the ideal
// time of the flow alone, at least 1.
type Slowdown struct {
	Quantiles
	// Sizes groups the flows by size: one group per size if there are few, else ten groups of about equal
	// numbers.
	Sizes []SizeGroup `json:"sizes"`
	// CDF is the share of flows that a slowdown is not below: pairs of slowdown and share, ascending.
	CDF [][2]float64 `json:"cdf"`
}

// Quantiles are nearest-rank quantiles of the slowdown of some flows.
type Quantiles struct {
	Flows  int     `json:"flows"`
	Mean   float64 `json:"mean"`
	Median float64 `json:"median"`
	P95    float64 `json:"p95"`
	P99    float64 `json:"p99"`
	Max    float64 `json:"max"`
}

// SizeGroup is the statistics of flows of Least to Most bytes.
type SizeGroup struct {
	Least int64 `json:"leastBytes"`
	Most  int64 `json:"mostBytes"`
	Quantiles
}

// groups of sizes, and points of a CDF, at most.
const (
	sizeGroups = 10
	cdfPoints  = 200
)

// slowdownOf returns the slowdown of a flow, 0 if it did not end.
func (f *Flow) slowdownOf() float64 {
	if f.FctNs == nil || f.IdealNs == 0 {
		return 0
	}
	return max(1, float64(*f.FctNs)/float64(f.IdealNs))
}

// slowdown summarises the flows; nil if none ended.
func slowdown(flows []Flow) *Slowdown {
	var ended []*Flow
	for i := range flows {
		if flows[i].Slowdown > 0 {
			ended = append(ended, &flows[i])
		}
	}
	if len(ended) == 0 {
		return nil
	}
	all := values(ended)
	x := &Slowdown{Quantiles: quantiles(all)}
	slices.SortStableFunc(ended, func(a, b *Flow) int { return int(min(max(a.Bytes-b.Bytes, -1), 1)) })
	for _, g := range grouped(ended) {
		x.Sizes = append(x.Sizes, SizeGroup{g[0].Bytes, g[len(g)-1].Bytes, quantiles(values(g))})
	}
	points := min(cdfPoints, len(all))
	for k := 1; k <= points; k++ {
		i := k*len(all)/points - 1
		x.CDF = append(x.CDF, [2]float64{all[i], float64(i+1) / float64(len(all))})
	}
	return x
}

// grouped divides flows in the order of their sizes; flows of one size stay together.
func grouped(flows []*Flow) (out [][]*Flow) {
	sizes := 1
	for i := 1; i < len(flows); i++ {
		if flows[i].Bytes != flows[i-1].Bytes {
			sizes++
		}
	}
	from := 0
	for i := 1; i <= len(flows); i++ {
		switch {
		case i < len(flows) && flows[i].Bytes == flows[i-1].Bytes:
		case i == len(flows), sizes <= sizeGroups, i-from >= (len(flows)+sizeGroups-1)/sizeGroups:
			out, from = append(out, flows[from:i]), i
		}
	}
	return out
}

// values returns the slowdowns of flows in ascending order.
func values(flows []*Flow) []float64 {
	out := make([]float64, len(flows))
	for i, f := range flows {
		out[i] = f.Slowdown
	}
	slices.Sort(out)
	return out
}

func quantiles(sorted []float64) Quantiles {
	sum := 0.0
	for _, v := range sorted {
		sum += v
	}
	n := len(sorted)
	at := func(share float64) float64 { return sorted[max(0, int(math.Ceil(share*float64(n)))-1)] }
	return Quantiles{n, sum / float64(n), at(0.5), at(0.95), at(0.99), sorted[n-1]}
}

func (q *Quantiles) String() string {
	return fmt.Sprintf("mean %.2f, median %.2f, p95 %.2f, p99 %.2f, max %.2f times the time alone", q.Mean,
		q.Median, q.P95, q.P99, q.Max)
}

// text formats the size groups, one line each, if there are several.
func (x *Slowdown) text() string {
	if len(x.Sizes) < 2 {
		return ""
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%-24s %8s %8s %8s %8s\n", "slowdown by bytes", "flows", "median", "p95", "p99")
	for _, g := range x.Sizes {
		name := fmt.Sprintf("%d to %d", g.Least, g.Most)
		if g.Least == g.Most {
			name = fmt.Sprint(g.Least)
		}
		fmt.Fprintf(&b, "  %-22s %8d %8.2f %8.2f %8.2f\n", name, g.Flows, g.Median, g.P95, g.P99)
	}
	return b.String()
}
