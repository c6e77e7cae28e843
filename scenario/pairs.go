package scenario

import (
	"errors"
	"fmt"
	"math"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/internal/pairs"
	"github.com/simccl/simccl/units"
)

// ValidatePairs reports what of the counts by pair of an operation that is measured means
// nothing, as joined *FieldErrors.
func (w *Workload) ValidatePairs() error {
	var c checks
	c.pairs(&Workload{Op: w.Op, Counts: w.Counts, Imbalance: w.Imbalance, Sizes: w.Sizes, Range: w.Range})
	return errors.Join(c.errs...)
}

// pairs refuses counts by pair that the operation cannot have.
func (c *checks) pairs(w *Workload) {
	given, value, path := "", "", "workload.counts"
	if w.Imbalance != 0 {
		given, value, path = "an imbalance", fmt.Sprint(w.Imbalance), "workload.imbalance"
	}
	if len(w.Counts) > 0 {
		given, value, path = "counts", "", "workload.counts"
	}
	variable := coll.Variable(w.Op)
	switch {
	case given != "" && !variable:
		c.add(path, value, "only all_to_all_v has "+given+" by pair of ranks", "write op "+coll.AllToAllV)
	case len(w.Counts) > 0 && w.Imbalance != 0:
		c.add(path, "", "counts say how unequal they are", "leave the imbalance out")
	case w.Imbalance != 0 && !(w.Imbalance >= 1) || math.IsInf(w.Imbalance, 0):
		c.add(path, value, "the busiest receiver gets at least the mean", "write a number from 1 to the number of ranks")
	case len(w.Counts) > 0 && (len(w.Sizes) > 0 || w.Range != (Range{})):
		c.add(path, "", "counts say the size", "leave sizes out")
	}
	if !variable {
		return
	}
	if w.Group > 1 {
		c.add("workload.group", fmt.Sprint(w.Group), "several "+coll.AllToAllV+" of one group are not simulated", "leave the group out, or write alltoall")
	}
	if w.Buffers == "windows" || w.Device > 0 {
		c.add("workload.buffers", w.Buffers, "sends and receives have no use for symmetric windows", "leave them out, or write alltoall")
	}
}

// source says what the ranks exchange.
func (s *Spec) source() pairs.Source {
	return s.Workload.Pairs(s.seed())
}

// Pairs says what the ranks of the operation exchange; seed decides which get more.
func (w *Workload) Pairs(seed uint64) pairs.Source {
	return pairs.Source{Rows: w.Counts, Imbalance: w.Imbalance, Seed: seed}
}

// ofCounts is the one size of a workload with counts: of equal parts with their mean.
func (w *Workload) ofCounts() ([]Size, error) {
	p, err := pairs.Matrix(w.Counts)
	var bad *coll.PairError
	if errors.As(err, &bad) {
		path := "workload.counts"
		if bad.Src >= 0 && bad.Dst < len(w.Counts[bad.Src]) {
			path = fmt.Sprintf("%s[%d][%d]", path, bad.Src, bad.Dst)
		} else if bad.Src >= 0 {
			path = fmt.Sprintf("%s[%d]", path, bad.Src)
		}
		return nil, &FieldError{Path: path, Problem: bad.Error()}
	}
	types, err := w.AllTypes()
	if err != nil {
		return nil, &FieldError{Path: "workload.types", Problem: err.Error()}
	}
	return []Size{{Asked: units.Bytes(p.Count()*int64(p.Ranks())) * types[0].Size(), Exact: true}}, nil
}

// divided gives a line the counts by pair, where its parts are unequal.
func (r *Running) divided(l *Line) error {
	key := pairsOf{l.Count, l.Type.Size()}
	x, known := r.pairs[key]
	if !known {
		source := r.Spec.source()
		var err error
		if x.pairs, x.count, err = source.Of(r.Site.Comm.NRanks, l.Count, l.Type); err != nil {
			path := "workload.imbalance"
			if source.Rows != nil {
				path = "workload.counts"
			}
			return &FieldError{Path: path, Problem: err.Error()}
		}
		if r.pairs == nil {
			r.pairs = map[pairsOf]dividedCount{}
		}
		r.pairs[key] = x
	}
	if l.Pairs, l.Count = x.pairs, x.count; r.Spec.Workload.Counts != nil {
		l.Shown = units.Bytes(l.Count*int64(r.Site.Comm.NRanks)) * l.Type.Size()
	}
	return nil
}

// pairsOf is what counts by pair depend on, within a Spec.
type pairsOf struct {
	count int64
	size  units.Bytes
}

type dividedCount struct {
	pairs *coll.Pairs
	count int64
}

// Name is the operation as a table names it.
func (r *Running) Name() string {
	if coll.Variable(r.Spec.Workload.Op) {
		return coll.AllToAllV
	}
	return r.fn.TestName()
}

// spread says how unequal the counts of an all_to_all_v are; nil for other operations.
func (r *Running) spread(o *Operation) *coll.Spread {
	if !coll.Variable(r.Spec.Workload.Op) {
		return nil
	}
	s := coll.EqualSpread(o.Count, r.Site.Comm.NRanks)
	if o.Pairs != nil {
		s = o.Pairs.Spread()
	}
	return &s
}
