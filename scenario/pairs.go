package scenario

import (
	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/coll/pairs"
	"github.com/simccl/simccl/units"
)

// Pairs says what the ranks of the operation exchange; seed decides which get more.
func (w *Workload) Pairs(seed uint64) pairs.Source {
	return pairs.Source{Op: w.Op, Rows: w.Counts, Imbalance: w.Imbalance, Seed: seed}
}

// pairs refuses counts by pair that the operation cannot have.
func (c *checks) pairs(w *Workload) {
	s := w.Pairs(0)
	for _, f := range s.Faults(pairs.With{Sizes: len(w.Sizes) > 0 || w.Range != (Range{}), Group: w.Group,
		Windows: w.Buffers == "windows" || w.Device > 0}) {
		c.add("workload."+f.Member, f.Value, f.Problem, f.Hint)
	}
}

// ofCounts is the one size of a workload with counts: of equal parts with their mean.
func (w *Workload) ofCounts() ([]Size, error) {
	types, err := w.AllTypes()
	if err != nil {
		return nil, &FieldError{Path: "workload.types", Problem: err.Error()}
	}
	p, where, err := pairs.Placed(w.Counts)
	if err != nil {
		return nil, &FieldError{Path: "workload.counts" + where, Problem: err.Error()}
	}
	return []Size{{Asked: units.Bytes(p.Count()*int64(p.Ranks())) * types[0].Size(), Exact: true}}, nil
}

// divide sets a row's counts by pair of ranks from the workload's counts (all_to_all_v); where they are
// equal it leaves them unset.
func (r *Running) divide(l *Line, parts *pairs.Source) (err error) {
	n := r.Site.Comm.NRanks
	if l.Pairs, l.Count, err = parts.Of(n, l.Count, l.Type); err != nil {
		return &FieldError{Path: "workload." + parts.Member(), Problem: err.Error()}
	}
	if parts.Rows != nil {
		l.Shown = units.Bytes(l.Count*int64(n)) * l.Type.Size()
	}
	return nil
}

// Name is the operation as a table names it.
func (r *Running) Name() string {
	if coll.Variable(r.Spec.Workload.Op) {
		return coll.AllToAllV
	}
	return r.fn.TestName()
}
