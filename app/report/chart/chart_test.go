package chart

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func wellFormed(t interface{ Fatalf(string, ...any) }, svg string) {
	dec := xml.NewDecoder(strings.NewReader(svg))
	for {
		_, err := dec.Token()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Fatalf("%v in\n%s", err, svg)
		}
	}
}

// TestMeans: samples at one place are one point, their mean; categories are in their
// natural order.
func TestMeans(t *testing.T) {
	c := New([]Sample{{X: "1M", Y: 4, By: "b<"}, {X: "64K", Y: 1, By: "b<"}, {X: "64K", Y: 3, By: "b<"},
		{X: "8", Y: 5, By: "a"}}, "size", "busbw", "algo")
	if !slices.Equal(c.Cats, []string{"8", "64K", "1M"}) || len(c.Series) != 2 ||
		c.Series[1].Points[0] != (Point{X: 1, Y: 2, N: 2, Least: 1, Most: 3}) {
		t.Errorf("%+v", c)
	}
	text := c.Text()
	if strings.Count(text, "\n") < textHeight || !strings.Contains(text, "o b<") ||
		!strings.Contains(text, "64K") {
		t.Errorf("\n%s", text)
	}
	if svg := c.SVG(); strings.Contains(svg, "b<") || strings.Count(svg, "<circle") != 3 ||
		!strings.Contains(svg, "mean of 2") {
		t.Errorf("\n%s", svg)
	}
	if heat := c.HeatText(); !strings.Contains(heat, "-") || strings.Count(heat, "\n") != 4 {
		t.Errorf("\n%s", heat)
	}
	if columns, cells := c.Table(); !slices.Equal(columns, c.Cats) || cells[0][0] != "5" ||
		cells[0][1] != "" || cells[1][2] != "4" {
		t.Errorf("%q %q", columns, cells)
	}
}

// TestFront against the definition: a point is in the front if none is as good in
// both and better in one.
func TestFront(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var samples []Sample
		for i := range rapid.IntRange(1, 40).Draw(t, "n") {
			samples = append(samples, Sample{X: float64(rapid.IntRange(0, 9).Draw(t, "x")),
				Y: float64(rapid.IntRange(-3, 30).Draw(t, "y")), By: fmt.Sprint(i)})
		}
		c := New(samples, "cost", "time", "")
		beaten := func(x, y float64) bool {
			return slices.ContainsFunc(samples, func(s Sample) bool {
				sx := s.X.(float64)
				return sx <= x && s.Y <= y && (sx < x || s.Y < y)
			})
		}
		want := map[[2]float64]bool{}
		for _, s := range samples {
			if x := s.X.(float64); !beaten(x, s.Y) {
				want[[2]float64{x, s.Y}] = true
			}
		}
		front := c.Front()
		for _, p := range front {
			if !want[[2]float64{p.X, p.Y}] {
				t.Fatalf("%v is beaten", p)
			}
		}
		if len(front) != len(want) {
			t.Fatalf("%d points in the front, not %d", len(front), len(want))
		}
		for _, svg := range []string{c.SVG(), c.FrontSVG(), c.HeatSVG()} {
			wellFormed(t, svg)
			if strings.Contains(svg, "NaN") || strings.Contains(svg, "Inf") {
				t.Fatalf("a value that is none in\n%s", svg)
			}
		}
		if c.Text() == "" || c.FrontText() == "" {
			t.Fatalf("no text")
		}
	})
}

// TestAxes: ticks are round, in order and inside, few enough to read.
func TestAxes(t *testing.T) {
	for _, s := range []Scale{{Lo: 0, Hi: 1}, {Lo: 8, Hi: 1 << 30, Log: true},
		{Lo: 0.1, Hi: 4000, Log: true},
		{Lo: -5, Hi: 5}, {Lo: 1024, Hi: 16384, Log: true}, {Lo: 3, Hi: 3.0001}} {
		ticks := ticks(&s)
		if len(ticks) < 2 || len(ticks) > 12 || !slices.IsSorted(ticks) {
			t.Errorf("%+v: %v", s, ticks)
		}
		for _, v := range ticks {
			if v < s.Lo-1e-9 || v > s.Hi*1.001 || math.IsNaN(v) {
				t.Errorf("%+v: tick %v", s, v)
			}
		}
	}
	for v, want := range map[float64]string{1024: "1Ki", 1 << 30: "1Gi", 3: "3", 0.25: "0.25", 1500: "1500",
		16384: "16Ki"} {
		if got := number(v); got != want {
			t.Errorf("%v is %s, not %s", v, got, want)
		}
	}
	if empty := New(nil, "x", "y", ""); empty.SVG() != "" || empty.Text() != "nothing to draw\n" ||
		empty.HeatSVG() != "" || len(empty.Front()) != 0 {
		t.Error("an empty chart")
	}
}

