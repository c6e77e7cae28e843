package tiebreak

import "testing"

// TestTurns: what was put in order together gives its places to what it lets begin, also once older entries
// are forgotten.
func TestTurns(t *testing.T) {
	var c Calendar
	r := Ranker{Pauses: func(func(*Number, *uint64)) {}}
	r.Open([]*Calendar{&c}, 1000, 4000, 3)
	r.least, r.room = 4, 4
	last := make([]Number, 3)
	order := []int{2, 0, 1}
	for window := range int64(50) {
		at := 1000 * window
		r.Begin(at)
		for i := range last {
			if c.By = Root(int32(i)); window > 0 {
				c.SetCause(last[i])
			}
			last[i] = c.Sent(at, int32(i), 0)
		}
		if window > 0 {
			for k := 1; k < len(order); k++ {
				a, began := c.Rank(last[order[k-1]])
				b, same := c.Rank(last[order[k]])
				if a == 0 || b <= a || !Together(a, b) || began != at || same != at {
					t.Fatalf("window %d: turns %#x and %#x at %d and %d", window, a, b, began, same)
				}
				if !c.First(last[order[k-1]], last[order[k]]) {
					t.Fatalf("window %d: %d is not before %d", window, order[k-1], order[k])
				}
			}
		}
		row := c.Placed(len(order))
		for place, i := range order {
			c.Put(row, last[i], place)
		}
		r.Close(at + 1000)
	}
	if turn, _ := c.Rank(None); turn != 0 {
		t.Error("what began long ago has a turn")
	}
}
