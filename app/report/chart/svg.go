package chart

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// style gives a Drawing its colours where it is alone; on a page of the report the
// page's own variables hold (web/DESIGN.md).
const style = `<style>svg.chart{font:12px system-ui,sans-serif}svg.chart text{fill:var(--fg,#16202a);stroke:none}.grid{stroke:var(--line,#d3dae1);stroke-width:1}.l{fill:none;stroke-width:2}` +
	`.frame{fill:var(--bg,#fff)}.rest{fill:var(--edge,#7a8691)}.c0{stroke:var(--k-blue,#0961bb);fill:var(--k-blue,#0961bb)}.c1{stroke:var(--k-orange,#964c04);fill:var(--k-orange,#964c04)}.c2{stroke:var(--k-green,#21763c);fill:var(--k-green,#21763c)}` +
	`.c3{stroke:var(--k-purple,#7847a6);fill:var(--k-purple,#7847a6)}.c4{stroke:var(--k-teal,#057176);fill:var(--k-teal,#057176)}.c5{stroke:var(--k-pink,#9e366f);fill:var(--k-pink,#9e366f)}.c6{stroke:var(--k-olive,#71640b);fill:var(--k-olive,#71640b)}.c7{stroke:var(--k-grey,#5d646c);fill:var(--k-grey,#5d646c)}` +
	`.l.c0,.l.c1,.l.c2,.l.c3,.l.c4,.l.c5,.l.c6,.l.c7{fill:none}.q0{fill:var(--r0,#e5f5ff)}.q1{fill:var(--r1,#a2d9ff)}.q2{fill:var(--r2,#65baf9)}.q3{fill:var(--r3,#4298e0)}.q4{fill:var(--r4,#3577ba)}.q5{fill:var(--r5,#335989)}.q6{fill:var(--r6,#303e53)}` +
	`svg.chart .t0{fill:var(--i0,#000)}svg.chart .t1{fill:var(--i1,#000)}svg.chart .t2{fill:var(--i2,#000)}svg.chart .t3{fill:var(--i3,#000)}svg.chart .t4{fill:var(--i4,#fff)}svg.chart .t5{fill:var(--i5,#fff)}svg.chart .t6{fill:var(--i6,#fff)}</style>`

const (
	colours = 8
	shades  = 7 // of the ramp of amounts
)

// dashes distinguish curves without their colour.
var dashes = []string{"", "7 4", "2 3", "10 3 2 3"}

// Size of a Drawing, and its margins.
const (
	width, height            = 860.0, 420.0
	left, right, top, bottom = 74.0, 18.0, 16.0, 50.0
)

// ticks are round values: powers of two or ten where logarithmic.
func ticks(s *Scale) []float64 {
	var out []float64
	if s.Log {
		base := 10.0
		if s.Hi/s.Lo < 3000 {
			base = 2
		}
		step := max(1, math.Ceil(math.Log(s.Hi/s.Lo)/math.Log(base)/9))
		for e := math.Ceil(math.Log(s.Lo)/math.Log(base) - 1e-9); math.Pow(base, e) <=
			s.Hi*1.0001; e += step {
			out = append(out, math.Pow(base, e))
		}
		return out
	}
	step := Step((s.Hi - s.Lo) / 6)
	for v := math.Ceil(s.Lo/step-1e-9) * step; v <= s.Hi+step*1e-6; v += step {
		out = append(out, v)
	}
	return out
}

// number prints a tick: with binary or decimal units where it is large.
func number(v float64) string {
	if v == 0 {
		return "0" // not -0
	}
	if a := math.Abs(v); a >= 1<<10 && v == math.Trunc(v) {
		for i, u := range []string{"Ti", "Gi", "Mi", "Ki"} {
			if by := math.Pow(1024, float64(4-i)); a >= by && math.Mod(v, by) == 0 {
				return strconv.FormatFloat(v/by, 'g', 4, 64) + u
			}
		}
	}
	return strconv.FormatFloat(v, 'g', 4, 64)
}

