package cli

import (
	"github.com/simccl/simccl/app/cli/flags"
	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/coll/pairs"
	"github.com/simccl/simccl/internal/fail"
	"github.com/simccl/simccl/nccltests/options"
	"github.com/simccl/simccl/scenario"
)

// PairFlags returns the flags of all_to_all_v.
func PairFlags(o *options.Options) []flags.Row {
	return []flags.Row{
		flags.Of(&o.CountsFile, "counts", "", "",
			"all_to_all_v: `FILE` of elements by sender (row) and receiver (column), "+
				"CSV or JSON, in place of sizes", "workload.counts", "CountsFile"),
		flags.Of(&o.Imbalance, "imbalance", "", 0,
			"all_to_all_v: the busiest receiver gets `X` times the mean, as of "+
				"experts; 1: equal parts; --seed draws which", "workload.imbalance", "Imbalance"),
	}
}

// Pairs sets what the ranks of an all_to_all_v exchange in a workload.
func (a *App) Pairs(w scenario.Workload, op string, o *options.Options) (scenario.Workload, error) {
	if coll.Variable(op) {
		w.Op = coll.AllToAllV
	}
	if w.Imbalance = o.Imbalance; o.CountsFile == "" {
		return w, nil
	}
	data, err := a.ReadAs(o.CountsFile, pairs.MaxBytes)
	if err == nil {
		w.Counts, err = pairs.Read(data, o.CountsFile)
	}
	return w, fail.Input(err)
}

// OrDefault returns v, or the zero value if v is the default that a Spec assumes without it.
func OrDefault[T comparable](v, def T) T {
	if v == def {
		var none T
		return none
	}
	return v
}
