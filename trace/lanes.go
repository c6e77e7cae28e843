package trace

import "github.com/simccl/simccl/units"

// Tick is the resolution of a written timeline. Viewers drop slices shorter
// than it and refuse partial overlap, so lanes are allocated in whole ticks.
const Tick = units.Nanosecond

// Span rounds a slice to whole ticks, as every writer prints it: the start is
// rounded down and the end too, but the slice keeps at least one tick.
func Span(start, end units.Time) (from, to int64) {
	from, to = floorTick(start), floorTick(end)
	if to <= from {
		to = from + 1
	}
	return from, to
}

func floorTick(t units.Time) int64 {
	q := int64(t / Tick)
	if t < 0 && t%Tick != 0 {
		q--
	}
	return q
}

// Lanes hands out parallel lanes of one track so that slices on one lane never
// overlap: always the lowest lane that is free. The zero value is ready.
type Lanes struct {
	free []int64 // tick from which the lane is free
}

// Place takes the lowest lane free for the whole slice and gives it back at
// its end. Slices may come in the order of their starts or of their ends.
func (l *Lanes) Place(start, end units.Time) int {
	from, to := Span(start, end)
	for i, f := range l.free {
		if f <= from {
			l.free[i] = to
			return i
		}
	}
	l.free = append(l.free, to)
	return len(l.free) - 1
}

// Len returns how many lanes were needed so far.
func (l *Lanes) Len() int { return len(l.free) }
