package collector

// busySpan is when a kernel of a communicator held SMs, in ps: from its begin on its GPU, and from
// when all ranks were there.
type busySpan struct{ From, Begin, To int64 }

// besideEnd is when compute of some length ends that begins at a time, where it takes longer by
// one factor beside spans, which take longer by another one beside it.
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
