// Package trace implements the commands of trace, which check, summarise, compare and join trace files.
//
// What it must not know: how files of traces are written.
package trace

import (
	"context"
	"fmt"

	"github.com/simccl/simccl/app/cli"
	"github.com/simccl/simccl/internal/fail"
	events "github.com/simccl/simccl/trace"
	"github.com/simccl/simccl/trace/chrome"
	"github.com/simccl/simccl/units"
	"github.com/spf13/cobra"
)

// Command returns `simccl trace`.
func Command(a *cli.App) *cobra.Command {
	return cli.Long(cli.Group("trace", "Check, compare and join traces", validateCommand(a), stats(a),
		diff(a), merge(a)),
		`The commands read Chrome JSON and Perfetto files, also gzip, of simccl and of other
programs such as PyTorch's profiler. validate checks that viewers can show a file,
stats sums up where its time goes, diff compares two event by event, and merge joins
the ranks of a run, or puts runs side by side.`)
}

// Memory is the memory for traces, as a size; empty: what the process may use, up to a default.
type Memory string

// register declares the option.
func (m *Memory) register(c *cobra.Command) {
	c.Flags().StringVar((*string)(m), "max-memory", "", fmt.Sprintf("`size` of memory for traces: one that "+
		"needs more is refused (default %dM, less where the process may take less)",
		events.DefaultMemory>>20))
}

// files returns a reader of trace files with this memory limit.
func (m Memory) files(a *cli.App) (*files, error) {
	if m == "" {
		return &files{Cancelled: a.Cancelled, Memory: affordable()}, nil
	}
	n, err := units.ParseBytes(string(m))
	if err != nil || n < 1 {
		return nil, fail.Usage("--max-memory %s: write a size like 384M or 4G", string(m))
	}
	return &files{Cancelled: a.Cancelled, Memory: n}, nil
}

// ValidateOptions are the flags and arguments of validate.
type ValidateOptions struct {
	Files  []string
	Memory Memory
}

func validateCommand(a *cli.App) *cobra.Command {
	var o ValidateOptions
	c := &cobra.Command{Use: "validate FILE…",
		Short: "Check that viewers can show a trace and that it is consistent",
		Long: `validate checks traces (.json, .pftrace, also with .gz or .zst): events nest, arrows join
slices and go forward in time, counters end at 0. On traces of other programs, what
only ours promise is a warning. Errors come before warnings, up to five of each
kind; --json lists every one. Exit status 7 if there is an error, 8 if a file is
no trace.`,
		Example: "  simccl run all_reduce --sizes 64K --trace sim.json.gz && simccl trace validate " +
			"sim.json.gz",
		Args: cobra.ArbitraryArgs,
		RunE: cli.RunWith(a, &o, &o.Files)}
	o.Memory.register(c)
	return c
}

// Run checks each file and returns an error if any is invalid.
func (o *ValidateOptions) Run(_ context.Context, a *cli.App) error {
	if len(o.Files) == 0 {
		return fail.Usage("simccl trace validate: FILE missing")
	}
	from, err := o.Memory.files(a)
	if err != nil {
		return err
	}
	var errs []error
	for _, f := range o.Files {
		errs = append(errs, check(a, f, from))
	}
	return fail.Join(errs...)
}

