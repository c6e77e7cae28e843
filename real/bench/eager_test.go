package bench

import (
	"testing"
	"time"

	"github.com/simccl/simccl/units"
)

// TestWaitsCountWhatTheySay: rank 2 takes its time over each iteration. Who
// meets it has that time on its clock, unless the meeting lies beside it.
func TestWaitsCountWhatTheySay(t *testing.T) {
	d, _ := driver(t)
	s, err := team(t, d)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	const iters, slow = 3, 30 * time.Millisecond
	for _, c := range []struct {
		wait  Wait
		waits bool // for rank 2
	}{{Onward, false}, {UntilAll, true}, {UntilDone, false}, {BesideTime, false}} {
		took := make([]units.Time, 3)
		each := make([][]units.Time, 3)
		err := s.each(func(r *rank) (err error) {
			group := func() error {
				if r.id == 2 {
					time.Sleep(slow)
				}
				return nil
			}
			took[r.local], err = r.eager(group, Options{Iters: iters, Wait: c.wait, PerIter: true}, &each[r.local])
			return err
		})
		if err != nil {
			t.Fatalf("-z %d: %v", c.wait, err)
		}
		least := units.Time(iters*slow.Nanoseconds()) * units.Nanosecond
		if got := took[0] >= least*9/10; got != c.waits {
			t.Errorf("-z %d: rank 0 took %v us beside a rank of %v us", c.wait, took[0].Micros(), least.Micros())
		}
		if took[2] < least {
			t.Errorf("-z %d: rank 2 took %v us, slept %v us", c.wait, took[2].Micros(), least.Micros())
		}
		if len(each[0]) != iters {
			t.Errorf("-z %d: times of %d iterations, want %d", c.wait, len(each[0]), iters)
		}
	}
}
