package crew

import "testing"

// TestCrew: each of the workers follows each order once, in turn.
func TestCrew(t *testing.T) {
	for _, n := range []int{1, 3} {
		did := make([][]int, n)
		c := Hire(n, func(worker, order int) { did[worker] = append(did[worker], order) })
		for o := range 5 {
			c.All(o)
		}
		c.Dismiss()
		for w := range did {
			if len(did[w]) != 5 || did[w][0] != 0 || did[w][4] != 4 {
				t.Errorf("worker %d of %d followed %v", w, n, did[w])
			}
		}
	}
}
