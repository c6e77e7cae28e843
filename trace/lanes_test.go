package trace

import (
	"testing"

	"github.com/simccl/simccl/units"
	"pgregory.net/rapid"
)

// Slices on one lane never overlap after rounding to ticks, whether they are
// placed in the order of their starts or of their ends.
func TestLanesNeverOverlap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		byEnd := rapid.Bool().Draw(t, "byEnd")
		var lanes Lanes
		type iv struct{ from, to int64 }
		used := map[int][]iv{}
		clock := units.Time(0)
		n := rapid.IntRange(1, 60).Draw(t, "n")
		for range n {
			clock += units.Time(rapid.Int64Range(0, 3000).Draw(t, "gap"))
			dur := units.Time(rapid.Int64Range(0, 20000).Draw(t, "dur"))
			start, end := clock, clock+dur
			if byEnd {
				start, end = clock-dur, clock
			}
			lane := lanes.Place(start, end)
			from, to := Span(start, end)
			for _, o := range used[lane] {
				if from < o.to && o.from < to {
					t.Fatalf("lane %d: [%d,%d) overlaps [%d,%d)", lane, from, to, o.from, o.to)
				}
			}
			used[lane] = append(used[lane], iv{from, to})
		}
	})
}

// In the order of starts the number of lanes is the largest number of slices
// that run at once: no lane is wasted.
func TestLanesAreFewest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var lanes Lanes
		var ends []int64
		clock, most := units.Time(0), 0
		for range rapid.IntRange(1, 60).Draw(t, "n") {
			clock += units.Time(rapid.Int64Range(0, 3000).Draw(t, "gap"))
			end := clock + units.Time(rapid.Int64Range(0, 20000).Draw(t, "dur"))
			lanes.Place(clock, end)
			from, to := Span(clock, end)
			ends = append(ends, to)
			live := 0
			for _, e := range ends {
				if e > from {
					live++
				}
			}
			most = max(most, live)
		}
		if lanes.Len() != most {
			t.Fatalf("%d lanes for at most %d slices at once", lanes.Len(), most)
		}
	})
}
