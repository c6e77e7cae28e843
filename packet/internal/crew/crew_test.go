package crew

import "testing"

// TestCrew: each of the workers follows each order once, in turn.
func TestCrew(t *testing.T) {
	for _, n := range []int{1, 3} {
		did := make([][]Order, n)
		c := Hire(n, func(worker int, order Order) { did[worker] = append(did[worker], order) })
		for end := range int64(5) {
			c.All(Order{Act, end})
		}
		c.Dismiss()
		for w := range did {
			if len(did[w]) != 5 || did[w][0].End != 0 || did[w][4] != (Order{Act, 4}) {
				t.Errorf("worker %d of %d followed %v", w, n, did[w])
			}
		}
	}
}
