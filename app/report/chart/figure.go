package chart

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// Figure is a chart for a paper: as wide as one column of two, with units at the axes, the name of each
// curve at its end, and a bar from the least to the most where a point is the mean of several. It is a list
// of shapes, which SVG and PDF write.
type Figure struct {
	Width, Height float64 // points, 1/72 inch
	Title         string
	shapes        []shape
}

// shape is a line through points, a rectangle (of two corners), a mark at one, or text at one.
type shape struct {
	at     [][2]float64
	kind   kind
	ink    ink
	wide   float64 // of a line; of a mark its radius
	sides  int     // of a mark, of which a circle has none
	dash   []float64
	text   string
	anchor string // of text: start, middle or end
	turned bool   // by 90 degrees, counter-clockwise
}

type kind int

const (
	aLine kind = iota
	aBox
	aMark
	aText
)

// ink is a colour, 0xRRGGBB.
type ink int

// inks of curves are Okabe's and Ito's, which people with any colour vision distinguish
// (https://jfly.uni-koeln.de/color), without yellow, which white paper swallows.
var inks = []ink{0x0072b2, 0xd55e00, 0x009e73, 0xcc79a7, 0xe69f00, 0x56b4e9, 0x000000}

const (
	black  ink = 0x000000
	grey   ink = 0x8a8a8a
	line   ink = 0xc8c8c8 // of the grid
	faint  ink = 0xe8e8e8 // of the minor grid
	column     = 246.0    // points: ACM's and IEEE's column, 3.42 inch
	size       = 8.0      // points of text: IEEE asks for 8 to 10, captions have 8
)

// strokes distinguish curves without their colour.
var strokes = [][]float64{nil, {4, 2}, {1, 1.6}, {6, 1.6, 1.2, 1.6}}

// units are what columns of results are in.
var units = map[string]string{"bytes": "B", "size": "B", "busbw": "GB/s", "algbw": "GB/s", "usd_h": "USD/h",
	"usd_million": "USD per million", "cable_gbit": "Gbit/s", "nic_gbit": "Gbit/s", "tokens_s": "tokens/s",
	"load": "%", "peak_queue_bytes": "B"}

// axis is a column's name with its unit.
func axis(name string) string {
	u := units[name]
	if full := map[string]string{"bytes": "message size", "busbw": "bus bandwidth",
		"algbw": "algorithm bandwidth"}[name]; full != "" {
		name = full
	}
	for _, e := range [][2]string{{"_us", "µs"}, {"_ms", "ms"}, {"_s", "s"}, {"_h", "h"}} {
		if base, ok := strings.CutSuffix(name, e[0]); ok && u == "" {
			name, u = base, e[1]
		}
	}
	for _, e := range [][2]string{{"_p50", "median "}, {"_p99", "99th-percentile "}} {
		if base, ok := strings.CutSuffix(name, e[0]); ok {
			name = e[1] + strings.Replace(base, "fct", "FCT", 1)
		}
	}
	if u == "" {
		return name
	}
	return name + " (" + u + ")"
}

func (f *Figure) add(s shape) { f.shapes = append(f.shapes, s) }

func (f *Figure) line(of ink, wide float64, at ...[2]float64) {
	f.add(shape{at: at, kind: aLine, ink: of, wide: wide})
}

func (f *Figure) label(x, y float64, anchor, text string) {
	f.add(shape{at: [][2]float64{{x, y}}, kind: aText, ink: black, text: text, anchor: anchor})
}

// wideOf is about how wide a text is, in points: by kinds of letters of Helvetica, whose capitals are wide.
func wideOf(text string) (points float64) {
	for _, r := range text {
		switch {
		case strings.ContainsRune("mwMW%@", r):
			points += 0.86 * size
		case unicode.IsUpper(r):
			points += 0.7 * size
		case strings.ContainsRune("ijltf.,:/-() ", r):
			points += 0.3 * size
		default:
			points += 0.54 * size
		}
	}
	return points
}

// sides are of the marks of curves, one after the other: also without colour and dashes, as at a
// single size, it shows which curve a point is of.
var sides = []int{0, 4, 3}

// corners are those of a mark, of the area of a circle of its radius.
func (s *shape) corners() (out [][2]float64) {
	n := float64(s.sides)
	r := s.wide * math.Sqrt(2*math.Pi/(n*math.Sin(2*math.Pi/n)))
	for k := range s.sides {
		a := 2*math.Pi*(float64(k)+0.5)/n + math.Pi/2
		out = append(out, [2]float64{s.at[0][0] + r*math.Cos(a), s.at[0][1] + r*math.Sin(a)})
	}
	return out
}

