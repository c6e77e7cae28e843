// Package chart draws values of many runs: curves, heat maps, and the front of two
// values that are both to be small. Each is an SVG in the colours of the report's page, and
// text for a terminal.
//
// What it must not know: where values come from, files.
package chart

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Sample is one run: where it is on the axes, the group it belongs to, and its name for
// hints. X is a float64 or a string.
type Sample struct {
	X    any
	Y    float64
	By   string
	Name string
}

// Chart is a scatter or line chart: samples on two axes. Samples of one group at one X are drawn as their
// mean.
type Chart struct {
	XName, YName, ByName string
	Series               []Series
	Cats                 []string // of X where it is text, in order
	LogX, LogY           bool
	Stacked              bool // a bar of all groups' Y at each category, in place of curves
	Steps                bool // Y changes at X, as of a distribution, and is constant between
	Samples              int
}

// Series is one group, by X.
type Series struct {
	Name   string
	Points []Point
	Band   bool `json:"-"` // an area from least to most below the curve
}

// Point is the mean of N samples, of which Y is from Least to Most.
type Point struct {
	X, Y        float64
	N           int
	Least, Most float64
	Name        string // of the first sample
}

// New makes a chart of samples. An axis is logarithmic where its values are positive
// and span a factor of 8 (X) or 20 (Y).
func New(samples []Sample, x, y, by string) *Chart {
	c := &Chart{XName: x, YName: y, ByName: by, Samples: len(samples)}
	for _, s := range samples {
		if _, text := s.X.(string); text {
			c.Cats = categories(samples)
			break
		}
	}
	at := map[string]int{}
	for _, name := range groups(samples) {
		at[name] = len(c.Series)
		c.Series = append(c.Series, Series{Name: name})
	}
	type place struct {
		series int
		x      float64
	}
	points := map[place]int{}
	for _, s := range samples {
		series := &c.Series[at[s.By]]
		here := place{at[s.By], c.place(s.X)}
		i, ok := points[here]
		if !ok {
			i = len(series.Points)
			points[here] = i
			series.Points = append(series.Points, Point{X: here.x, Least: s.Y, Most: s.Y, Name: s.Name})
		}
		p := &series.Points[i]
		p.N++
		p.Least, p.Most = min(p.Least, s.Y), max(p.Most, s.Y)
		p.Y += (s.Y - p.Y) / float64(p.N)
	}
	for i := range c.Series {
		slices.SortStableFunc(c.Series[i].Points, func(a, b Point) int { return cmp.Compare(a.X, b.X) })
	}
	c.LogX = len(c.Cats) == 0 && c.spans(8, func(p Point) float64 { return p.X })
	c.LogY = c.spans(20, func(p Point) float64 { return p.Y })
	return c
}

// place is a value's place on the axis: itself, or the number of its category.
func (c *Chart) place(x any) float64 {
	if len(c.Cats) > 0 {
		return float64(slices.Index(c.Cats, name(x)))
	}
	f, _ := x.(float64)
	return f
}

func name(x any) string {
	switch x := x.(type) {
	case string:
		return x
	case float64:
		return strconv.FormatFloat(x, 'g', 6, 64)
	}
	return ""
}

func (c *Chart) spans(factor float64, of func(Point) float64) bool {
	lo, hi := c.bounds(of)
	return lo > 0 && hi >= factor*lo
}

// bounds are the least and largest of all points.
func (c *Chart) bounds(of func(Point) float64) (lo, hi float64) {
	lo, hi = math.Inf(1), math.Inf(-1)
	for _, s := range c.Series {
		for _, p := range s.Points {
			lo, hi = min(lo, of(p)), max(hi, of(p))
		}
	}
	return lo, hi
}

// categories are the texts of X in order: by the number that they begin with and its
// binary unit, else by the alphabet.
func categories(samples []Sample) []string {
	var out []string
	for _, s := range samples {
		if n := name(s.X); !slices.Contains(out, n) {
			out = append(out, n)
		}
	}
	slices.SortFunc(out, natural)
	return out
}

func groups(samples []Sample) []string {
	var out []string
	for _, s := range samples {
		if !slices.Contains(out, s.By) {
			out = append(out, s.By)
		}
	}
	slices.SortFunc(out, natural)
	return out
}

// natural orders "8", "64K" and "1M" by size, "h25.xml" before "h100.xml".
func natural(a, b string) int {
	x, y := sortKey(a), sortKey(b)
	return cmp.Or(cmp.Compare(x.prefix, y.prefix), cmp.Compare(x.number, y.number), cmp.Compare(a, b))
}

type orderOf struct {
	prefix string
	number float64
}

func sortKey(s string) orderOf {
	i := strings.IndexAny(s, "0123456789")
	if i < 0 {
		return orderOf{prefix: s}
	}
	end := i
	for end < len(s) && (s[end] >= '0' && s[end] <= '9' || s[end] == '.') {
		end++
	}
	n, _ := strconv.ParseFloat(strings.TrimRight(s[i:end], "."), 64)
	if end < len(s) {
		if unit := strings.IndexByte("KMGT", s[end]); unit >= 0 {
			n *= math.Pow(1024, float64(unit+1))
		}
	}
	return orderOf{s[:i], n}
}

// Front are the points that no other beats in both values, the least X first.
func (c *Chart) Front() []Point {
	var all []Point
	for _, s := range c.Series {
		for _, p := range s.Points {
			p.Name = cmp.Or(p.Name, s.Name)
			all = append(all, p)
		}
	}
	slices.SortStableFunc(all, func(a, b Point) int {
		return cmp.Or(cmp.Compare(a.X, b.X), cmp.Compare(a.Y, b.Y))
	})
	var out []Point
	for _, p := range all {
		if len(out) == 0 || p.Y < out[len(out)-1].Y {
			out = append(out, p)
		}
	}
	return out
}
