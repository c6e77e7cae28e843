package parallel

import (
	"sync/atomic"
	"testing"
)

// TestEachCallsOnce: every number, with any number of goroutines.
func TestEachCallsOnce(t *testing.T) {
	for _, workers := range []int{1, 3, 100} {
		for _, n := range []int{0, 1, 50} {
			calls := make([]atomic.Int32, n)
			Each(workers, n, func(i int) { calls[i].Add(1) })
			for i := range calls {
				if got := calls[i].Load(); got != 1 {
					t.Errorf("%d workers: %d of %d is called %d times", workers, i, n, got)
				}
			}
		}
	}
}
