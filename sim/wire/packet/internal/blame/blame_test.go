package blame

import "testing"

// TestWorst: the longest sum of those that have room; before any, the present one.
func TestWorst(t *testing.T) {
	var l List
	if l.Worst(7) != 7 {
		t.Error("without a cause")
	}
	for _, x := range [][2]int64{{3, 10}, {-1, 5}, {4, 8}, {4, 8}, {6, 1}, {9, 100}} {
		l.Add(int32(x[0]), x[1])
	}
	if got := l.Worst(7); got != 4 {
		t.Errorf("cause %d", got)
	}
}
