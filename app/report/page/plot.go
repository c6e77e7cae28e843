package page

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/simccl/simccl/app/report/chart"
	"github.com/simccl/simccl/units"
)

// series is one line of the curves.
type series struct {
	class, name string
	short       string // the name in a figure of one column
	points      []Sample
	what        func(i int) string // added to a point's hint
	within      []Sample           // that are drawn otherwise, and lie within the axes
	marks       int                // 1 and up: no line, the shape of its points
}

// marks are the shapes of measured points, a file each: around a centre.
var marks = []string{"M-4.5 0a4.5 4.5 0 1 0 9 0a4.5 4.5 0 1 0 -9 0z", "M-4 -4H4V4H-4z", "M0 -5L5 4H-5z",
	"M0 -5.5L5 0L0 5.5L-5 0z"}

// drawnLast is the place of the simulated curve among those of a run.
const drawnLast = 3

// lines lists what the curves show, the most important last, on top.
func lines(points []point, measured []Measured) []series {
	of := func(value func(point) (us, bw float64)) (out []Sample) {
		for _, p := range points {
			us, bw := value(p)
			out = append(out, Sample{p.Size, us, bw})
		}
		return out
	}
	choice := func(i int) string { return points[i].Choice }
	out := []series{
		{class: "limit", name: "bound: the limiting link always busy",
			points: of(func(p point) (float64, float64) { return 0, p.LimitBW }), what: func(i int) string {
				return points[i].Link
			}},
		{class: "model", name: "NCCL's cost model", short: "NCCL's model",
			points: of(func(p point) (float64, float64) {
				return p.ModelUs, p.ModelBW
			}), what: choice},
		{class: "best", name: "best of all choices", short: "best choice",
			points: of(func(p point) (float64, float64) {
				return p.BestUs, p.BestBW
			}), what: func(i int) string { return points[i].Best }},
		{class: "sim", name: "simulated", short: "simulated", points: of(func(p point) (float64, float64) {
			return p.TimeUs, p.BusBW
		}), what: choice},
	}
	for i, m := range measured {
		var within []Sample // sizes of the run
		for _, x := range m.Points {
			if x.Size >= points[0].Size && x.Size <= points[len(points)-1].Size {
				within = append(within, x)
			}
		}
		out = append(out, series{class: "measured", name: m.Name, short: m.Name, points: within,
			what: func(int) string {
				return "measured"
			}, marks: 1 + i%len(marks)})
	}
	return out
}

// axis maps values to a side of a plot. All values that are drawn lie on it; a bound above it is a mark at
// its edge.
type axis struct {
	chart.Scale
	ticks []float64
}

// The plots' size and margins.
const (
	plotW, plotH                          = 480.0, 330.0
	plotLeft, plotRight, plotTop, plotLow = 58.0, 14.0, 12.0, 50.0
)

// sizes is the axis of sizes, in powers of two.
func sizes(points []point) axis {
	lo, hi := math.Log2(float64(max(points[0].Size, 1))), math.Log2(float64(max(points[0].Size, 2)))
	for _, p := range points {
		lo, hi = min(lo, math.Log2(float64(max(p.Size, 1)))), max(hi, math.Log2(float64(p.Size)))
	}
	if hi-lo < 0.5 {
		hi = lo + 0.5
	}
	a := axis{Scale: chart.Scale{Lo: math.Exp2(lo), Hi: math.Exp2(hi), From: plotLeft, To: plotW - plotRight,
		Log: true}}
	every := max(1, math.Ceil((hi-lo)/7))
	for e := math.Ceil(lo - 1e-9); e <= hi+1e-9; e += every {
		a.ticks = append(a.ticks, math.Exp2(e))
	}
	return a
}

