package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/simccl/simccl/internal/compare"
	"github.com/simccl/simccl/internal/tracefile"
	"github.com/simccl/simccl/trace/chrome"
	"github.com/simccl/simccl/trace/validate"
	"github.com/simccl/simccl/units"
	"github.com/spf13/cobra"
)

func newTrace(a *app) *cobra.Command {
	var limit traceLimit
	check := &cobra.Command{Use: "validate FILE…", Short: "Check that viewers can show a trace and that it is consistent",
		Long: `validate checks Chrome traces (.json, .json.gz): events nest, arrows join slices
and go forward in time, counters end at 0. On traces of other programs, what
only ours promise is a warning. Errors come before warnings, up to five of each
kind; --json lists every one. Exit status 7 if there is an error, 8 if a file is
no trace.`,
		Example: "  simccl run all_reduce --sizes 64K --trace sim.json.gz && simccl trace validate sim.json.gz",
		Args:    cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usage("simccl trace validate: FILE missing")
			}
			memory, err := limit.bytes()
			if err != nil {
				return err
			}
			var errs []error
			for _, f := range args {
				errs = append(errs, a.validate(f, memory))
			}
			return worst(errs)
		}}
	limit.flag(check)
	return group("trace", "Check, compare and join traces", check, newTraceStats(a), newTraceDiff(a), newTraceMerge(a))
}

// worst returns all errors, with the exit status of the first.
func worst(errs []error) error {
	joined := errors.Join(errs...)
	for _, err := range errs {
		if err != nil {
			return &statusError{code: status(err), err: joined}
		}
	}
	return nil
}

// open opens a file that is read as it goes; reading it fails once the command
// is cancelled.
func (a *app) open(name string) (io.ReadCloser, error) {
	if name == "-" {
		return &polledReader{io.NopCloser(os.Stdin), a.cancelled}, nil
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, input(err)
	}
	return &polledReader{f, a.cancelled}, nil
}

// polledReader is a reader that fails once it is cancelled.
type polledReader struct {
	io.ReadCloser
	cancelled func() error
}

// Read reads, unless it was cancelled.
func (r *polledReader) Read(b []byte) (int, error) {
	if err := r.cancelled(); err != nil {
		return 0, err
	}
	return r.ReadCloser.Read(b)
}

// closeTrace writes what a sink was given to its file, and says so.
func (a *app) closeTrace(name string, w *chrome.Writer) error {
	progress := a.progress("events", 0)
	defer progress.End()
	progress.Phase("writing trace", w.Progress)
	if err := w.Close(); err != nil {
		return err
	}
	progress.End()
	a.wroteTrace(name, w)
	return nil
}

func (a *app) validate(name string, memory units.Bytes) error {
	f, err := a.open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	rep, err := validate.CheckWith(f, validate.Options{All: a.json, Memory: memory})
	if err != nil {
		return traceError(name, err)
	}
	if a.json {
		err = encode(a.out, "", false, rep.Document(name))
	} else {
		err = rep.Text(a.out, name)
	}
	if err != nil {
		return err
	}
	if rep.Errors > 0 {
		return &statusError{code: exitCheck, quiet: true, err: fmt.Errorf("%s: %d errors", name, rep.Errors)}
	}
	return nil
}

// traceError puts the file before the place that a reader names.
func traceError(name string, err error) error {
	var syntax *chrome.SyntaxError
	if errors.As(err, &syntax) {
		return input(fmt.Errorf("%s:%w", name, syntax))
	}
	var limit *chrome.LimitError
	if errors.As(err, &limit) && limit.Line > 0 {
		return input(fmt.Errorf("%s:%w", name, limit))
	}
	return input(fmt.Errorf("%s: %w", name, err))
}

// nthError puts the file's name before what is wrong with one of several.
func nthError(names []string, err error) error {
	var t *compare.TraceError
	if errors.As(err, &t) {
		return traceError(names[t.Nth], t.Err)
	}
	return input(err)
}

func newTraceStats(a *app) *cobra.Command {
	var limit traceLimit
	c := &cobra.Command{Use: "stats FILE", Short: "Add up a trace: slices by name, counters", Args: exactly("FILE"),
		Example: "  simccl trace stats sim.json.gz",
		RunE: func(_ *cobra.Command, args []string) error {
			budget, err := limit.budget()
			if err != nil {
				return err
			}
			f, err := a.open(args[0])
			if err != nil {
				return err
			}
			defer f.Close()
			s, err := compare.Count(f, budget)
			if err != nil {
				return traceError(args[0], err)
			}
			if a.json {
				err = a.printJSON(s)
			} else {
				err = s.Text(a.out)
			}
			if err == nil && s.Timeless > 0 {
				err = failed("%s: %d events are left out: their ts or dur is no number of microseconds, the first in %s; simccl trace validate names more",
					args[0], s.Timeless, s.FirstTimeless)
			}
			return err
		}}
	limit.flag(c)
	return c
}

