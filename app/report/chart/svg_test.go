package chart

import (
	"strings"
	"testing"
)

// TestEveryTimeHasALine: from 0 to the span, in about eight round steps, at its place.
func TestEveryTimeHasALine(t *testing.T) {
	var d Drawing
	d.Times(16, "%g us", 13, 18, 100, func(v float64) float64 { return 10 * v })
	if n := strings.Count(d.String(), "<line "); n != 9 {
		t.Errorf("%d lines, want one at each of 0, 2, … 16", n)
	}
	for _, want := range []string{`x1="160.0" x2="160.0" y1="18" y2="100.0"`,
		`x="160.0" y="13" text-anchor="middle">16 us<`} {
		if !strings.Contains(d.String(), want) {
			t.Errorf("%s is not in\n%s", want, d.String())
		}
	}
}

// TestScale: ends, middle, and an axis of one value.
func TestScale(t *testing.T) {
	for _, c := range []struct {
		s        Scale
		v, place float64
	}{{Scale{Lo: 2, Hi: 4, From: 10, To: 0}, 4, 0}, {Scale{Lo: 1, Hi: 100, To: 8, Log: true}, 10, 4},
		{Scale{Lo: 7, Hi: 7, From: 2, To: 4}, 7, 3}} {
		if got := c.s.At(c.v); got != c.place {
			t.Errorf("%+v: %v lies at %v, want %v", c.s, c.v, got, c.place)
		}
	}
}