// values is the axis of what is drawn: from 0 in round steps, or in powers of ten.
func values(all []series, of func(Sample) float64, log bool) axis {
	lo, hi := math.Inf(1), 0.0
	for _, l := range all {
		if l.class == "limit" && len(all) > 1 {
			continue // the axis gives the room to what was simulated
		}
		for _, p := range slices.Concat(l.points, l.within) {
			if v := of(p); v > 0 {
				lo, hi = min(lo, v), max(hi, v)
			}
		}
	}
	a := axis{Scale: chart.Scale{From: plotH - plotLow, To: plotTop, Log: log}}
	if hi == 0 {
		lo, hi = 1, 1
	}
	if !log {
		step := chart.Step(hi / 6)
		a.Hi = math.Ceil(hi/step-1e-9) * step
		for v := 0.0; v <= a.Hi*1.001; v += step {
			a.ticks = append(a.ticks, v)
		}
		return a
	}
	low, high := math.Floor(math.Log10(lo)+1e-9), math.Ceil(math.Log10(hi)-1e-9)
	if high <= low {
		high = low + 1
	}
	within := []float64{1}
	if high-low <= 2 {
		within = []float64{1, 2, 5}
	}
	for e := low; e <= high; e++ {
		for _, m := range within {
			if v := m * math.Pow(10, e); e < high || m == 1 {
				a.ticks = append(a.ticks, v)
			}
		}
	}
	// round values next to the least and the largest
	for len(within) > 1 && len(a.ticks) > 2 && a.ticks[1] <= lo {
		a.ticks = a.ticks[1:]
	}
	for n := len(a.ticks); len(within) > 1 && n > 2 && a.ticks[n-2] >= hi; n-- {
		a.ticks = a.ticks[:n-1]
	}
	a.Lo, a.Hi = a.ticks[0], a.ticks[len(a.ticks)-1]
	return a
}

// curves draws bus bandwidth over size, and beside it the time on two logarithmic axes,
// without the bound, which at small sizes is far below all times.
func curves(points []point, measured []Measured) (bandwidths, times markup) {
	if len(points) < 2 {
		return "", ""
	}
	all := lines(points, measured)
	for i := range points { // bars are to lie within the axes
		all[len(all)-1].within = append(all[len(all)-1].within, points[i].Least, points[i].Most)
	}
	return plot(points, all, "bus bandwidth by size", "busbw GB/s", false),
		plot(points, all[1:], "time by size", "time us", true)
}

func plot(points []point, all []series, label, unit string, time bool) markup {
	of := func(s Sample) float64 {
		if time {
			return s.TimeUs
		}
		return s.BusBW
	}
	x, y := sizes(points), values(all, of, time)
	var s chart.Drawing
	s.Add(`<svg class="plot" viewBox="0 0 %g %g" role="img" aria-label="%s">`, plotW, plotH, label)
	for _, v := range y.ticks {
		s.Add(`<line class="grid" x1="%g" x2="%g" y1="%.1f" y2="%.1f"/><text x="%g" y="%.1f" text-anchor="end">%g</text>`, plotLeft, plotW-plotRight, y.At(v), y.At(v), plotLeft-6, y.At(v)+4, v)
	}
	for _, v := range x.ticks {
		s.Add(`<line class="grid" x1="%.1f" x2="%.1f" y1="%g" y2="%g"/><text x="%.1f" y="%g" text-anchor="middle">%s</text>`, x.At(v), x.At(v), plotH-plotLow, plotH-plotLow+4, x.At(v), plotH-plotLow+19,
			chart.EscapeXML(strings.NewReplacer(" ", "", "iB", "").Replace(sizeName(units.Bytes(v)))))
	}
	s.Add(`<text class="soft" x="%g" y="%g" text-anchor="middle">size (binary units)</text><text class="soft" transform="translate(15 %g) rotate(-90)" text-anchor="middle">%s</text>`, (plotLeft+plotW)/2, plotH-8, (plotH-plotLow)/2, unit)
	for i := range points {
		s.WriteString(string(points[i].band(x, y, of)))
	}
	for _, l := range all {
		if over := l.above(y.Hi, of); over > 0 {
			s.Add(`<text class="soft" x="%g" y="%g" text-anchor="end">↑ bound: %.0f %s</text>`,
				plotW-plotRight-4,
				plotTop+12, over, strings.TrimPrefix(unit, "busbw "))
		}
		s.WriteString(string(l.draw(x, y, of)))
	}
	s.WriteString(`</svg>`)
	return markup(s.String())
}

// bandWidth is half the width of a bar from the slowest to the fastest draw.
const bandWidth = 4.0

