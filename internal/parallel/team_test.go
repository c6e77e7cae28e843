package parallel

import (
	"sync/atomic"
	"testing"
)

// TestTeam: each task of each round is done once, before the next round begins.
func TestTeam(t *testing.T) {
	for _, workers := range []int{1, 2, 5} {
		var did [40]atomic.Int64
		round := int64(0)
		of := make([]int32, len(did))
		for i := range of {
			of[i] = int32(i * i % workers)
		}
		team := New(workers, of, func(task int) {
			if n := did[task].Add(1); n > round+1 {
				t.Errorf("task %d was done %d times in %d rounds", task, n, round+1)
			}
		})
		for ; round < 200; round++ {
			n := int(round*7) % (len(did) + 1)
			var tasks []int32
			for i := range did {
				if (i*11)%len(did) < n {
					tasks = append(tasks, int32(i))
				} else {
					did[i].Add(1)
				}
			}
			team.Do(tasks)
			for i := range did {
				if got := did[i].Load(); got != round+1 {
					t.Fatalf("%d workers: task %d was done %d times in %d rounds", workers, i, got, round+1)
				}
			}
		}
		team.Dismiss()
	}
}