// scales are those of both axes: Y begins at 0 where it is linear.
func (c *Chart) scales() (x, y Scale) {
	xl, xh := c.bounds(func(p Point) float64 { return p.X })
	yl, yh := c.bounds(func(p Point) float64 { return p.Y })
	if len(c.Cats) > 0 {
		xl, xh = -0.3, float64(len(c.Cats))-0.7
	}
	if !c.LogY {
		if yl, yh = min(0, yl), max(yh*1.04, 0); yl == yh { // all are 0
			yh = 1
		}
	}
	return Scale{Lo: xl, Hi: xh, From: left, To: width - right, Log: c.LogX},
		Scale{Lo: yl, Hi: yh, From: height - bottom, To: top, Log: c.LogY}
}

// frame draws axes and grid.
func (c *Chart) frame(d *Drawing, x, y Scale, legend float64) {
	d.Add(`<svg xmlns="http://www.w3.org/2000/svg" class="chart" viewBox="0 0 %g %g" style="min-width:700px;max-width:1020px" role="img" aria-label="%s over %s">%s<rect class="frame" width="100%%" height="100%%"/>`, width, height+legend, EscapeXML(c.YName), EscapeXML(c.XName), style)
	rises, _ := lines(y, c.YName)
	for _, v := range rises {
		d.Add(`<line class="grid" x1="%g" x2="%g" y1="%.1f" y2="%.1f"/><text x="%g" y="%.1f" text-anchor="end">%s</text>`, left, width-right, y.At(v), y.At(v), left-6, y.At(v)+4, EscapeXML(c.tick(c.YName, v)))
	}
	if len(c.Cats) > 0 {
		every := max(1, (len(c.Cats)+11)/12)
		for i, n := range c.Cats {
			if i%every == 0 {
				d.Add(`<text x="%.1f" y="%g" text-anchor="middle">%s</text>`, x.At(float64(i)), height-bottom+
					18, EscapeXML(Short(n, 16)))
			}
		}
	} else {
		for _, v := range c.places(x) {
			d.Add(`<text x="%.1f" y="%g" text-anchor="middle">%s</text>`, x.At(v), height-bottom+18,
				EscapeXML(c.tick(c.XName, v)))
		}
	}
	d.Add(`<text x="%g" y="%g" text-anchor="middle">%s</text><text transform="translate(18 %g) rotate(-90)" text-anchor="middle">%s</text>`, (left+width)/2, height-8, EscapeXML(axis(c.XName)), height/2, EscapeXML(axis(c.YName)))
}

// fewPlaces on an axis are named themselves, in place of round values.
const fewPlaces = 8

// places are what the axis of X names.
func (c *Chart) places(x Scale) []float64 {
	own := c.columns()
	round, _ := lines(x, c.XName)
	for i := 1; i < len(own); i++ {
		if x.At(own[i])-x.At(own[i-1]) < (x.To-x.From)/20 {
			return round
		}
	}
	if len(own) <= fewPlaces {
		return own
	}
	return round
}

// legend lists the groups below the Drawing and returns the height it takes.
func (c *Chart) legend(d *Drawing) float64 {
	if len(c.Series) == 1 && c.Series[0].Name == "" {
		return 0
	}
	x, y := left, height+14.0
	if c.ByName != "" {
		d.Add(`<text x="%g" y="%g">%s:</text>`, x, y, EscapeXML(c.ByName))
		x += 18 + 11*float64(len([]rune(c.ByName)))
	}
	for i, s := range c.Series {
		label := Short(s.Name, 40)
		wide := 42 + 11*float64(len([]rune(label))) // text is larger on narrow screens (html/style.css)
		if x+wide > width-right && x > left {
			x, y = left, y+22
		}
		d.Add(`<path class="l c%d" d="M%g %gh24"%s/><text x="%g" y="%g">%s</text>`, i%colours, x, y-4,
			dashed(i), x+29, y, EscapeXML(label))
		x += wide
	}
	return y + 8 - height
}

// dashed distinguishes groups: by the dashes, which begin anew later than the colours.
func dashed(i int) string {
	if d := dashes[(i+i/colours)%len(dashes)]; d != "" {
		return ` stroke-dasharray="` + d + `"`
	}
	return ""
}

