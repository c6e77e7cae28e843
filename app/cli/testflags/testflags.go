// Package testflags holds the options of commands that take nccl-tests' command lines, with
// nccl-tests' letters.
//
// What it must not know: what is done with the sizes.
package testflags

import (
	"slices"
	"strings"

	"github.com/simccl/simccl/app/cli"
	"github.com/simccl/simccl/app/report/sweep"
	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/internal/fail"
	"github.com/simccl/simccl/nccltests/options"
	"github.com/simccl/simccl/scenario"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Flags are nccl-tests' options, with its letters.
type Flags struct {
	options.Options
	given *pflag.FlagSet // of a command line; nil: the values alone count
}

// Register declares all of them on a command.
func (t *Flags) Register(c *cobra.Command) {
	f := c.Flags()
	f.SortFlags = false
	t.RegisterSizes(f)
	cli.RegisterPairs(f, &t.Options)
	f.IntVarP(&t.Iters, "iters", "n", 20, "timed operations of a size")
	f.IntVarP(&t.Warmup, "warmup-iters", "w", 1, "operations before them")
	f.IntVarP(&t.Agg, "agg-iters", "m", 1, "operations of a group")
	f.IntVarP(&t.Cycles, "run-cycles", "N", 1, "how often to go through all sizes (never nodes)")
	f.IntVarP(&t.Check, "check", "c", 1, "check that results are right: prove the plan")
	f.StringVarP(&t.Op, "op", "o", "sum", "reduction: sum, prod, min, max, avg or all")
	f.StringVarP(&t.DataType, "datatype", "d", "float", "element type, or all")
	f.IntVarP(&t.Root, "root", "r", 0, "root rank, -1 for each one after the other")
	f.IntVarP(&t.Graph, "cudagraph", "G", 0, "1: as --launch graph")
	f.StringVarP(&t.Output, "output-file", "J", "", "write nccl-tests' JSON to `FILE`")
	f.StringVar(&t.Columns, "columns", "", "columns to add: `+algo,proto,nch,model,expect,limit,use,queue,paused,marked,retx,regret,best`")
	for _, o := range []struct {
		to          *int
		name, short string
		def         int
		help        string
	}{
		{&t.Threads, "nthreads", "t", 1, "threads of a process (1)"},
		{&t.ParallelInit, "parallel-init", "p", 0, "accepted; bench always starts its ranks at the same time"},
		{&t.Blocking, "blocking", "z", 0, "1: wait for each operation, and for the other threads; 2: for the operation alone; 3: for the group, and meet untimed"},
		{&t.StreamNull, "stream-null", "y", 0, "accepted; no effect on a simulation"},
		{&t.Timeout, "timeout", "T", 0, "accepted; no effect on a simulation"},
		{&t.CPUTime, "report-cputime", "C", 0, "1: the host's time to launch, in place of the operation's"},
		{&t.Timestamps, "report-timestamps", "S", 0, "1: bench prints when a size was measured; a simulation has no clock"},
		{&t.Average, "average", "a", 1, "times of 0 rank 0, 1 average, 2 minimum, 3 maximum"},
		{&t.LocalRegister, "local-register", "R", 0, "1: registered buffers; 2: symmetric windows"},
		{&t.CTAPolicy, "cta-policy", "x", options.NoPolicy, "0 default, 1 fewer blocks where buffers are registered, 2 copy engines where they are in windows"},
		{&t.Memory, "memory", "M", 0, "1: bench on GPUs prints how much device memory is taken"},
		{&t.Unalign, "unalign", "u", 0, "elements by which buffers begin later"},
		{&t.PerIter, "per-iter-timing", "I", 0, "1: time each iteration by events too, and print how they spread"},
		{&t.Skip, "per-iter-skip", "K", 0, "iterations that those leave out at the start"},
		{&t.Device, "device-implementation", "D", 0, "1 to 4: nccl-tests' own kernels over symmetric windows (-R 2); 0, NCCL's collectives"},
		{&t.DeviceCTAs, "device-cta-count", "V", 16, "blocks of -D"},
	} {
		f.IntVarP(o.to, o.name, o.short, o.def, o.help)
		_ = f.MarkHidden(o.name)
	}
}

// RegisterSizes declares the options that say which sizes.
func (t *Flags) RegisterSizes(f *pflag.FlagSet) {
	t.given = f
	f.StringVarP(&t.Min, "min-bytes", "b", "", "smallest `SIZE` (K, M, G are binary)")
	f.StringVarP(&t.Max, "max-bytes", "e", "", "largest `SIZE`")
	f.StringVarP(&t.Step, "step-bytes", "i", "", "difference of sizes (default 1M)")
	f.Int64VarP(&t.Factor, "step-factor", "f", 0, "`FACTOR` of sizes in place of a difference")
	f.StringVar(&t.Sizes, "sizes", "", "exactly these sizes instead: `96,240,1G`")
}

// Sized reports whether any sizes were asked for.
func (t *Flags) Sized() bool {
	return t.Sizes != "" || t.CountsFile != "" || t.swept()
}

// swept reports whether a sweep was described, if only by values that say nothing.
func (t *Flags) swept() bool {
	return t.Range() != (scenario.Range{}) || t.given != nil &&
		slices.ContainsFunc([]string{"min-bytes", "max-bytes", "step-bytes", "step-factor"}, t.given.Changed)
}

// Range is the sweep of -b, -e, -i and -f.
func (t *Flags) Range() scenario.Range {
	return scenario.Range{Min: t.Min, Max: t.Max, Step: t.Step, Factor: t.Factor}
}

// OneWay refuses sizes that are given in two ways.
func (t *Flags) OneWay() error {
	if t.Sizes != "" && t.swept() {
		return fail.Usage("--sizes replaces -b, -e, -i and -f; leave one of them out")
	}
	return nil
}

// List returns the sizes to run.
func (t *Flags) List() ([]scenario.Size, error) {
	if err := t.OneWay(); err != nil {
		return nil, err
	}
	w := t.Workload("")
	sizes, err := w.AllSizes()
	return sizes, cli.AsFlags(err)
}

// ParseColumns reads --columns.
func (t *Flags) ParseColumns() ([]sweep.Column, error) {
	c, err := sweep.ParseColumns(t.Columns)
	if err != nil {
		return nil, fail.Usage("--columns %s: %v", t.Columns, err)
	}
	return c, nil
}

// Workload is the operation and what it goes through.
func (t *Flags) Workload(op string) scenario.Workload {
	w := scenario.Workload{Op: op, Root: t.Root, Cycles: cli.OrDefault(t.Cycles, 1), Group: cli.OrDefault(t.Agg, 1)}
	if f, err := coll.ParseFunc(op); err == nil {
		w.Op = f.TestName()
	}
	if t.Sizes != "" {
		w.Sizes = strings.Split(t.Sizes, ",")
	}
	if w.Range = t.Range(); t.swept() && w.Range == (scenario.Range{}) {
		w.Range.Min = "32M" // nccl-tests' own, where a sweep is asked for that says nothing
	}
	if t.DataType != "float" {
		w.Types = []string{t.DataType}
	}
	if t.Op != "sum" {
		w.Reductions = []string{t.Op}
	}
	w.Buffers = [...]string{"", "registered", "windows"}[max(0, min(t.LocalRegister, 2))]
	w.CTAPolicy, w.Unalign = max(0, min(t.CTAPolicy, 2)), max(0, t.Unalign)
	w.Device, w.DeviceBlocks = t.Device, t.DeviceCTAs*min(t.Device*t.Device, 1)
	return w
}
