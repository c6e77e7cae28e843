package kineto

import (
	"cmp"
	"slices"
)

// Measured is the times that a recording itself shows, in ns: the span of a step, GPU busy time, exposed
// communication.
type Measured struct {
	// Span is the time from the begin of the first GPU operation to the end of the last; Busy is the part
	// covered by any operation.
	Span, Busy int64
	// Comm is the time covered by communication kernels, including their waits for other ranks; Exposed is
	// the part of it that no other operation overlaps.
	Comm, Exposed int64
	// Collectives is the number of communication kernels.
	Collectives int
}

// interval is a time span [begin, end), in ns.
type interval struct{ begin, end int64 }

// Measure computes the time covered by the recording's operations.
func (t *Trace) Measure() Measured {
	var m Measured
	var comm, other []interval
	for i := range t.Ops {
		o := &t.Ops[i]
		v := interval{o.Start, o.Start + o.Dur}
		if o.Class == NCCL || o.Class == Foreign {
			comm = append(comm, v)
			m.Collectives++
		} else {
			other = append(other, v)
		}
	}
	all := union(append(slices.Clone(comm), other...))
	if len(all) > 0 {
		m.Span = all[len(all)-1].end - all[0].begin
	}
	m.Busy = total(all)
	m.Comm = total(union(comm))
	m.Exposed = m.Busy - total(union(other))
	return m
}

// union sorts intervals and merges those that overlap.
func union(v []interval) []interval {
	slices.SortFunc(v, func(a, b interval) int { return cmp.Compare(a.begin, b.begin) })
	var out []interval
	for _, x := range v {
		if n := len(out); n > 0 && x.begin <= out[n-1].end {
			out[n-1].end = max(out[n-1].end, x.end)
		} else {
			out = append(out, x)
		}
	}
	return out
}

func total(v []interval) (sum int64) {
	for _, x := range v {
		sum += x.end - x.begin
	}
	return sum
}