func newTraceDiff(a *app) *cobra.Command {
	var limit traceLimit
	tolerance := 0.0
	c := &cobra.Command{Use: "diff A B", Short: "Say where two traces part",
		Long: `diff matches the slices of two traces by rank, channel, name and peer, in the
order of their starts, and names the first that departs, the ones that differ
most, and the totals. Exit status 7 if any departs by more than --tolerance.`,
		Example: "  simccl trace diff sim.json.gz real.json --tolerance 5",
		Args:    exactly("A", "B"),
		RunE: func(_ *cobra.Command, args []string) error {
			if tolerance < 0 {
				return usage("--tolerance %v: cannot be below 0", tolerance)
			}
			budget, err := limit.budget()
			if err != nil {
				return err
			}
			one, err := a.open(args[0])
			if err != nil {
				return err
			}
			defer one.Close()
			two, err := a.open(args[1])
			if err != nil {
				return err
			}
			defer two.Close()
			d, err := compare.Diff(one, two, units.FromMicros(tolerance), budget)
			if err != nil {
				return nthError(args, err)
			}
			if a.json {
				err = a.printJSON(d)
			} else {
				err = d.Text(a.out, [2]string{args[0], args[1]})
			}
			if err == nil && !d.Equal() {
				err = &statusError{code: exitCheck, quiet: true, err: errors.New("the traces differ")}
			}
			return err
		}}
	limit.flag(c)
	c.Flags().Float64Var(&tolerance, "tolerance", 0, "`us` that starts and lengths may differ")
	return c
}

func newTraceMerge(a *app) *cobra.Command {
	out := ""
	var limit traceLimit
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
				if err == nil && a.json {
					err = a.printJSON(map[string]any{"output": out, "files": args})
				}
			}()
			if out == "" || len(args) < 2 {
				return usage("simccl trace merge: write -o OUT.json and at least two files")
			}
			budget, err := limit.budget()
			if err != nil {
				return err
			}
			heads, err := a.heads(args)
			if err != nil {
				return err
			}
			var readers []io.Reader
			for _, name := range args {
				f, err := a.open(name)
				if err != nil {
					return err
				}
				defer f.Close()
				readers = append(readers, f)
			}
			if one, err := compare.Parts(heads); one {
				if err != nil {
					return input(err)
				}
				return a.join(out, args, heads, readers, budget)
			}
			w, err := tracefile.Create(out, chrome.Options{Meta: chrome.Meta{Source: "merged", Version: version, NCCLRules: ncclRules().String()}, Cancelled: a.cancelled})
			if err != nil {
				return input(err)
			}
			left, err := compare.Merge(w, args, readers, budget)
			if err != nil {
				w.Abort()
				return nthError(args, err)
			}
			if left > 0 {
				fmt.Fprintf(a.err, "simccl: %d events left out: asynchronous, of unknown kinds or without a usable time\n", left)
			}
			return a.closeTrace(out, w)
		}}
	limit.flag(c)
	c.Flags().StringVarP(&out, "output", "o", "", "`file` to write, .json or .json.gz")
	return c
}

// heads reads what files say of themselves. Standard input cannot be read
// twice: it says nothing.
func (a *app) heads(names []string) (out []*chrome.Info, err error) {
	for _, name := range names {
		head := &chrome.Info{}
		if name != "-" {
			f, err := a.open(name)
			if err != nil {
				return nil, err
			}
			head, err = chrome.Head(f)
			f.Close()
			if err != nil {
				return nil, traceError(name, err)
			}
		}
		out = append(out, head)
	}
	return out, nil
}

// join writes the ranks of one run as one trace.
func (a *app) join(out string, names []string, heads []*chrome.Info, traces []io.Reader, budget *chrome.Budget) error {
	meta := compare.JoinedMeta(heads)
	meta.Version, meta.NCCLRules = version, ncclRules().String()
	w, err := tracefile.Create(out, chrome.Options{Meta: meta, Cancelled: a.cancelled})
	if err != nil {
		return input(err)
	}
	j, err := compare.Join(w, heads, traces, budget)
	if err != nil {
		w.Abort()
		return nthError(names, err)
	}
	w.Clock(0, j.Clocks)
	w.LeaveOut("flow", int64(j.Loose+j.Early))
	for line := range strings.Lines(j.Text(heads)) {
		fmt.Fprint(a.err, "simccl: "+line)
	}
	return a.closeTrace(out, w)
}
