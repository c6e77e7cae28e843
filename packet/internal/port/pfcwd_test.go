package port

import "testing"

// TestWatchdogWantsWaitingFrames: a class that is paused for as long as one likes is dropped only where
// frames wait; then from the poll on that finds them, until the pause has been over for the time of
// restoration.
func TestWatchdogWantsWaitingFrames(t *testing.T) {
	const after, restore = 100, 50
	d := NewPFCWatchdog()
	for _, x := range []struct {
		now               int64
		paused, waits     bool
		triggers, dropped bool
	}{
		{0, true, false, false, false},   // the pause begins
		{99, true, false, false, false},  //
		{100, true, false, false, false}, // long enough, and nothing waits
		{500, true, false, false, false}, //
		{501, true, true, true, true},    // a frame comes: it is dropped at once
		{510, true, true, false, true},   // no second time
		{600, false, false, false, true}, // the pause is over,
		{649, false, false, false, true}, //
		{650, false, false, false, false},
		{700, true, true, false, false}, // a new pause: its own time
		{799, true, true, false, false},
		{800, true, true, true, true},
	} {
		triggers := d.Poll(3, x.paused, x.waits, x.now, after, restore)
		if triggers != x.triggers || d.Drops(3) != x.dropped || d.Drops(2) {
			t.Fatalf("at %d: triggers %t, drops %t; want %t, %t", x.now, triggers, d.Drops(3), x.triggers,
				x.dropped)
		}
	}
}