// plot is the room for curves, with its scales.
type plot struct {
	x, y                     Scale
	left, right, top, bottom float64
}

// figure lays out axes, grid and labels, and leaves room on the right for names of curves.
func (c *Chart) figure(names bool) (*Figure, *plot) {
	f := &Figure{Width: column, Height: 165, Title: c.YName + " over " + c.XName}
	p := &plot{left: 38, right: column - 8, top: 6, bottom: f.Height - 26}
	if names {
		for i := range c.Series {
			p.right = min(p.right, column-8-wideOf(c.nameOf(&c.Series[i])))
		}
	}
	p.x, p.y = c.scales()
	p.x.From, p.x.To, p.y.From, p.y.To = p.left, p.right, p.bottom, p.top
	if units[c.XName] == "B" && p.x.Log && p.x.Hi < 4*p.x.Lo { // of few sizes: the powers of two around them
		p.x.Lo, p.x.Hi = math.Exp2(math.Ceil(math.Log2(p.x.Lo))-1), math.Exp2(math.Floor(math.Log2(p.x.Hi))+1)
	}
	least, _ := c.bounds(func(p Point) float64 { return p.Least })
	_, most := c.bounds(func(p Point) float64 { return p.Most })
	p.y.Log = p.y.Log && least > 0 // means are positive where samples need not be
	if p.y.Lo, p.y.Hi = min(p.y.Lo, least), max(p.y.Hi, most*1.04); p.y.Log {
		p.y.Lo, p.y.Hi = p.y.Lo/1.15, p.y.Hi*1.1
	}
	steps, fine := lines(p.x, c.XName)
	if len(c.Cats) > 0 {
		steps, fine = nil, nil
		for i := range c.Cats {
			steps = append(steps, float64(i))
		}
	}
	rises, between := lines(p.y, c.YName)
	for _, v := range fine {
		f.line(faint, 0.4, [2]float64{p.x.At(v), p.top}, [2]float64{p.x.At(v), p.bottom})
	}
	for _, v := range between {
		f.line(faint, 0.4, [2]float64{p.left, p.y.At(v)}, [2]float64{p.right, p.y.At(v)})
	}
	for _, v := range thin(rises, p.y, 12) {
		f.line(line, 0.5, [2]float64{p.left, p.y.At(v)}, [2]float64{p.right, p.y.At(v)})
		f.label(p.left-3, p.y.At(v)+2.8, "end", c.tick(c.YName, v))
	}
	for _, v := range thin(steps, p.x, 28) {
		f.line(line, 0.5, [2]float64{p.x.At(v), p.top}, [2]float64{p.x.At(v), p.bottom})
		f.label(p.x.At(v), p.bottom+10, "middle", Short(c.tick(c.XName, v), 12))
	}
	f.line(black, 0.7, [2]float64{p.left, p.top}, [2]float64{p.left, p.bottom}, [2]float64{p.right, p.bottom})
	f.label((p.left+p.right)/2, f.Height-3, "middle", axis(c.XName))
	f.add(shape{at: [][2]float64{{8, (p.top + p.bottom) / 2}}, kind: aText, ink: black, text: axis(c.YName),
		anchor: "middle", turned: true})
	return f, p
}

// tick is the label of a place: of X a category where it has those, a size with its binary unit.
func (c *Chart) tick(column string, v float64) string {
	switch {
	case column == c.XName && len(c.Cats) > 0:
		return c.Cats[int(v)]
	case units[column] == "B":
		return number(v)
	}
	return decimal(v)
}

// powers are the powers of two on a logarithmic axis, and those of them with labels: every power that leaves
// room for eight at most.
func powers(s Scale) (labelled, all []float64) {
	from, to := math.Ceil(math.Log2(s.Lo)-1e-9), math.Floor(math.Log2(s.Hi)+1e-9)
	every := 1.0
	for _, n := range []float64{1, 2, 5, 10} {
		if every = n; (to-from)/n <= 8 {
			break
		}
	}
	for e := from; e <= to; e++ {
		all = append(all, math.Exp2(e))
		if math.Mod(e, every) == 0 {
			labelled = append(labelled, math.Exp2(e))
		}
	}
	return labelled, all
}

