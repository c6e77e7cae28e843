package page

import (
	"fmt"
	"math"
	"strings"

	"github.com/simccl/simccl/internal/report/html"
	"github.com/simccl/simccl/units"
)

// series is one line of the curve.
type series struct {
	class, name string
	points      []Sample
	what        func(i int) string // added to a point's hint
}

// curveColours is how many measured curves have a colour of their own.
const curveColours = 3

// lines lists what the curve shows, the most important last, on top.
func lines(points []Point, measured []Measured) []series {
	of := func(value func(Point) (us, bw float64)) (out []Sample) {
		for _, p := range points {
			us, bw := value(p)
			out = append(out, Sample{p.Size, us, bw})
		}
		return out
	}
	choice := func(i int) string { return points[i].Choice }
	out := []series{
		{"limit", "bound: the limiting link always busy", of(func(p Point) (float64, float64) { return 0, p.LimitBW }), func(i int) string { return points[i].Link }},
		{"model", "NCCL's cost model", of(func(p Point) (float64, float64) { return p.ModelUs, p.ModelBW }), choice},
		{"best", "best of all choices", of(func(p Point) (float64, float64) { return p.BestUs, p.BestBW }), func(i int) string { return points[i].Best }},
		{"sim", "simulated", of(func(p Point) (float64, float64) { return p.TimeUs, p.BusBW }), choice},
	}
	for i, m := range measured {
		out = append(out, series{fmt.Sprintf("m%d", i%curveColours), m.Name, m.Points, func(int) string { return "measured" }})
	}
	return out
}

// curve draws bus bandwidth over size, sizes logarithmic.
func curve(points []Point, measured []Measured) markup {
	if len(points) < 2 {
		return ""
	}
	const w, h, left, right, top, bottom = 920.0, 360.0, 60.0, 26.0, 12.0, 46.0
	all := lines(points, measured)
	most := 0.0
	for _, l := range all[1:] {
		for _, p := range l.points {
			most = max(most, p.BusBW)
		}
	}
	for _, p := range points {
		if p.LimitBW < 1.6*most {
			most = max(most, p.LimitBW)
		}
	}
	step := html.Step(most / 5)
	top1 := math.Ceil(max(most, step)/step) * step
	lo, hi := math.Log2(float64(max(points[0].Size, 1))), math.Log2(float64(max(points[len(points)-1].Size, 2)))
	x := func(size units.Bytes) float64 {
		return left + (w-left-right)*(math.Log2(float64(max(size, 1)))-lo)/max(hi-lo, 1e-9)
	}
	y := func(v float64) float64 { return h - bottom - (h-top-bottom)*v/top1 }
	var s svg
	s.add(`<svg viewBox="0 0 %g %g" style="min-width:600px" role="img" aria-label="bus bandwidth by size">`, w, h)
	for v := 0.0; v <= top1*1.001; v += step {
		s.add(`<line class="grid" x1="%g" x2="%g" y1="%.1f" y2="%.1f"/><text x="%g" y="%.1f" text-anchor="end">%g</text>`, left, w-right, y(v), y(v), left-6, y(v)+4, v)
	}
	every := max(1, len(points)/10)
	for i, p := range points {
		if i%every == 0 {
			s.add(`<text x="%.1f" y="%g" text-anchor="middle">%s</text>`, x(p.Size), h-bottom+18, esc(strings.ReplaceAll(sizeName(p.Size), "iB", "")))
		}
	}
	s.add(`<text x="%g" y="%g" text-anchor="middle">size (binary units)</text><text transform="translate(14 %g) rotate(-90)" text-anchor="middle">busbw GB/s</text>`, w/2, h-8, h/2)
	for _, l := range all {
		var path strings.Builder
		var dots svg
		cmd := "M"
		for i, p := range l.points {
			if p.BusBW <= 0 || p.BusBW > top1 || x(p.Size) < left-0.1 || x(p.Size) > w-right+0.1 {
				cmd = "M" // the line is broken where there is no value, or none in the picture
				continue
			}
			fmt.Fprintf(&path, "%s%.1f %.1f", cmd, x(p.Size), y(p.BusBW))
			cmd = "L"
			hint := fmt.Sprintf("%s, %s: %.2f GB/s", sizeName(p.Size), l.name, p.BusBW)
			if p.TimeUs > 0 {
				hint += fmt.Sprintf(", %.2f us", p.TimeUs)
			}
			if what := l.what(i); what != "" {
				hint += " (" + what + ")"
			}
			dots.add(`<circle class="%s" cx="%.1f" cy="%.1f" r="3.5"><title>%s</title></circle>`, l.class, x(p.Size), y(p.BusBW), esc(hint))
		}
		if path.Len() > 0 {
			s.add(`<path class="line %s" d="%s"/>%s`, l.class, path.String(), dots.String())
		}
	}
	s.WriteString(`</svg>`)
	return s.html()
}

// heat draws the predicted time of every rival at every size against the best:
// blue wins, red loses, empty is off.
func heat(points []Point, rivals []Rival) markup {
	if len(points) == 0 || len(rivals) == 0 {
		return ""
	}
	const left, cell, row, top = 130.0, 28.0, 22.0, 8.0
	w, h := left+cell*float64(len(points))+24, top+row*float64(len(rivals))+64
	var s svg
	s.add(`<svg viewBox="0 0 %g %g" style="min-width:%gpx;max-width:%gpx" role="img" aria-label="predicted times of all algorithms">`, w, h, w*0.8, w*1.3)
	for i, p := range points {
		best := math.Inf(1)
		for _, r := range rivals {
			if r.Times[i] > 0 {
				best = min(best, r.Times[i])
			}
		}
		px := left + cell*float64(i)
		for j, r := range rivals {
			py := top + row*float64(j)
			t := r.Times[i]
			if t <= 0 {
				s.add(`<rect class="off" x="%g" y="%g" width="%g" height="%g"><title>%s at %s: off</title></rect>`, px, py, cell-2, row-2, esc(r.Name), esc(sizeName(p.Size)))
				continue
			}
			// A factor of 10 is as red as it gets.
			s.add(`<rect x="%g" y="%g" width="%g" height="%g" fill="%s"><title>%s at %s: %.2f us, %.2f of the best</title></rect>`, px, py, cell-2, row-2,
				heatColour(math.Log10(t/best)), esc(r.Name), esc(sizeName(p.Size)), t, t/best)
			if t == best {
				s.add(`<circle cx="%g" cy="%g" r="4" fill="#fff" pointer-events="none"/>`, px+cell/2-1, py+row/2-1)
			}
		}
		s.add(`<text transform="translate(%g %g) rotate(60)">%s</text>`, px+cell/2-4, top+row*float64(len(rivals))+10, esc(sizeName(p.Size)))
	}
	for j, r := range rivals {
		s.add(`<text x="%g" y="%g" text-anchor="end">%s</text>`, left-8, top+row*float64(j)+row/2+4, esc(r.Name))
	}
	s.WriteString(`</svg>`)
	return s.html()
}
