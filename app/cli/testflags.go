package cli

import (
	"slices"
	"strings"

	"github.com/simccl/simccl/app/cli/flags"
	"github.com/simccl/simccl/app/report/sweep"
	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/internal/fail"
	"github.com/simccl/simccl/nccltests/options"
	"github.com/simccl/simccl/scenario"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// TestFlags are nccl-tests' options, with its letters.
type TestFlags struct {
	options.Options
	given *pflag.FlagSet // of a command line; nil: the values alone count
}

// Titles of groups in help.
const (
	Test   = "Iterations and checks"
	Launch = "Launch"
)

// Register declares the flags, except those of RegisterOutput.
func (t *TestFlags) Register(c *cobra.Command) {
	c.Flags().SortFlags = false
	t.given = c.Flags()
	sizes := flags.In(flags.Sizes, append(t.sizes(), PairFlags(&t.Options)...)...)
	sizes.Rows = append(sizes.Rows,
		flags.Of(&t.DataType, "datatype", "d", "float", "element `TYPE`, or all"),
		flags.Of(&t.Op, "op", "o", "sum", "reduction `OP`: sum, prod, min, max, avg or all"),
		flags.Of(&t.Root, "root", "r", 0, "root `RANK`; -1: each rank, one after the other", "workload.root",
			"Root"))
	flags.Register(c.Flags(), sizes, t.test(), t.launch(), t.buffers())
}

// RegisterOutput declares the flags of what is printed and written: --columns, -J, -a, -S, ….
func (t *TestFlags) RegisterOutput(c *cobra.Command) { flags.Register(c.Flags(), t.output()) }

// RegisterSizes declares the flags that select sizes: -b, -e, -i, -f and --sizes.
func (t *TestFlags) RegisterSizes(c *cobra.Command) {
	t.given = c.Flags()
	flags.Register(c.Flags(), flags.In(flags.Sizes, t.sizes()...))
}

func (t *TestFlags) sizes() []flags.Row {
	return []flags.Row{
		flags.Of(&t.Min, "min-bytes", "b", "", "smallest `SIZE` (K, M and G are binary)",
			"workload.range.min"),
		flags.Of(&t.Max, "max-bytes", "e", "", "largest `SIZE`", "workload.range.max"),
		flags.Of(&t.Step, "step-bytes", "i", "", "difference of one `SIZE` to the next (default 1M)",
			"workload.range.step"),
		flags.Of(&t.Factor, "step-factor", "f", 0,
			"`FACTOR` of one size to the next, in place of a difference",
			"workload.range.factor"),
		flags.Of(&t.Sizes, "sizes", "", "", "exactly these `SIZES`, 96,240,1G, in place of -b, -e, -i and -f",
			"workload.sizes"),
	}
}

// test returns the flags of iterations and checks.
func (t *TestFlags) test() flags.Group {
	return flags.In(Test,
		flags.Of(&t.Iters, "iters", "n", 20, "`N` timed operations of each size", "Iters"),
		flags.Of(&t.Warmup, "warmup-iters", "w", 1, "`N` warmup operations of each size", "Warmup"),
		flags.Of(&t.Agg, "agg-iters", "m", 1, "`N` operations in each NCCL group", "workload.group", "Agg"),
		flags.Of(&t.Cycles, "run-cycles", "N", 1, "`N` runs through all sizes (nodes are --nodes)",
			"workload.cycles", "Cycles"),
		flags.Of(&t.Check, "check", "c", 1,
			"`N` checked operations of each size; run proves the plan instead; 0: none", "Check"),
		flags.Of(&t.PerIter, "per-iter-timing", "I", 0,
			"`1`: time of each iteration too, and how they spread", "PerIter"),
		flags.Of(&t.Skip, "per-iter-skip", "K", 0, "`N` first iterations that -I leaves out", "Skip"),
		flags.Of(&t.Timeout, "timeout", "T", 0,
			"timeout of a size in `SECONDS`, 0: none; no effect on a simulation", "Timeout"),
	)
}

func (t *TestFlags) launch() flags.Group {
	return flags.In(Launch,
		flags.Of(&t.Threads, "nthreads", "t", 1, "`N` threads in each process", "engine.threads", "Threads"),
		flags.Of(&t.Graph, "cudagraph", "G", 0,
			"`N` launches of a CUDA graph in place of eager launches; run: as --launch "+
				"graph", "Graph"),
		flags.Of(&t.Blocking, "blocking", "z", 0,
			"host waits, `MODE` 1: for each operation, then for the other threads; "+
				"2: for the operation; 3: for the group, then for the other threads, untimed; 0: not",
			"engine.blocking", "Blocking"),
		flags.Of(&t.CPUTime, "report-cputime", "C", 0,
			"`1`: the host's time to launch in place of the operation's",
			"engine.cpuTime", "CPUTime"),
		flags.Of(&t.ParallelInit, "parallel-init", "p", 0,
			"`1`: accepted; ranks are always started at the same time"),
		flags.Of(&t.StreamNull, "stream-null", "y", 0,
			"`1`: accepted by run, without effect; refused by bench",
			"StreamNull"),
	)
}

// buffers returns the flags of how buffers are allocated, and of kernels that depend on it.
func (t *TestFlags) buffers() flags.Group {
	return flags.In("Buffers and kernels",
		flags.Of(&t.LocalRegister, "local-register", "R", 0,
			"buffers, `MODE` 1: registered; 2: symmetric windows; 0: plain",
			"workload.buffers", "LocalRegister"),
		flags.Of(&t.CTAPolicy, "cta-policy", "x", options.NoPolicy,
			"CTA `POLICY` of NCCL, 0: default; 1: fewer blocks where "+
				"buffers are registered; 2: copy engines where they are windows; -1: as NCCL_CTA_POLICY",
			"workload.ctaPolicy", "CTAPolicy"),
		flags.Of(&t.Unalign, "unalign", "u", 0, "offset of buffers from their alignment, in `ELEMENTS`",
			"workload.unalign", "Unalign"),
		flags.Of(&t.Device, "device-implementation", "D", 0,
			"nccl-tests' own kernel `K`, 1 to 4, over symmetric windows "+
				"(-R 2); 0: NCCL's collectives", "workload.device", "Device"),
		flags.Of(&t.DeviceCTAs, "device-cta-count", "V", 16, "`N` blocks of -D", "workload.deviceBlocks"),
		flags.Of(&t.Memory, "memory", "M", 0, "`1`: bench on GPUs prints how much device memory is taken",
			"Memory"),
	)
}

func (t *TestFlags) output() flags.Group {
	return flags.In(flags.Output,
		flags.Of(&t.Columns, "columns", "", "",
			"columns to add: `+NAMES`, as +algo,proto,nch (simccl help columns)", "Columns"),
		flags.Of(&t.Output, "output-file", "J", "", "write nccl-tests' JSON to `FILE`", "Output"),
		flags.Of(&t.Average, "average", "a", 1,
			"times are those of `WHICH`: 0 rank 0, 1 average, 2 minimum, 3 maximum of "+
				"the ranks", "Average"),
		flags.Of(&t.Timestamps, "report-timestamps", "S", 0,
			"`1`: bench prints when each size was measured; a simulation "+
				"has no clock"),
	)
}

// Sized reports whether the user gave any sizes.
func (t *TestFlags) Sized() bool {
	return t.Sizes != "" || t.CountsFile != "" || t.swept()
}

// swept reports whether any flag of a sweep was given, even with its default value.
func (t *TestFlags) swept() bool {
	return t.Range() != (scenario.Range{}) || t.given != nil &&
		slices.ContainsFunc([]string{"min-bytes", "max-bytes", "step-bytes", "step-factor"}, t.given.Changed)
}

// Range returns the sweep of -b, -e, -i and -f.
func (t *TestFlags) Range() scenario.Range {
	return scenario.Range{Min: t.Min, Max: t.Max, Step: t.Step, Factor: t.Factor}
}

// OneWay returns a usage error if sizes are given in two ways.
func (t *TestFlags) OneWay() error {
	if t.Sizes != "" && t.swept() {
		return fail.Usage("--sizes replaces -b, -e, -i and -f; leave one of them out")
	}
	return nil
}

// List returns the sizes to run. It returns a usage error for invalid or contradicting flags.
func (t *TestFlags) List() ([]scenario.Size, error) {
	if err := t.OneWay(); err != nil {
		return nil, err
	}
	w := t.Workload("")
	sizes, err := w.AllSizes()
	return sizes, flags.Name(t.given, err)
}

// ParseColumns parses --columns.
func (t *TestFlags) ParseColumns() ([]sweep.Column, error) {
	c, err := sweep.ParseColumns(t.Columns)
	if err != nil {
		return nil, fail.Usage("--columns %s: %v", t.Columns, err)
	}
	return c, nil
}

// Workload returns the operation with its sizes, types and reductions.
func (t *TestFlags) Workload(op string) scenario.Workload {
	w := scenario.Workload{Op: op, Root: t.Root, Cycles: OrDefault(t.Cycles, 1),
		Group: OrDefault(t.Agg, 1)}
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
