package rng

import "testing"

// TestNext: numbers of MT19937: the ten thousandth after the seed 5489 is fixed by
// the C++ standard (4123659995, of which 31 bits are kept).
func TestNext(t *testing.T) {
	s := NewMT19937(5489)
	var last uint32
	for range 10000 {
		last = s.Next()
	}
	if want := uint32(4123659995 & (1<<31 - 1)); last != want {
		t.Errorf("the ten thousandth number is %d, want %d", last, want)
	}
	if first := NewMT19937(1).Next(); first != 1791095845 {
		t.Errorf("the first after seed 1 is %d", first)
	}
}
