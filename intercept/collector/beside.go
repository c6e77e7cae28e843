package collector

// busySpan is when a kernel of a communicator held SMs, in ps: from its begin on its GPU, and from
// when all ranks were there.
type busySpan struct{ From, Begin, To int64 }

// besideEnd returns when compute ends that begins at a time (ps) and takes left alone. While a span of busy
// lasts compute runs slower by the factor compute, and the part of the span after Begin takes longer by the
// factor calls.
//
// Example: left 100 at 0, a span from 40 to 100 that began at 40, factors 1.5 and 1: 40 are done at 40,
// another 40 in the 60 of the span, and the last 20 after it: the end is 120.
func besideEnd(at, left int64, busy []busySpan, compute, calls float64) int64 {
	for _, b := range busy {
		from := max(b.From, at)
		if b.To <= from || left <= 0 {
			continue
		}
		if from-at >= left {
			continue
		}
		left -= from - at
		long := b.To - from + int64(float64(b.To-max(from, b.Begin))*(calls-1))
		done := min(int64(float64(long)/compute), left)
		left -= done
		at = from + int64(float64(done)*compute)
	}
	return at + max(left, 0)
}