// TestFigures: a figure is as wide as a column, names units, keeps marks and text inside its edges, has names
// that do not cover each other, a bar where a point is the mean of several, and equal bytes for equal charts.
func TestFigures(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var samples []Sample
		sized := rapid.Bool().Draw(t, "sized")
		for i := range rapid.IntRange(1, 60).Draw(t, "n") {
			s := Sample{X: float64(rapid.IntRange(1, 1<<30).Draw(t, "x")),
				Y:  rapid.Float64Range(-10, 1e6).Draw(t, "y"),
				By: fmt.Sprint(i % rapid.SampledFrom([]int{1, 3, 9}).Draw(t, "by"))}
			if !sized {
				s.X = rapid.StringMatching("[a-z]{1,30}").Draw(t, "text")
			}
			samples = append(samples, s)
		}
		c := New(samples, "bytes", "time_us", "nodes")
		for _, f := range []*Figure{c.CurvesFigure(), c.HeatFigure(), c.FrontFigure()} {
			wellFormed(t, f.SVG())
			var lows []float64
			for _, s := range f.shapes {
				for _, p := range s.at {
					if !(p[0] >= -0.01 && p[0] <= f.Width+0.01 && p[1] >= -0.01 && p[1] <= f.Height+0.01) {
						t.Fatalf("%v leaves %g x %g: %+v", p, f.Width, f.Height, s)
					}
				}
				if s.kind == aText && s.anchor == "start" {
					if end := s.at[0][0] + wideOf(s.text); end > f.Width+1 {
						t.Fatalf("%q ends at %g of %g", s.text, end, f.Width)
					}
					lows = append(lows, s.at[0][1])
				}
			}
			for i := 1; i < len(lows); i++ {
				if lows[i]-lows[i-1] < size {
					t.Fatalf("names at %v cover each other", lows)
				}
			}
		}
	})
	c := New([]Sample{{X: 8.0, Y: 4, By: "2"}, {X: 8.0, Y: 6, By: "2"}, {X: float64(1 << 20), Y: 9, By: "2"}},
		"bytes", "busbw", "nodes")
	f := c.CurvesFigure().SVG()
	for _, want := range []string{"message size (B)", "bus bandwidth (GB/s)", ">nodes 2<", ">1Mi<", `width="246pt"`,
		`font-size="8"`} {
		if !strings.Contains(f, want) {
			t.Errorf("no %q in\n%s", want, f)
		}
	}
	write := func() ([]byte, error) {
		doc := c.CurvesFigure().Document()
		doc.SetCreationDate(time.Unix(0, 0))
		doc.SetModificationDate(time.Unix(0, 0))
		return c.CurvesFigure().PDF(doc)
	}
	a, err := write()
	b, again := write()
	if err != nil || again != nil || !bytes.Equal(a, b) || !bytes.HasPrefix(a, []byte("%PDF-")) {
		t.Errorf("PDF: %v, %v, %d and %d bytes", err, again, len(a), len(b))
	}
	if bars := strings.Count(f, `stroke-width="0.6"`); bars != 3 {
		t.Errorf("%d lines of a bar of one mean", bars)
	}
}

// TestBarsAreSideBySide: bars of two curves at one x have places of their own, each at its mark.
func TestBarsAreSideBySide(t *testing.T) {
	var samples []Sample
	for i, by := range []string{"hpcc", "swift", "timely"} {
		for y := range 2 {
			samples = append(samples, Sample{X: 20.0, Y: float64(1 + i + 4*y), By: by})
		}
	}
	c := New(samples, "load", "slowdown_p99", "cc")
	at := map[float64]bool{}
	for i := range c.Series {
		at[c.beside(i)] = true
		if by := c.beside(i); by < -1.7 || by > 1.7 {
			t.Errorf("the bar of curve %d stands %g points from its mark, which is 1.7 wide", i, by)
		}
	}
	if len(at) != 3 || !at[0] {
		t.Errorf("three curves have bars at %v", at)
	}
}

// TestAxesOfPagesHaveUnits: sizes are named in binary units, also of many octaves, and times are not.
func TestAxesOfPagesHaveUnits(t *testing.T) {
	var samples []Sample
	for e := 3; e <= 30; e++ {
		samples = append(samples, Sample{X: math.Exp2(float64(e)), Y: 20 + math.Exp2(float64(e))/2e5})
	}
	page := New(samples, "bytes", "time_us", "").SVG()
	for want, there := range map[string]bool{"message size (B)": true, "time (µs)": true, ">1Mi<": true,
		">1e+06<": false, ">1Ki<": true, ">2Ki<": false, ">1000<": true} {
		if strings.Contains(page, want) != there {
			t.Errorf("%q is there: %t", want, !there)
		}
	}
}

// TestDistributionsAreSteps: of a distribution each value holds until the next one; it has no marks, nor has
// a curve of many points.
func TestDistributionsAreSteps(t *testing.T) {
	var all []Sample
	for i := range mostMarks + 1 {
		all = append(all, Sample{X: float64(i), Y: float64(i)})
	}
	few, many := New(all[:3], "slowdown", "share", ""), New(all, "time (µs)", "rate (Gb/s)", "")
	if s := few.SVG(); strings.Count(s, "<circle") != 3 || strings.Contains(s, "V") {
		t.Errorf("no steps are meant:\n%s", s)
	}
	if s := many.SVG(); strings.Contains(s, "<circle") {
		t.Errorf("%d points are marked", len(all))
	}
	few.Steps = true
	if s := few.SVG(); strings.Contains(s, "<circle") || strings.Count(s, "V") != 2 {
		t.Errorf("no steps:\n%s", s)
	}
	for _, s := range few.CurvesFigure().shapes {
		steps := len(s.at) == 5 && s.at[1][1] == s.at[0][1]
		if s.kind == aMark || s.kind == aLine && s.wide == 1.1 && !steps {
			t.Errorf("the figure has no steps: %+v", s)
		}
	}
}

// TestNamesOfCurvesHaveRoom: names are estimated no narrower than Helvetica sets them, so that none is cut.
func TestNamesOfCurvesHaveRoom(t *testing.T) {
	doc := (&Figure{Width: column, Height: 100}).Document()
	doc.SetFont("Helvetica", "", size)
	for _, name := range []string{"NVLS", "NVLSTree", "LL128", "dgx-h100", "nodes 16", "gb200-nvl72",
		"CollNetDirect", "WEBSEARCH 30 %", "minimum"} {
		if got, real := wideOf(name), doc.GetStringWidth(name); got < 0.97*real || got > 1.35*real {
			t.Errorf("%s: %.1f points, Helvetica needs %.1f", name, got, real)
		}
	}
}
