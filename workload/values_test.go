package workload

import "testing"

// TestValuesOfText: a fraction is above 0 and at most 1; a time is whole picoseconds from 0 to the longest.
func TestValuesOfText(t *testing.T) {
	for text, ok := range map[string]bool{"1": true, "0.5": true, "1e-9": true, "0": false, "1.0001": false,
		"-0.5": false, "NaN": false, "x": false, "": false} {
		if _, got := fraction(text); got != ok {
			t.Errorf("%q: %t", text, got)
		}
	}
	for text, want := range map[string]int64{"0": 0, "7": 7, "-1": -1, "1.5": -1, "x": -1, "": -1} {
		if v, ok := picoseconds(text); ok != (want >= 0) || ok && int64(v) != want {
			t.Errorf("%q: %d %t", text, v, ok)
		}
	}
}
