package parallel

import (
	"errors"
	"sync"
	"testing"
)

// TestEachKeyIsBuiltOnce: however many ask at a time; an error is asked for again.
func TestEachKeyIsBuiltOnce(t *testing.T) {
	var c Cache[int, int]
	built := make([]int, 8)
	var wg sync.WaitGroup
	for i := range 64 {
		wg.Go(func() {
			k := i % len(built)
			v, err := c.Get(k, func() (int, error) { built[k]++; return 10 * k, nil })
			if v != 10*k || err != nil {
				t.Errorf("key %d: %d, %v", k, v, err)
			}
		})
	}
	wg.Wait()
	for k, n := range built {
		if n != 1 {
			t.Errorf("key %d was built %d times", k, n)
		}
	}
	failed := errors.New("no")
	if _, err := c.Get(99, func() (int, error) { return 0, failed }); !errors.Is(err, failed) {
		t.Errorf("got %v", err)
	}
	if v, err := c.Get(99, func() (int, error) { return 7, nil }); v != 7 || err != nil {
		t.Errorf("after an error: %d, %v", v, err)
	}
}