// check checks a file and prints what it finds.
func check(a *cli.App, name string, from *files) error {
	rep, err := from.validate(name, a.JSON)
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

// StatsOptions are the flags and arguments of stats.
type StatsOptions struct {
	File   string
	Memory Memory
}

func stats(a *cli.App) *cobra.Command {
	var o StatsOptions
	c := &cobra.Command{Use: "stats FILE", Short: "Add up a trace: slices by name, counters",
		Args:    cli.Exactly("FILE"),
		Example: "  simccl trace stats sim.json.gz",
		RunE:    cli.RunWithOne(a, &o, &o.File)}
	o.Memory.register(c)
	return c
}

// Run prints the statistics of a trace.
func (o *StatsOptions) Run(_ context.Context, a *cli.App) error {
	from, err := o.Memory.files(a)
	if err != nil {
		return err
	}
	s, err := from.stats(o.File)
	if err != nil {
		return err
	}
	if a.JSON {
		err = a.PrintJSON(s)
	} else {
		err = s.Text(a.Out)
	}
	if err == nil && s.Timeless > 0 {
		err = fail.Check("%s: %d events are left out: their ts or dur is no number of microseconds, the "+
			"first in %s; simccl trace validate names more",
			o.File, s.Timeless, s.FirstTimeless)
	}
	return err
}

// DiffOptions are the flags and arguments of diff.
type DiffOptions struct {
	Files     [2]string
	Tolerance float64 // us that starts and lengths may differ
	Memory    Memory
}

func diff(a *cli.App) *cobra.Command {
	var o DiffOptions
	c := &cobra.Command{Use: "diff A B", Short: "Say where two traces part",
		Long: `diff matches the slices of two traces by rank, channel, name and peer, in the
order of their starts, and names the first that departs, the ones that differ
most, and the totals. Exit status 7 if any departs by more than --tolerance.`,
		Example: "  simccl trace diff sim.json.gz real.json --tolerance 5",
		Args:    cli.Exactly("A", "B"),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.Files = [2]string(args)
			return o.Run(cmd.Context(), a)
		}}
	o.Memory.register(c)
	c.Flags().Float64Var(&o.Tolerance, "tolerance", 0, "`us` that starts and lengths may differ")
	return c
}

// Run compares the traces and returns an error if they differ.
func (o *DiffOptions) Run(_ context.Context, a *cli.App) error {
	if o.Tolerance < 0 {
		return fail.Usage("--tolerance %v: cannot be below 0", o.Tolerance)
	}
	from, err := o.Memory.files(a)
	if err != nil {
		return err
	}
	d, err := from.diff(o.Files, units.FromMicros(o.Tolerance))
	if err != nil {
		return err
	}
	if a.JSON {
		err = a.PrintJSON(d)
	} else {
		err = d.Text(a.Out, o.Files)
	}
	if err == nil && !d.Equal() {
		err = fail.Printed("the traces differ")
	}
	return err
}

// MergeOptions are the flags and arguments of merge.
type MergeOptions struct {
	Files  []string
	Output string
	Memory Memory
}

func merge(a *cli.App) *cobra.Command {
	var o MergeOptions
	c := &cobra.Command{Use: "merge -o OUT FILE FILE…",
		Short: "Lay traces side by side, or the ranks of a run over each other",
		Long: `merge lays traces side by side in one file: the processes of the second and
further ones get other numbers and their file's name.

Files that the ranks of one run wrote (bench with several processes: t.rank0.json,
t.rank1.json, …) become one trace instead: times by rank 0's clock, arrows between the ranks, the sum of
what they have in flight at a port they share. How far the clocks differ, and
how certain that is, is in the file. So do NCCL's own events of several
processes (our profiler plugin): times by the hosts' calendar clocks.`,
		Example: "  simccl trace merge -o both.json.gz sim.json.gz real.json",
		Args:    cobra.ArbitraryArgs,
		RunE:    cli.RunWith(a, &o, &o.Files)}
	o.Memory.register(c)
	c.Flags().StringVarP(&o.Output, "output", "o", "",
		"`file` to write (.json or .pftrace, also with .gz or .zst)")
	return c
}

// Run merges the files into o.Output and prints notes about what was left out.
func (o *MergeOptions) Run(_ context.Context, a *cli.App) error {
	if o.Output == "" || len(o.Files) < 2 {
		return fail.Usage("simccl trace merge: write -o OUT.json and at least two files")
	}
	from, err := o.Memory.files(a)
	if err != nil {
		return err
	}
	w, notes, err := from.merge(o.Output, o.Files, chrome.Meta{Version: a.Version,
		NCCLRules: cli.Rules().String()})
	if err != nil {
		return err
	}
	for _, n := range notes {
		fmt.Fprint(a.Notes(), "simccl: "+n)
	}
	if err := a.CloseTrace(o.Output, w); err != nil || !a.JSON {
		return err
	}
	return a.PrintJSON(map[string]any{"output": o.Output, "files": o.Files})
}