// band draws a bar from the slowest to the fastest draw of hashed routes.
func (p *point) band(x, y axis, of func(Sample) float64) markup {
	a, b := of(p.Least), of(p.Most)
	if a <= 0 || b <= 0 {
		return ""
	}
	at, top, low := x.At(float64(max(p.Size, 1))), min(y.At(a), y.At(b)), max(y.At(a), y.At(b))
	return markup(
		fmt.Sprintf(`<rect class="band" x="%.1f" y="%.1f" width="%g" height="%.1f"><title>%s</title></rect>`,
			at-bandWidth, top, 2*bandWidth, max(1, low-top),
			chart.EscapeXML(fmt.Sprintf("%s, draws of hashed routes: %.2f to %.2f GB/s, %.2f to %.2f us",
				sizeName(p.Size),
				p.Least.BusBW, p.Most.BusBW, p.Most.TimeUs, p.Least.TimeUs))))
}

// draw draws a line and its points, or the points alone. It is broken where there is no
// value.
func (l *series) draw(x, y axis, of func(Sample) float64) markup {
	var path strings.Builder
	var dots chart.Drawing
	cmd := "M"
	for i, p := range l.points {
		v, size := of(p), float64(max(p.Size, 1))
		if v <= 0 || v > y.Hi*1.0001 {
			cmd = "M"
			continue
		}
		fmt.Fprintf(&path, "%s%.1f %.1f", cmd, x.At(size), y.At(v))
		cmd = "L"
		if l.marks > 0 {
			dots.Add(`<path class="dot measured" transform="translate(%.1f %.1f)" d="%s">`, x.At(size),
				y.At(v), marks[l.marks-1])
		} else {
			dots.Add(`<circle class="dot %s" cx="%.1f" cy="%.1f" r="%g">`, l.class, x.At(size), y.At(v),
				map[bool]float64{true: 3.2, false: 2.2}[l.class == "sim"])
		}
		dots.Add(`<title>%s</title></%s>`, chart.EscapeXML(l.hint(i)), map[bool]string{true: "path",
			false: "circle"}[l.marks > 0])
	}
	if path.Len() == 0 {
		return ""
	}
	if l.marks > 0 {
		return markup(dots.String())
	}
	return markup(fmt.Sprintf(`<path class="line %s" d="%s"/>%s`, l.class, path.String(), dots.String()))
}

// above is the largest value of a bound that is above the axis; 0: none.
func (l *series) above(axis float64, of func(Sample) float64) (most float64) {
	for _, p := range l.points {
		if v := of(p); l.class == "limit" && v > axis*1.0001 {
			most = max(most, v)
		}
	}
	return most
}

func (l *series) hint(i int) string {
	p := l.points[i]
	hint := fmt.Sprintf("%s, %s: %.2f GB/s", sizeName(p.Size), l.name, p.BusBW)
	if p.TimeUs > 0 {
		hint += fmt.Sprintf(", %.2f us", p.TimeUs)
	}
	if what := l.what(i); what != "" {
		hint += " (" + what + ")"
	}
	return hint
}

// key names the curves that have values.
func key(points []point, measured []Measured) markup {
	var s chart.Drawing
	for _, l := range lines(points, measured) {
		var any bool
		for _, p := range l.points {
			any = any || p.BusBW > 0
		}
		if !any {
			continue
		}
		name := l.name
		switch {
		case l.marks > 0:
			if name != "measured" {
				name = "measured: " + name
			}
			s.Add(`<span><svg viewBox="0 0 30 12" aria-hidden="true"><path class="dot measured" transform="translate(15 6)" d="%s"/></svg>%s</span>`, marks[l.marks-1], text(name))
			continue
		case l.class == "sim":
			name = "simulated, as chosen"
		}
		s.Add(`<span><svg viewBox="0 0 30 12" aria-hidden="true"><path class="line %s" d="M0 6H30"/></svg>%s</span>`, l.class, text(name))
	}
	if slices.ContainsFunc(points, func(p point) bool { return p.Least.BusBW > 0 }) {
		s.Add(`<span><svg viewBox="0 0 30 12" aria-hidden="true"><rect class="band" x="11" y="0" width="8" height="12"/></svg>slowest to fastest draw of hashed routes</span>`)
	}
	return markup(s.String())
}
