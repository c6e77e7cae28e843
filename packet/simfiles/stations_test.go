package simfiles

import (
	"slices"
	"testing"

	"github.com/simccl/simccl/units"
)

// TestTurns: stations with several frames of one time take turns, one that serves frames hands them on one
// after the other, and what a station hands on enters the next before its own next frame is planned.
func TestTurns(t *testing.T) {
	var l stationQueues
	for i := range int32(4) {
		l.Enter(int(i/2), probe{Flow: i}, 10, 0)
	}
	l.Enter(2, probe{Flow: 8}, 5, 3)
	l.Enter(2, probe{Flow: 9, Ack: true}, 5, 3)
	var got []int32
	var times []units.Time
	l.Run(func(station int, f probe, now units.Time) {
		if got, times = append(got, f.Flow), append(times, now); f.Flow == 0 {
			l.Enter(3, probe{Flow: 4}, now, 0)
		}
	})
	if want := []int32{8, 0, 2, 4, 1, 3, 9}; !slices.Equal(got, want) {
		t.Errorf("flows in the order %v, want %v", got, want)
	}
	if want := []units.Time{8, 10, 10, 10, 10, 10, 11}; !slices.Equal(times, want) {
		t.Errorf("at %v, want %v", times, want)
	}
}
