package diagnose

import (
	"math"
	"slices"
	"strconv"
)

// large is the size from which times count for the whole.
const large = 1 << 20

func judge(us float64, least, most float64) Verdict {
	switch {
	case us > most:
		return Slower
	case us < least:
		return Faster
	}
	return AsExpected
}

// whole takes the verdict that most sizes from 1 MiB have, or most of all where none is so large,
// and where the curve parts from the expected one.
func (q *work) whole() {
	q.rep.Verdict = whole(q.rep.Sizes)
	// The first table that is off says where.
	at := 0
	for _, b := range q.benches {
		rows := q.rep.Sizes[at : at+len(b.table.rows)]
		at += len(rows)
		if from, shape := parts(rows); from != nil {
			q.rep.From, q.rep.Shape = from, shape
			return
		}
	}
}

func whole(sizes []Size) Verdict {
	if !slices.ContainsFunc(sizes, func(z Size) bool { return z.Bytes >= large }) {
		return most(sizes, 0)
	}
	return most(sizes, large)
}

// Again is the verdict of the whole were the measured times others: us gives them, microseconds.
func (r *Report) Again(us func(z *Size) float64) Verdict {
	sizes := slices.Clone(r.Sizes)
	for i := range sizes {
		z := &sizes[i]
		z.Measured = us(z)
		z.Verdict = judge(z.Measured, z.Expected[0], z.Expected[2])
	}
	return whole(sizes)
}

func most(sizes []Size, from int64) Verdict {
	count := map[Verdict]int{}
	n := 0
	for _, z := range sizes {
		if z.Bytes >= from {
			count[z.Verdict]++
			n++
		}
	}
	if n == 0 {
		return Unknown
	}
	for _, v := range []Verdict{Slower, Faster, Unknown} {
		if 2*count[v] > n {
			return v
		}
	}
	return AsExpected
}

// parts finds the size from which on most sizes are off in one direction, and names the part of
// the curve that is: latency, up to 64 KiB and no further; crossover, a range in the middle where
// NCCL changes algorithm or protocol; plateau, up to the largest size.
func parts(sizes []Size) (from *int64, shape string) {
	first, last := -1, -1
	for i := range sizes {
		if v := sizes[i].Verdict; v != AsExpected && v != Unknown &&
			(first < 0 || v == sizes[first].Verdict) {
			run := 0
			for k := i; k < len(sizes) && sizes[k].Verdict == v; k++ {
				run++
			}
			if first < 0 && run < 2 && i+run < len(sizes) {
				continue // a single size
			}
			if first < 0 {
				first = i
			}
			last = i
		}
	}
	switch {
	case first < 0:
		return nil, ""
	case last == len(sizes)-1 && sizes[last].Bytes >= large:
		shape = "plateau"
		if first == 0 && len(sizes) > 1 && sizes[0].Bytes < 64<<10 {
			shape = "every size"
		}
	case sizes[last].Bytes <= 256<<10:
		shape = "latency"
	default:
		shape = "crossover"
	}
	return &sizes[first].Bytes, shape
}

// round keeps four digits.
func round(v float64) float64 {
	out, err := strconv.ParseFloat(strconv.FormatFloat(v, 'g', 5, 64), 64)
	if err != nil || math.IsNaN(out) {
		return 0
	}
	return out
}

// median of values; 0 of none.
func median(v []float64) float64 {
	if len(v) == 0 {
		return 0
	}
	s := slices.Sorted(slices.Values(v))
	return s[len(s)/2]
}
