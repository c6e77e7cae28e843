// Package pairs makes the counts of an alltoall between unequal ranks: from a matrix that
// a file has, or as unequal as experts are, drawn from a seed. It opens no file.
package pairs

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/units"
)

// Source says what the ranks of an all_to_all_v exchange. The zero value is equal parts.
type Source struct {
	Op string // the operation; others than coll.AllToAllV have equal parts
	// Rows are elements by sender, then receiver; none: a size says how many there are.
	Rows [][]int64
	// Imbalance is what the busiest receiver gets over the mean of all: at least 1, which
	// is equal parts and what 0 means, and at most the number of ranks, where one gets all.
	Imbalance float64
	// Seed decides which ranks get more.
	Seed uint64

	known map[made]*coll.Pairs // so that equal operations are one
}

// made is by what counts of a Source differ.
type made struct {
	ranks int
	count int64
	size  units.Bytes
}

// Of returns the counts of so many ranks whose mean is count, nil for equal parts, and the
// count: that of the rows where there are some.
func (s *Source) Of(ranks int, count int64, typ coll.DataType) (*coll.Pairs, int64, error) {
	switch {
	case !coll.Variable(s.Op):
		return nil, count, nil
	case s.Rows != nil:
		p, err := s.matrix()
		if err == nil && len(s.Rows) != ranks {
			err = fmt.Errorf("has counts of %d ranks, but %d take part", len(s.Rows), ranks)
		}
		if err != nil {
			return nil, 0, err
		}
		if count = p.Count(); p.Equal() {
			return nil, count, nil
		}
		return p, count, nil
	case s.Imbalance <= 1 || count == 0:
		return nil, count, nil
	case s.Imbalance > float64(ranks) || math.IsNaN(s.Imbalance):
		return nil, 0, fmt.Errorf("of %d ranks the busiest can get at most %d times the mean", ranks, ranks)
	}
	key := made{ranks, count, typ.Size()}
	if p, known := s.known[key]; known {
		return p, count, nil
	}
	p, err := imbalanced(ranks, count, typ, s.Imbalance, s.Seed)
	if err != nil {
		return nil, 0, err
	}
	if p.Equal() {
		p = nil
	}
	if s.known == nil {
		s.known = map[made]*coll.Pairs{}
	}
	s.known[key] = p
	return p, count, nil
}

// matrix makes counts of the rows once.
func (s *Source) matrix() (p *coll.Pairs, err error) {
	if p = s.known[made{}]; p == nil {
		if p, err = Matrix(s.Rows); err == nil {
			s.known = map[made]*coll.Pairs{{}: p}
		}
	}
	return p, err
}

// Matrix makes counts of rows, sender by sender. Errors are *coll.PairErrors.
func Matrix(rows [][]int64) (*coll.Pairs, error) {
	if len(rows) > coll.MaxPairRanks {
		return coll.NewPairs(len(rows), nil)
	}
	var all []int64
	for i, row := range rows {
		if len(row) != len(rows) {
			return nil, &coll.PairError{Src: i, Dst: min(len(row), len(rows)),
				Problem: fmt.Sprintf("row %d has %d counts, and there are %d rows", i, len(row), len(rows))}
		}
		all = append(all, row...)
	}
	return coll.NewPairs(len(rows), all)
}

// imbalanced has every rank send count times ranks elements, of which receivers get
// shares that fall from one to the next by the same factor, in an order that seed draws.
// Shares are whole packs of 16 bytes where the sum is.
func imbalanced(ranks int, count int64, typ coll.DataType, most float64, seed uint64) (*coll.Pairs, error) {
	if ranks > coll.MaxPairRanks {
		return coll.NewPairs(ranks, nil)
	}
	total, unit := count*int64(ranks), max(16/int64(typ.Size()), 1)
	if total%unit != 0 {
		unit = 1
	}
	shares := cut(total/unit, weights(ranks, most))
	row := make([]int64, ranks)
	for i, at := range drawn(ranks, seed) {
		row[at] = shares[i] * unit
	}
	return coll.NewPairs(ranks, slices.Repeat(row, ranks))
}

// drawn is an order of so many ranks by a seed: Fisher and Yates', by numbers of
// SplitMix64 (Steele, Lea, Flood, OOPSLA 2014).
func drawn(ranks int, seed uint64) []int {
	order := make([]int, ranks)
	for i := range order {
		seed += 0x9e3779b97f4a7c15
		z := seed
		z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
		z = (z ^ z>>27) * 0x94d049bb133111eb
		j := int((z ^ z>>31) % uint64(i+1))
		order[i] = order[j]
		order[j] = i
	}
	return order
}

// weights fall geometrically from most times their mean, and sum up to 1.
func weights(ranks int, most float64) []float64 {
	n := float64(ranks)
	lo, hi := 0.0, 1.0 // of the factor: the first's weight over the mean falls with it
	for range 64 {
		mid := (lo + hi) / 2
		if sum := geometric(mid, ranks); n/sum > most {
			lo = mid
		} else {
			hi = mid
		}
	}
	out, w, sum := make([]float64, ranks), 1.0, geometric(hi, ranks)
	if most >= n {
		hi, sum = 0, 1
	}
	for i := range out {
		out[i] = w / sum
		w *= hi
	}
	return out
}

// geometric is 1 + q + q² … of n terms.
func geometric(q float64, n int) float64 {
	sum, w := 0.0, 1.0
	for range n {
		sum += w
		w *= q
	}
	return sum
}

// cut divides a whole by weights; what rounding leaves goes to the largest remainders.
func cut(whole int64, weights []float64) []int64 {
	out, left := make([]int64, len(weights)), whole
	rest, order := make([]float64, len(weights)), make([]int, len(weights))
	for i, w := range weights {
		x := float64(whole) * w
		out[i] = min(int64(x), left)
		rest[i], order[i] = x-float64(out[i]), i
		left -= out[i]
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(rest[b], rest[a]) })
	for i := 0; left > 0; i, left = (i+1)%len(order), left-1 {
		out[order[i]]++
	}
	return out
}
