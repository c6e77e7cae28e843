package device

import (
	"sync"
	"testing"
	"time"

	"github.com/simccl/simccl/units"
)

// TestWaitsCountWhatTheySay: rank 2 takes its time over each iteration. Who
// meets it has that time on its clock, unless the meeting lies beside it; who
// does not meet it is done before it has begun.
func TestWaitsCountWhatTheySay(t *testing.T) {
	d, _ := driver(t)
	s, err := team(t, d)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	const iters, slow = 3, 100 * time.Millisecond
	for _, c := range []struct {
		wait          Wait
		meets, counts bool // rank 2, on rank 0's clock
	}{{Onward, false, false}, {UntilAll, true, true}, {UntilDone, false, false}, {BesideTime, true, false}} {
		took := make([]units.Time, 3)
		each := make([][]units.Time, 3)
		var others sync.WaitGroup
		others.Add(2)
		err := s.each(func(r *rank) (err error) {
			group := func() error {
				switch {
				case r.id == 2 && c.meets:
					time.Sleep(slow)
				case r.id == 2:
					others.Wait()
				}
				return nil
			}
			took[r.local], err = r.eager(group, Options{Iters: iters, Wait: c.wait, PerIter: true},
				&each[r.local])
			if r.id != 2 {
				others.Done()
			}
			return err
		})
		if err != nil {
			t.Fatalf("-z %d: %v", c.wait, err)
		}
		all := units.Time(iters*slow.Nanoseconds()) * units.Nanosecond
		// Rank 0 may begin when rank 2 already sleeps.
		if got := took[0] > all*(iters-1)/iters; got != c.counts {
			t.Errorf("-z %d: rank 0 took %v us beside a rank of %v us", c.wait, took[0].Micros(),
				all.Micros())
		}
		if c.meets && took[2] < all {
			t.Errorf("-z %d: rank 2 took %v us, slept %v us", c.wait, took[2].Micros(), all.Micros())
		}
		if len(each[0]) != iters {
			t.Errorf("-z %d: times of %d iterations, want %d", c.wait, len(each[0]), iters)
		}
	}
}
