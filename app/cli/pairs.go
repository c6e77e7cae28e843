package cli

import (
	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/coll/pairs"
	"github.com/simccl/simccl/internal/fail"
	"github.com/simccl/simccl/nccltests/options"
	"github.com/simccl/simccl/scenario"
	"github.com/spf13/pflag"
)

// RegisterPairs adds the options of an all_to_all_v.
func RegisterPairs(f *pflag.FlagSet, o *options.Options) {
	f.StringVar(&o.CountsFile, "counts", "", "of all_to_all_v: `FILE` of elements by pair (CSV or JSON), a "+
		"row for each sender, in place of sizes")
	f.Float64Var(&o.Imbalance, "imbalance", 0, "of all_to_all_v: the busiest receiver gets `X` times the "+
		"mean, as of experts; 1: equal parts; --seed draws who")
}

// Pairs adds to a workload what the ranks of an all_to_all_v exchange.
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

// OrDefault is a value, or none where it is what a Spec has without it.
func OrDefault[T comparable](v, def T) T {
	if v == def {
		var none T
		return none
	}
	return v
}
