package main

import (
	"fmt"
	"slices"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/internal/report/sweep"
	"github.com/simccl/simccl/scenario"
	"github.com/simccl/simccl/units"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// testFlags are nccl-tests' options, with its letters.
type testFlags struct {
	min, max, step string
	factor         int64
	sizes          string

	iters, warmup, agg, cycles int
	check                      int
	op, datatype               string
	root                       int
	graph                      int
	output                     string
	columns                    string

	threads, parallelInit, blocking, streamNull, timeout, cpuTime, timestamps int
	average, localRegister, ctaPolicy, memory, unalign, device, deviceCTAs    int
	perIter, skip                                                             int
}

// noPolicy leaves NCCL's CTA policy to its variable.
const noPolicy = -1

func (t *testFlags) register(c *cobra.Command) {
	f := c.Flags()
	f.SortFlags = false
	t.registerSizes(f)
	f.IntVarP(&t.iters, "iters", "n", 20, "timed operations of a size")
	f.IntVarP(&t.warmup, "warmup-iters", "w", 1, "operations before them")
	f.IntVarP(&t.agg, "agg-iters", "m", 1, "operations of a group")
	f.IntVarP(&t.cycles, "run-cycles", "N", 1, "how often to go through all sizes (never nodes)")
	f.IntVarP(&t.check, "check", "c", 1, "check that results are right: prove the plan")
	f.StringVarP(&t.op, "op", "o", "sum", "reduction: sum, prod, min, max, avg or all")
	f.StringVarP(&t.datatype, "datatype", "d", "float", "element type, or all")
	f.IntVarP(&t.root, "root", "r", 0, "root rank, -1 for each one after the other")
	f.IntVarP(&t.graph, "cudagraph", "G", 0, "1: as --launch graph")
	f.StringVarP(&t.output, "output-file", "J", "", "write nccl-tests' JSON to `FILE`")
	f.StringVar(&t.columns, "columns", "", "columns to add: `+algo,proto,nch,model,expect,limit,use,queue,regret`")
	for _, o := range []struct {
		to          *int
		name, short string
		def         int
		help        string
	}{
		{&t.threads, "nthreads", "t", 1, "threads of a process (1)"},
		{&t.parallelInit, "parallel-init", "p", 0, "accepted; bench always starts its ranks at the same time"},
		{&t.blocking, "blocking", "z", 0, "accepted; only 0 is simulated"},
		{&t.streamNull, "stream-null", "y", 0, "accepted; no effect on a simulation"},
		{&t.timeout, "timeout", "T", 0, "accepted; no effect on a simulation"},
		{&t.cpuTime, "report-cputime", "C", 0, "accepted; only 0 is simulated"},
		{&t.timestamps, "report-timestamps", "S", 0, "1: bench prints when a size was measured; a simulation has no clock"},
		{&t.average, "average", "a", 1, "times of 0 rank 0, 1 average, 2 minimum, 3 maximum"},
		{&t.localRegister, "local-register", "R", 0, "accepted; only 0 is simulated"},
		{&t.ctaPolicy, "cta-policy", "x", noPolicy, "no effect on buffers that are not registered"},
		{&t.memory, "memory", "M", 0, "1: bench on GPUs prints how much device memory is taken"},
		{&t.unalign, "unalign", "u", 0, "accepted; only 0 is simulated"},
		{&t.perIter, "per-iter-timing", "I", 0, "1: on GPUs, time each iteration by events too, and print how they spread"},
		{&t.skip, "per-iter-skip", "K", 0, "iterations that those leave out at the start"},
		{&t.device, "device-implementation", "D", 0, "accepted; only 0, NCCL's own kernels"},
		{&t.deviceCTAs, "device-cta-count", "V", 16, "accepted; of -D"},
	} {
		f.IntVarP(o.to, o.name, o.short, o.def, o.help)
		_ = f.MarkHidden(o.name)
	}
}

// registerSizes adds the options that say which sizes.
func (t *testFlags) registerSizes(f *pflag.FlagSet) {
	f.StringVarP(&t.min, "min-bytes", "b", "", "smallest `SIZE` (K, M, G are binary)")
	f.StringVarP(&t.max, "max-bytes", "e", "", "largest `SIZE`")
	f.StringVarP(&t.step, "step-bytes", "i", "", "difference of sizes (default 1M)")
	f.Int64VarP(&t.factor, "step-factor", "f", 0, "`FACTOR` of sizes in place of a difference")
	f.StringVar(&t.sizes, "sizes", "", "exactly these sizes instead: `96,240,1G`")
}

// sized reports whether any sizes were asked for.
func (t *testFlags) sized(c *cobra.Command) bool { return t.sizes != "" || swept(c) }

// swept reports whether a sweep was described.
func swept(c *cobra.Command) bool {
	return slices.ContainsFunc([]string{"min-bytes", "max-bytes", "step-bytes", "step-factor"}, c.Flags().Changed)
}

// unsimulated names options whose values would change the times, but are not
// simulated. NCCL reads the CTA policy only where buffers are registered,
// which those of a captured graph are (enqueue.cc:1950, :2580).
func (t *testFlags) unsimulated(graph bool) error {
	switch {
	case t.ctaPolicy < noPolicy || t.ctaPolicy > 2:
		return usage("-x %d: 0 default, 1 efficiency, 2 zero CTAs", t.ctaPolicy)
	case t.average < 0 || t.average > 3:
		return usage("-a %d: 0 rank 0, 1 average, 2 minimum, 3 maximum", t.average)
	case t.ctaPolicy == 1 && graph:
		return notYet("-x 1 with --launch graph", "buffers that a graph registers; eager launches have none")
	}
	for _, o := range []struct {
		flag string
		v    int
		is   int
	}{{"-z", t.blocking, 0}, {"-C", t.cpuTime, 0}, {"-R", t.localRegister, 0},
		{"-u", t.unalign, 0}, {"-m", t.agg, 1}, {"-I", t.perIter, 0}, {"-D", t.device, 0}} {
		if o.v != o.is {
			return notYet(fmt.Sprintf("%s %d", o.flag, o.v), fmt.Sprintf("only %s %d is simulated", o.flag, o.is))
		}
	}
	return nil
}

// list returns the sizes to run and the bounds for the header.
func (t *testFlags) list(c *cobra.Command) ([]scenario.Size, coll.Sweep, error) {
	w := t.workload(c, "")
	if t.sizes != "" && swept(c) {
		return nil, coll.Sweep{}, usage("--sizes replaces -b, -e, -i and -f; leave one of them out")
	}
	sizes, err := w.AllSizes()
	if err != nil {
		return nil, coll.Sweep{}, asFlags(err)
	}
	bounds, err := w.Bounds()
	return sizes, bounds, asFlags(err)
}

// parseColumns reads --columns.
func (t *testFlags) parseColumns() ([]sweep.Column, error) {
	c, err := sweep.ParseColumns(t.columns)
	if err != nil {
		return nil, usage("--columns %s: %v", t.columns, err)
	}
	return c, nil
}

// types and ops are what nccl-tests goes through for an operation.
func (t *testFlags) types() ([]coll.DataType, error) {
	return (&scenario.Workload{Types: []string{t.datatype}}).AllTypes()
}

func (t *testFlags) ops(f coll.Func) ([]coll.RedOp, error) {
	return (&scenario.Workload{Reductions: []string{t.op}}).AllReductions(f)
}

func parseSize(flag, s string) (units.Bytes, error) {
	n, err := units.ParseBytes(s)
	if err != nil {
		return 0, usage("%s: %v", flag, err)
	}
	return n, nil
}