func (c *Chart) hint(s Series, p Point) string {
	at := number(p.X)
	if len(c.Cats) > 0 {
		at = c.Cats[int(p.X)]
	}
	text := fmt.Sprintf("%s: %s %s, %s %.5g", s.Name, c.XName, at, c.YName, p.Y)
	if p.N > 1 {
		text += fmt.Sprintf(" (mean of %d)", p.N)
	} else if p.Name != "" {
		text += " (" + p.Name + ")"
	}
	return strings.TrimPrefix(text, ": ")
}

// SVG draws a curve for each group.
func (c *Chart) SVG() string {
	if len(c.Series) == 0 {
		return ""
	}
	var d, key Drawing
	x, y := c.scales()
	c.frame(&d, x, y, c.legend(&key))
	for i, s := range c.Series {
		var path, dots Drawing
		if s.Band {
			d.WriteString(band(s.Points, &x, &y, i))
		}
		for k, p := range s.Points {
			switch {
			case k == 0:
				path.Add("M%.1f %.1f", x.At(p.X), y.At(p.Y))
			case c.Steps:
				path.Add("H%.1fV%.1f", x.At(p.X), y.At(p.Y))
			default:
				path.Add("L%.1f %.1f", x.At(p.X), y.At(p.Y))
			}
			if !c.marks(&s) {
				continue
			}
			dots.Add(`<circle class="c%d" cx="%.1f" cy="%.1f" r="3"><title>%s</title></circle>`, i%colours,
				x.At(p.X), y.At(p.Y), EscapeXML(c.hint(s, p)))
		}
		d.Add(`<path class="l c%d" d="%s"%s/>%s`, i%colours, path.String(), dashed(i), dots.String())
	}
	return d.String() + key.String() + "</svg>\n"
}

// band is the area of a curve from least to most.
func band(points []Point, x, y *Scale, colour int) string {
	var d Drawing
	d.Add(`<polygon class="c%d" style="stroke:none;opacity:.18" points="`, colour%colours)
	for _, p := range points {
		d.Add("%.1f,%.1f ", x.At(p.X), y.At(min(p.Most, y.Hi)))
	}
	for _, p := range slices.Backward(points) {
		d.Add("%.1f,%.1f ", x.At(p.X), y.At(max(p.Least, y.Lo)))
	}
	return d.String() + `"/>`
}

// FrontSVG draws every point and the front through those that no other beats.
func (c *Chart) FrontSVG() string {
	if len(c.Series) == 0 {
		return ""
	}
	var d Drawing
	x, y := c.scales()
	c.frame(&d, x, y, 0)
	for _, s := range c.Series {
		for _, p := range s.Points {
			d.Add(`<circle class="rest" cx="%.1f" cy="%.1f" r="2.6"><title>%s</title></circle>`, x.At(p.X),
				y.At(p.Y), EscapeXML(c.hint(s, p)))
		}
	}
	var path Drawing
	front := c.Front()
	for k, p := range front {
		if k == 0 {
			path.Add("M%.1f %.1f", x.At(p.X), y.At(p.Y))
		} else {
			path.Add("H%.1fV%.1f", x.At(p.X), y.At(p.Y))
		}
	}
	d.Add(`<path class="l c0" d="%s"/>`, path.String())
	for _, p := range front {
		d.Add(`<circle class="c0" cx="%.1f" cy="%.1f" r="4"><title>%s</title></circle>`, x.At(p.X), y.At(p.Y),
			EscapeXML(c.hint(Series{}, p)))
	}
	return d.String() + "</svg>\n"
}

// columns are the values of X of all groups, in order.
func (c *Chart) columns() []float64 {
	var out []float64
	for _, s := range c.Series {
		for _, p := range s.Points {
			if !slices.Contains(out, p.X) {
				out = append(out, p.X)
			}
		}
	}
	slices.Sort(out)
	return out
}

func (c *Chart) label(x float64) string {
	if len(c.Cats) > 0 {
		return c.Cats[int(x)]
	}
	return number(x)
}

