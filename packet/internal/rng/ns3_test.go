package rng

import (
	"math"
	"testing"
)

// TestStreams: the map over 2^127 draws is that which the authors print (Operations
// Research 50, 2002), and the first number from a state of 12345 theirs too.
func TestStreams(t *testing.T) {
	want := jump{
		{{2427906178, 3580155704, 949770784}, {226153695, 1230515664, 3580155704},
			{1988835001, 986791581, 1230515664}},
		{{1464411153, 277697599, 1610723613}, {32183930, 1464411153, 1022607788},
			{2824425944, 32183930, 2093834863}},
	}
	if got := step.doubled(127); got != want {
		t.Errorf("2^127 draws lead by %v", got)
	}
	s := state{{12345, 12345, 12345}, {12345, 12345, 12345}}
	if x := s.number(); math.Abs(x-0.127011122046577) > 1e-14 {
		t.Errorf("the first number is %.15f", x)
	}
}

// TestFirsts: streams in turn are those by number, and runs differ.
func TestFirsts(t *testing.T) {
	a, b, c := NewFirsts(5, 1), NewFirsts(7, 1), NewFirsts(7, 2)
	a.Skip()
	a.Draw()
	numbers := NewNumbers(7, 1)
	if x, y, z, n := a.Draw(), b.Draw(), c.Draw(), numbers.Draw(); x != y || x == z || x != n {
		t.Errorf("stream 7: %g, %g, run 2 %g, its first number %g", x, y, z, n)
	}
}
