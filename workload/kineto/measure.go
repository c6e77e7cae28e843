package kineto

import (
	"cmp"
	"slices"
)

// Measured is the times that a recording itself shows, in ns: the span of a step, GPU busy time, exposed
// communication.
type Measured struct {
	// Span is from the beginning of the first operation of the GPU to the end of the
	// last; Busy how much of it any operation covers.
	Span, Busy int64
	// Comm is how much kernels of communication cover, waiting for other ranks
	// included; Exposed how much of that no other operation covers.
	Comm, Exposed int64
	// Collectives is the number of kernels of communication.
	Collectives int
}

// interval is a time from begin to end.
type interval struct{ begin, end int64 }

// Measure sums what the operations of a recording cover.
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

// union is intervals joined where they overlap.
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
