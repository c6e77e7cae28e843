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

// TestPausesAreChargedToTheirCulprit: with their length, and a flow for another link waits for what of a
// pause is after it was ready.
func TestPausesAreChargedToTheirCulprit(t *testing.T) {
	p := new(Pauses)
	p.Begin(100, 8)
	p.End(150)
	p.Begin(200, 7)
	p.End(230)
	if got := p.Behind.Worst(-2); got != 8 {
		t.Errorf("most behind link %d, want 8, by 50 to 30", got)
	}
	p.Begin(300, 7)
	p.End(325)
	if got := p.Behind.Worst(-2); got != 7 {
		t.Errorf("most behind link %d, want 7, by 55 to 50", got)
	}
	p.Delayed(1, 9, 310) // 15 of the pause
	p.Delayed(2, 9, 250) // all 25
	p.Delayed(3, 7, 250) // is the culprit's own
	p.Delayed(4, 9, 325) // ready after it
	for i, w := range p.Blocked.All() {
		if want := []int64{15, 25}; i >= len(want) || w.Time != want[i] || w.Who != int32(i+1) {
			t.Errorf("wait %d: %+v", i, w)
		}
	}
	if n := len(p.Blocked.All()); n != 2 {
		t.Errorf("%d waits, want 2", n)
	}
}
