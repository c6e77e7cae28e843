package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/simccl/simccl/app/cli"
	"github.com/simccl/simccl/app/process/traceview"
	"github.com/simccl/simccl/internal/fail"
	"github.com/simccl/simccl/trace"
	"github.com/simccl/simccl/trace/chrome"
	"github.com/simccl/simccl/units"
)

func newTrace(a *app) *cobra.Command {
	limit := ""
	check := &cobra.Command{Use: "validate FILE…", Short: "Check that viewers can show a trace and that it is consistent",
		Long: `validate checks traces (.json, .pftrace, also with .gz or .zst): events nest, arrows join
slices and go forward in time, counters end at 0. On traces of other programs, what
only ours promise is a warning. Errors come before warnings, up to five of each
kind; --json lists every one. Exit status 7 if there is an error, 8 if a file is
no trace.`,
		Example: "  simccl run all_reduce --sizes 64K --trace sim.json.gz && simccl trace validate sim.json.gz",
		Args:    cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usage("simccl trace validate: FILE missing")
			}
			from, err := a.traces(limit)
			if err != nil {
				return err
			}
			var errs []error
			for _, f := range args {
				errs = append(errs, a.validate(f, from))
			}
			return fail.Join(errs...)
		}}
	limitMemory(check, &limit)
	return cli.Long(cli.Group("trace", "Check, compare and join traces", check, newTraceStats(a), newTraceDiff(a), newTraceMerge(a)), `The commands read Chrome JSON and Perfetto files, also gzip, of simccl and of other
programs such as PyTorch's profiler. validate checks that viewers can show a file,
stats sums up where its time goes, diff compares two event by event, and merge joins
the ranks of a run, or puts runs side by side.`)
}

// limitMemory adds the option that bounds what a reader of traces keeps in memory.
func limitMemory(c *cobra.Command, to *string) {
	c.Flags().StringVar(to, "max-memory", "", fmt.Sprintf("`size` of what may be kept of the traces in memory (default %dM, less where the process may take less)", trace.DefaultMemory>>20))
}

// traces are the files that a command reads, with at most --max-memory of them in
// memory.
func (a *app) traces(limit string) (*traceview.Files, error) {
	if limit == "" {
		return &traceview.Files{Cancelled: a.Cancelled, Memory: traceview.Affordable()}, nil
	}
	n, err := units.ParseBytes(limit)
	if err != nil || n < 1 {
		return nil, usage("--max-memory %s: write a size like 384M or 4G", limit)
	}
	return &traceview.Files{Cancelled: a.Cancelled, Memory: n}, nil
}

func (a *app) validate(name string, from *traceview.Files) error {
	rep, err := from.Validate(name, a.JSON)
	if err != nil {
		return err
	}
	if a.JSON {
		err = a.Encode("", false, rep.Document(name))
	} else {
		err = rep.Text(a.Out, name)
	}
	if err == nil && rep.Errors > 0 {
		err = fail.Printed("%s: %d errors", name, rep.Errors)
	}
	return err
}

func newTraceStats(a *app) *cobra.Command {
	limit := ""
	c := &cobra.Command{Use: "stats FILE", Short: "Add up a trace: slices by name, counters", Args: cli.Exactly("FILE"),
		Example: "  simccl trace stats sim.json.gz",
		RunE: func(_ *cobra.Command, args []string) error {
			from, err := a.traces(limit)
			if err != nil {
				return err
			}
			s, err := from.Stats(args[0])
			if err != nil {
				return err
			}
			if a.JSON {
				err = a.PrintJSON(s)
			} else {
				err = s.Text(a.Out)
			}
			if err == nil && s.Timeless > 0 {
				err = failed("%s: %d events are left out: their ts or dur is no number of microseconds, the first in %s; simccl trace validate names more",
					args[0], s.Timeless, s.FirstTimeless)
			}
			return err
		}}
	limitMemory(c, &limit)
	return c
}

func newTraceDiff(a *app) *cobra.Command {
	limit := ""
	tolerance := 0.0
	c := &cobra.Command{Use: "diff A B", Short: "Say where two traces part",
		Long: `diff matches the slices of two traces by rank, channel, name and peer, in the
order of their starts, and names the first that departs, the ones that differ
most, and the totals. Exit status 7 if any departs by more than --tolerance.`,
		Example: "  simccl trace diff sim.json.gz real.json --tolerance 5",
		Args:    cli.Exactly("A", "B"),
		RunE: func(_ *cobra.Command, args []string) error {
			if tolerance < 0 {
				return usage("--tolerance %v: cannot be below 0", tolerance)
			}
			from, err := a.traces(limit)
			if err != nil {
				return err
			}
			d, err := from.Diff([2]string(args), units.FromMicros(tolerance))
			if err != nil {
				return err
			}
			if a.JSON {
				err = a.PrintJSON(d)
			} else {
				err = d.Text(a.Out, [2]string{args[0], args[1]})
			}
			if err == nil && !d.Equal() {
				err = fail.Printed("the traces differ")
			}
			return err
		}}
	limitMemory(c, &limit)
	c.Flags().Float64Var(&tolerance, "tolerance", 0, "`us` that starts and lengths may differ")
	return c
}

func newTraceMerge(a *app) *cobra.Command {
	out := ""
	limit := ""
	c := &cobra.Command{Use: "merge -o OUT FILE FILE…", Short: "Lay traces side by side, or the ranks of a run over each other",
		Long: `merge lays traces side by side in one file: the processes of the second and
further ones get other numbers and their file's name.

Files that the ranks of one run wrote (bench with several processes: t.rank0.json,
t.rank1.json, …) become one trace instead: times by rank 0's clock, arrows between the ranks, the sum of
what they have in flight at a port they share. How far the clocks differ, and
how certain that is, is in the file. So do NCCL's own events of several
processes (our profiler plugin): times by the hosts' calendar clocks.`,
		Example: "  simccl trace merge -o both.json.gz sim.json.gz real.json",
		Args:    cobra.ArbitraryArgs,
		RunE: func(_ *cobra.Command, args []string) (err error) {
			defer func() {
				if err == nil && a.JSON {
					err = a.PrintJSON(map[string]any{"output": out, "files": args})
				}
			}()
			if out == "" || len(args) < 2 {
				return usage("simccl trace merge: write -o OUT.json and at least two files")
			}
			from, err := a.traces(limit)
			if err != nil {
				return err
			}
			w, notes, err := from.Merge(out, args, chrome.Meta{Version: version, NCCLRules: cli.Rules().String()})
			if err != nil {
				return err
			}
			for _, n := range notes {
				fmt.Fprint(a.Err, "simccl: "+n)
			}
			return a.CloseTrace(out, w)
		}}
	limitMemory(c, &limit)
	c.Flags().StringVarP(&out, "output", "o", "", "`file` to write (.json or .pftrace, also with .gz or .zst)")
	return c
}