// nameOf is what a curve is called: of a number, with what it is a number of ("nodes 4").
func (c *Chart) nameOf(s *Series) string {
	if _, err := strconv.ParseFloat(s.Name, 64); err == nil && c.ByName != "" {
		return Short(c.ByName+" "+s.Name, mostName)
	}
	return Short(s.Name, mostName)
}

// mostMarks is the most points of a line that are marked: of more the line says it.
const mostMarks = 40

func (c *Chart) marks(s *Series) bool { return len(s.Points) <= mostMarks && !c.Steps }

// mostName is where names of curves are cut.
const mostName = 18

// thin leaves out values whose labels would be closer than apart points.
func thin(values []float64, s Scale, apart float64) (out []float64) {
	for _, v := range values {
		if n := len(out); n == 0 || math.Abs(s.At(v)-s.At(out[n-1])) >= apart {
			out = append(out, v)
		}
	}
	return out
}

// lines are the labelled and all lines of the grid across an axis: powers of two of sizes, 1, 2 and 5 times
// powers of ten of other logarithmic ones with their ninths, ticks and the halves between them of linear
// ones.
func lines(s Scale, column string) (labelled, all []float64) {
	switch {
	case s.Log && units[column] == "B":
		return powers(s)
	case s.Log:
		return decades(s)
	}
	labelled = ticks(&s)
	for _, v := range labelled {
		if len(labelled) < 2 {
			break
		}
		if h := v + (labelled[1]-labelled[0])/2; h < s.Hi {
			all = append(all, h)
		}
	}
	return labelled, all
}

func decades(s Scale) (labelled, all []float64) {
	few := s.Hi/s.Lo < 1000
	for d := math.Pow(10, math.Floor(math.Log10(s.Lo))); d <= s.Hi; d *= 10 {
		for k := 1.0; k < 10; k++ {
			if v := k * d; v >= s.Lo && v <= s.Hi {
				if all = append(all, v); k == 1 || few && (k == 2 || k == 5) {
					labelled = append(labelled, v)
				}
			}
		}
	}
	return labelled, all
}

// decimal prints a label that is no size: 0.1, 10000, 1e+06.
func decimal(v float64) string {
	if a := math.Abs(v); a >= 1e6 || a > 0 && a < 1e-4 {
		return strconv.FormatFloat(v, 'g', 3, 64)
	}
	return strconv.FormatFloat(digits(v), 'f', -1, 64)
}

// CurvesFigure has a curve for each group. Places that have no order (seeds, texts that are not numbers) are
// not joined.
func (c *Chart) CurvesFigure() *Figure {
	f, p := c.figure(c.named())
	joined := !slices.Contains([]string{"seed", "seeds"}, c.XName)
	for _, name := range c.Cats {
		joined = joined && sortKey(name).prefix == "" // "64K" has a place in an order, "dgx-h100" has none
	}
	var ends []end
	for i, s := range c.Series {
		colour := inks[i%len(inks)]
		var path [][2]float64
		for _, q := range s.Points {
			at := [2]float64{p.x.At(q.X), p.y.At(q.Y)}
			if n := len(path); n > 0 && c.Steps {
				path = append(path, [2]float64{at[0], path[n-1][1]})
			}
			path = append(path, at)
			if q.N > 1 && q.Most > q.Least {
				lo, hi, x := p.y.At(q.Least), p.y.At(q.Most), at[0]+c.beside(i)
				f.line(colour, 0.6, [2]float64{x, lo}, [2]float64{x, hi})
				f.line(colour, 0.6, [2]float64{x - 2, lo}, [2]float64{x + 2, lo})
				f.line(colour, 0.6, [2]float64{x - 2, hi}, [2]float64{x + 2, hi})
			}
			if c.marks(&s) || !joined {
				f.add(shape{at: [][2]float64{at}, kind: aMark, ink: colour, wide: 1.7,
					sides: sides[i%len(sides)]})
			}
		}
		if joined && len(path) > 1 {
			f.add(shape{at: path, kind: aLine, ink: colour, wide: 1.1,
				dash: strokes[(i+i/len(inks))%len(strokes)]})
		}
		if len(path) > 0 {
			ends = append(ends, end{path[len(path)-1], c.nameOf(&s), colour})
		}
	}
	if c.named() {
		f.names(ends, p)
	}
	return f
}

