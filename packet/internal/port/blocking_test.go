package port

import "testing"

// TestWorst: the longest sum of those that have room; before any, the present one.
func TestWorst(t *testing.T) {
	var l CulpritTimes
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

// TestWaits: waits add up by who and cause, each end once, four of them.
func TestWaits(t *testing.T) {
	var w Waits
	for _, x := range [][4]int64{{1, 9, 100, 10}, {1, 9, 100, 10}, {1, 9, 200, 5}, {2, 9, 200, 1},
		{1, 8, 300, 2}, {3, 8, 300, 3}, {4, 8, 300, 4}} {
		w.Add(int32(x[0]), int32(x[1]), x[2], x[3])
	}
	all := w.All()
	if len(all) != 4 || all[0].Time != 15 || all[1].Who != 2 || all[2].Cause != 8 || all[3].Who != 3 {
		t.Errorf("%+v", all)
	}
}
