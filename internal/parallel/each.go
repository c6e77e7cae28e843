package parallel

import (
	"sync"
	"sync/atomic"
)

// Each calls f once for each of 0 to n-1, on at most `workers` goroutines, each of which takes the next
// number. It returns when all calls have ended.
func Each(workers, n int, f func(i int)) {
	var next atomic.Int64
	var all sync.WaitGroup
	for range min(workers, n) {
		all.Go(func() {
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				f(i)
			}
		})
	}
	all.Wait()
}
