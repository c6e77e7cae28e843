package pack

import (
	"cmp"
	"io"
	"math/bits"
	"slices"
)

// Sorter is the memory for sorting and spilling batches. A sorted batch stays in order only until the next
// Sort, as its order is in this memory.
type Sorter struct {
	a, b []uint64
	ties []tie
	text []byte
}

// Sort sorts a batch: by time with counting sorts, which exploit that times are close to each other, then
// events of equal time by comparison.
func (s *Sorter) Sort(b *Batch) {
	b.order = nil
	if !b.late {
		return
	}
	n := len(b.Recs)
	least, most := b.Recs[0].TS, b.Recs[0].TS
	for i := range b.Recs {
		least, most = min(least, b.Recs[i].TS), max(most, b.Recs[i].TS)
	}
	span := bits.Len64(uint64(most - least))
	if b.bits = bits.Len(uint(n)); span+b.bits > 64 || b.bits > 32 {
		slices.SortStableFunc(b.Recs, func(x, y Record) int { return b.compare(&x, &y) })
		return
	}
	s.a, s.b = room(s.a, n), room(s.b, n)
	for i := range b.Recs {
		s.a[i] = uint64(b.Recs[i].TS-least)<<b.bits | uint64(i)
	}
	s.byTime(b.bits, b.bits+span)
	for from := 0; from < n; {
		to, ts := from+1, s.a[from]>>b.bits
		for to < n && s.a[to]>>b.bits == ts {
			to++
		}
		if to > from+1 {
			s.settle(b, s.a[from:to])
		}
		from = to
	}
	b.order = s.a
}

// room returns memory for n elements, reusing a.
func room(a []uint64, n int) []uint64 {
	if cap(a) < n {
		return make([]uint64, n)
	}
	return a[:n]
}

// digit is the number of bits per pass of the counting sort: its counters fit the L1 cache.
const digit = 11

// byTime sorts s.a by the bits from low to high, with s.b as second buffer.
func (s *Sorter) byTime(low, high int) {
	for ; low < high; low += digit {
		var next [1 << digit]uint32
		for _, at := range s.a {
			next[at>>low&(1<<digit-1)]++
		}
		sum := uint32(0)
		for d, k := range &next {
			next[d], sum = sum, sum+k
		}
		for _, at := range s.a {
			d := at >> low & (1<<digit - 1)
			s.b[next[d]] = at
			next[d]++
		}
		s.a, s.b = s.b, s.a
	}
}

// tie is one of several events of equal time.
type tie struct {
	dur int64
	at  uint64 // its track's rank above its number
}

func (x tie) compare(y tie) int {
	if x.dur != y.dur {
		return cmp.Compare(y.dur, x.dur)
	}
	return cmp.Compare(x.at, y.at)
}

// few is the number of events of equal time up to which insertion sort is used.
const few = 12

// settle sorts the records of events of equal time, which come in the order of emission.
func (s *Sorter) settle(b *Batch, same []uint64) {
	ties, number := s.ties[:0], uint64(1)<<b.bits-1
	for _, at := range same {
		r := b.record(at)
		ties = append(ties, tie{r.Dur, uint64(b.Order.Rank[r.Track])<<b.bits | at&number})
	}
	s.ties = ties
	if len(ties) > few {
		slices.SortFunc(ties, tie.compare)
	}
	for i := 1; i < len(ties); i++ {
		x, j := ties[i], i
		for ; j > 0 && x.compare(ties[j-1]) < 0; j-- {
			ties[j] = ties[j-1]
		}
		ties[j] = x
	}
	time := same[0] &^ number
	for i := range ties {
		same[i] = time | ties[i].at&number
	}
}

func (b *Batch) compare(x, y *Record) int { return b.Order.compare(x.Key, y.Key, x.Track, y.Track) }

// spillBytes is the number of bytes written to a spool at a time.
const spillBytes = 256 << 10

// Spill appends a sorted batch to a spool and returns its size in bytes.
func (s *Sorter) Spill(b *Batch, w io.Writer) (size int64, err error) {
	for i := range b.Recs {
		r := b.At(i)
		s.text = append(AppendHead(s.text, r), b.Bytes(r)...)
		if len(s.text) < spillBytes && i < len(b.Recs)-1 {
			continue
		}
		size += int64(len(s.text))
		if _, err = w.Write(s.text); err != nil {
			return size, err
		}
		s.text = s.text[:0]
	}
	return size, nil
}