// shade is 0 for the least and 1 for the largest value.
func (c *Chart) shade(v float64) float64 {
	lo, hi := c.bounds(func(p Point) float64 { return p.Y })
	return (&Scale{Lo: lo, Hi: hi, To: 1, Log: c.LogY}).At(v)
}

// Columns of a heat map whose cells are wide enough for their numbers.
const (
	numbered  = 40
	cellWide  = 48.0
	cellPlain = 26.0
)

// step is a value's place on the ramp.
func (c *Chart) step(v float64) int { return int(max(0, min(shades-1, c.shade(v)*shades))) }

// HeatSVG draws a cell for each place of X and group: the stronger its colour, the more,
// with the number in it.
func (c *Chart) HeatSVG() string {
	cols := c.columns()
	if len(cols) == 0 {
		return ""
	}
	const side, row = 150.0, 28.0
	cell := cellPlain
	if len(cols) <= numbered {
		cell = max(cellWide, min(84.0, (width-side-right)/float64(len(cols))))
	}
	w, h := side+cell*float64(len(cols))+right+40, top+row*float64(len(c.Series))+110
	var d Drawing
	d.Add(`<svg xmlns="http://www.w3.org/2000/svg" class="chart" viewBox="0 0 %g %g" style="min-width:%gpx;max-width:%gpx" role="img" aria-label="%s over %s and %s">%s<rect class="frame" width="100%%" height="100%%"/>`, w, h, w*.95, w*1.15, EscapeXML(c.YName), EscapeXML(c.XName), EscapeXML(c.ByName), style)
	for i, s := range c.Series {
		at := top + row*float64(i)
		d.Add(`<text x="%g" y="%g" text-anchor="end">%s</text>`, side-8, at+18,
			EscapeXML(Short(s.Name, 20)))
		for _, p := range s.Points {
			px, step := side+cell*float64(slices.Index(cols, p.X)), c.step(p.Y)
			d.Add(`<g><rect x="%.1f" y="%g" width="%.1f" height="%g" rx="2" class="q%d"/>`, px, at, cell-2,
				row-2, step)
			if cell >= cellWide {
				d.Add(`<text class="t%d" x="%.1f" y="%g" text-anchor="middle">%s</text>`, step, px+cell/2-1,
					at+17, EscapeXML(number(digits(p.Y))))
			}
			d.Add(`<title>%s</title></g>`, EscapeXML(c.hint(s, p)))
		}
	}
	foot := top + row*float64(len(c.Series))
	for i, x := range cols {
		d.Add(`<text transform="translate(%.1f %g) rotate(30)">%s</text>`, side+cell*(float64(i)+.3), foot+16,
			EscapeXML(Short(c.label(x), 14)))
	}
	c.ramp(&d, 8, h-30)
	d.Add(`<text x="%g" y="%g">%s over %s, by %s</text>`, 8.0, h-8, EscapeXML(c.YName), EscapeXML(c.XName),
		EscapeXML(c.ByName))
	return d.String() + "</svg>\n"
}

// digits cuts a number to three digits.
func digits(v float64) float64 {
	if v == 0 {
		return 0
	}
	scale := math.Pow(10, 2-math.Floor(math.Log10(math.Abs(v))))
	return math.Round(v*scale) / scale
}

// ramp draws the steps of colour with the values at which they begin and end.
func (c *Chart) ramp(d *Drawing, x, y float64) {
	lo, hi := c.bounds(func(p Point) float64 { return p.Y })
	of := Scale{Lo: lo, Hi: hi, To: 1, Log: c.LogY}
	for i := range shades {
		d.Add(`<rect class="q%d" x="%g" y="%g" width="26" height="12"/>`, i, x+60+28*float64(i), y-10)
	}
	d.Add(`<text x="%g" y="%g" text-anchor="end">%s</text><text x="%g" y="%g">%s</text>`, x+54, y,
		EscapeXML(number(digits(of.Lo))), x+64+28*shades, y, EscapeXML(number(digits(of.Hi))))
}