// beside is how far right of its mark the bar of a curve is drawn, in points: bars of several curves at one x
// are side by side, within the width of a mark.
func (c *Chart) beside(curve int) float64 {
	n := float64(len(c.Series))
	return (float64(curve) - (n-1)/2) * min(1.6, 3.4/n)
}

func (c *Chart) named() bool {
	return len(c.Series) > 1 || len(c.Series) == 1 && c.Series[0].Name != ""
}

// end is where a curve ends, and its name.
type end struct {
	at   [2]float64
	name string
	ink  ink
}

// names writes each curve's name beside its end, moved so that none covers another, with a thin line to the
// end where it was moved.
func (f *Figure) names(ends []end, p *plot) {
	const apart = size * 1.15
	slices.SortStableFunc(ends, func(a, b end) int { return cmp.Compare(a.at[1], b.at[1]) })
	at := make([]float64, len(ends))
	for i, e := range ends {
		at[i] = e.at[1]
		if i > 0 {
			at[i] = max(at[i], at[i-1]+apart)
		}
	}
	for i := len(at) - 1; i >= 0; i-- { // back up from the lower edge
		at[i] = min(at[i], p.bottom-apart*float64(len(at)-1-i))
	}
	for i, e := range ends {
		if math.Abs(at[i]-e.at[1]) > 1 || e.at[0] < p.right-4 {
			f.line(e.ink, 0.3, e.at, [2]float64{p.right + 2, at[i]})
		}
		f.add(shape{at: [][2]float64{{p.right + 4, at[i] + 2.8}}, kind: aText, ink: e.ink, text: e.name,
			anchor: "start"})
	}
}

// FrontFigure has every point, and a line through those that no other beats.
func (c *Chart) FrontFigure() *Figure {
	f, p := c.figure(false)
	for _, s := range c.Series {
		for _, q := range s.Points {
			f.add(shape{at: [][2]float64{{p.x.At(q.X), p.y.At(q.Y)}}, kind: aMark, ink: grey, wide: 1})
		}
	}
	var path [][2]float64
	for _, q := range c.Front() {
		x, y := p.x.At(q.X), p.y.At(q.Y)
		if n := len(path); n > 0 {
			path = append(path, [2]float64{x, path[n-1][1]})
		}
		path = append(path, [2]float64{x, y})
		f.add(shape{at: [][2]float64{{x, y}}, kind: aMark, ink: inks[0], wide: 1.8})
	}
	f.add(shape{at: path, kind: aLine, ink: inks[0], wide: 1.1})
	return f
}

// ramp are the inks of amounts, light for few; ColorBrewer's Blues (https://colorbrewer2.org).
var ramp = [shades]ink{0xeff3ff, 0xc6dbef, 0x9ecae1, 0x6baed6, 0x4292c6, 0x2171b5, 0x084594}

// HeatFigure has a cell for each place of X and group, with its number.
func (c *Chart) HeatFigure() *Figure {
	cols := c.columns()
	left := 8.0
	for i := range c.Series {
		left = max(left, 8+wideOf(c.nameOf(&c.Series[i])))
	}
	const row = 12.0
	f := &Figure{Width: column, Height: 34 + row*float64(len(c.Series)), Title: c.YName + " over " + c.XName}
	cell := (column - left - 6) / float64(max(1, len(cols)))
	for i, s := range c.Series {
		y := 4 + row*float64(i)
		f.label(left-3, y+8.4, "end", c.nameOf(&s))
		for _, q := range s.Points {
			x, step := left+cell*float64(slices.Index(cols, q.X)), c.step(q.Y)
			f.add(shape{at: [][2]float64{{x, y}, {x + cell - 0.6, y + row - 0.6}}, kind: aBox,
				ink: ramp[step]})
			if text := decimal(q.Y); wideOf(text) < cell {
				on := black
				if step >= shades/2+1 {
					on = 0xffffff
				}
				f.add(shape{at: [][2]float64{{x + cell/2, y + 8.4}}, kind: aText, ink: on, text: text,
					anchor: "middle"})
			}
		}
	}
	foot := 4 + row*float64(len(c.Series))
	every := max(1, int(math.Ceil(24/cell)))
	for i, x := range cols {
		if i%every == 0 {
			f.label(left+cell*(float64(i)+.5), foot+9, "middle", Short(c.label(x), 10))
		}
	}
	f.label(column/2, f.Height-6, "middle", axis(c.YName)+" over "+axis(c.XName))
	return f
}
