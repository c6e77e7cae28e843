package port

import (
	"testing"

	"github.com/simccl/simccl/packet/internal/tiebreak"
)

func TestOrder(t *testing.T) {
	c := &tiebreak.Calendar{}
	r := tiebreak.Ranker{}
	r.Open([]*tiebreak.Calendar{c}, 1000, 1000, 2)
	r.Begin(0)
	var began [2]tiebreak.Number
	for i := range began {
		c.By = tiebreak.Root(int32(1 - i))
		began[i] = c.Sent(0, 0, 0)
	}
	all := []Arrival{{9, 1, 0, 0, began[0]}, {9, 2, 1, 0, began[0]}, {9, 1, 2, 0, began[1]},
		{8, 1, 3, 0, began[0]}}
	SortArrivals(all, c)
	for i, want := range []int32{3, 1, 2, 0} {
		if all[i].Link != want {
			t.Errorf("place %d has the frame of link %d, want %d", i, all[i].Link, want)
		}
	}
}
