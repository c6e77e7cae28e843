package tuning

import "testing"

// TestAnyTime: a table has a time where one cell is not Off; a time of nothing is one.
func TestAnyTime(t *testing.T) {
	var times Times
	for a := range times {
		for p := range times[a] {
			times[a][p] = Off
		}
	}
	if times.any() {
		t.Error("a time of nothing but Off")
	}
	last := len(times) - 1
	for _, v := range []float32{0, 1} {
		if times[last][len(times[last])-1] = v; !times.any() {
			t.Errorf("no time, though one is %g", v)
		}
	}
}
