package trace

import "github.com/simccl/simccl/units"

// Tick is the resolution of a written timeline. Viewers drop slices shorter than a tick and reject partial
// overlap, so lanes are allocated in whole ticks.
const Tick = units.Nanosecond

// Span rounds a slice to whole ticks, as every writer prints it: start and end are rounded down, but the
// slice has at least one tick.
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

// Lanes allocates parallel lanes of one track such that slices on a lane never overlap: always the lowest
// free lane. The zero value is ready.
type Lanes struct {
	free []int64 // by lane: tick from which it is free
}

// Place allocates the lowest lane that is free for the whole slice, until the end of the slice. Slices may
// come in the order of their starts or of their ends.
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

// Len returns the number of lanes used so far.
func (l *Lanes) Len() int { return len(l.free) }
