package chart

import (
	"fmt"
	"math"
	"strings"
)

// Drawing is markup in the making.
type Drawing struct{ strings.Builder }

// Add adds markup; arguments are numbers, or markup themselves.
func (d *Drawing) Add(format string, args ...any) { fmt.Fprintf(d, format, args...) }

// escapes are the characters that HTML reads as its own, within quotes or without.
var escapes = strings.NewReplacer("\x00", "\ufffd", `"`, "&#34;", "&", "&amp;", "'", "&#39;", "<", "&lt;",
	">", "&gt;")

// EscapeXML is text within a drawing.
func EscapeXML(s string) string { return escapes.Replace(s) }

// Short cuts a text to n characters.
func Short(s string, n int) string {
	if r := []rune(s); len(r) > n {
		return string(r[:n-1]) + "…"
	}
	return s
}

// Scale maps values to places along an axis.
type Scale struct {
	Lo, Hi, From, To float64
	Log              bool
}

// At is a value's place: the middle of an axis of one value.
func (s *Scale) At(v float64) float64 {
	lo, hi := s.Lo, s.Hi
	if s.Log {
		v, lo, hi = math.Log(v), math.Log(lo), math.Log(hi)
	}
	if hi == lo {
		return (s.From + s.To) / 2
	}
	return s.From + (s.To-s.From)*(v-lo)/(hi-lo)
}

// Step is the least of 1, 2 and 5 times a power of ten that is not below v: the
// distance of lines on an axis.
func Step(v float64) float64 {
	if v <= 0 {
		return 1
	}
	p := math.Pow(10, math.Floor(math.Log10(v)))
	for _, m := range []float64{1, 2, 5} {
		if v <= m*p {
			return m * p
		}
	}
	return 10 * p
}

// Wait adds a hatched bar: time in which something waits. What works is filled.
func (d *Drawing) Wait(x, y, w, high float64, title string) {
	d.Add(`<path class="wait" stroke-width="%g" d="M%.2f %.1fh%.2f"><title>%s</title></path>`, high, x,
		y+high/2, w,
		EscapeXML(title))
}

// Times adds about eight lines from top down to low, at round times from 0 to span, with their
// values on a line of text at y. x is a time's place.
func (d *Drawing) Times(span float64, format string, y, top, low float64, x func(v float64) float64) {
	for v, step := 0.0, Step(span/8); v <= span; v += step {
		d.Add(`<line class="grid" x1="%.1f" x2="%.1f" y1="%g" y2="%.1f"/>`, x(v), x(v), top, low)
		d.Add(`<text x="%.1f" y="%g" text-anchor="middle">`+format+`</text>`, x(v), y, v)
	}
}
