package packet

// sorter puts the frames of a window in the order of their times; frames of
// equal times keep their order, which is that of ports.
type sorter struct {
	out   []frame
	count [buckets + 1]uint16
}

const (
	bucketBits = 9
	buckets    = 1 << bucketBits
	few        = 24 // as many are sorted by insertion
)

// sorted returns frames, all within [from, from+span), in order: in their own
// memory, or in that of the sorter until its next call.
func (s *sorter) sorted(in []frame, from, span int64) []frame {
	n := len(in)
	if n <= few || n >= 1<<16 {
		insertion(in)
		return in
	}
	clear(s.count[:])
	scale := (1 << 40) / uint64(span) << bucketBits
	for i := range in {
		s.count[uint64(in[i].at-from)*scale>>40+1]++
	}
	for i := 1; i < len(s.count); i++ {
		s.count[i] += s.count[i-1]
	}
	if cap(s.out) < n {
		s.out = make([]frame, 2*n)
	}
	out := s.out[:n]
	for i := range in {
		b := &s.count[uint64(in[i].at-from)*scale>>40]
		out[*b] = in[i]
		*b++
	}
	insertion(out)
	return out
}

// insertion sorts what is nearly in order, stably.
func insertion(a []frame) {
	for i := 1; i < len(a); i++ {
		if a[i-1].at <= a[i].at {
			continue
		}
		f := a[i]
		k := i - 1
		for ; k >= 0 && a[k].at > f.at; k-- {
			a[k+1] = a[k]
		}
		a[k+1] = f
	}
}
