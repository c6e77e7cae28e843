package watchdog

import (
	"testing"

	"github.com/simccl/simccl/sim/wire/packet/spec"
)

// TestDog: a pause that is long enough makes it drop, once; the end of the pause, when it has lasted,
// ends that. A pause that ends in time, or without anything that waits, does not.
func TestDog(t *testing.T) {
	c, d := &spec.Watchdog{After: 10, Restore: 5}, New()
	for _, x := range []struct {
		now                        int64
		paused, waits, bark, drops bool
	}{
		{0, true, true, false, false}, {9, true, true, false, false}, {9, false, true, false, false}, {12, true, false, false, false}, {30, true, false, false, false},
		{31, true, true, true, true}, {40, true, true, false, true}, {50, false, false, false, true}, {54, false, false, false, true}, {55, false, false, false, false},
	} {
		if bark := d.Look(c, 1, x.paused, x.waits, x.now); bark != x.bark || d.Drops(1) != x.drops || d.Drops(2) {
			t.Errorf("%+v: barks %v, drops %v", x, bark, d.Drops(1))
		}
	}
	if d.Look(c, 3, true, true, 100); d.Alarm(c, 4, 1000) != 110 || d.Alarm(c, 3, 1000) != 1000 {
		t.Errorf("alarms at %d and %d, want 110 and none", d.Alarm(c, 4, 1000), d.Alarm(c, 3, 1000))
	}
}
