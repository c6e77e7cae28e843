// Package sweep implements the commands of sweep: run, plan, emit, merge, status, show and search.
//
// What it must not know: how points are simulated, distributed or stored.
package sweep

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/simccl/simccl/app/cli"
	"github.com/simccl/simccl/app/cli/flags"
	"github.com/simccl/simccl/app/process"
	"github.com/simccl/simccl/config"
	"github.com/simccl/simccl/internal/fail"
	"github.com/simccl/simccl/internal/newfile"
	"github.com/simccl/simccl/study/sweep"
	"github.com/simccl/simccl/study/sweep/sqlite"
	"github.com/simccl/simccl/study/sweep/table"
	"github.com/simccl/simccl/workload/inputs"
	"github.com/spf13/cobra"
)

// Command returns `simccl sweep`.
func Command(a *cli.App) *cobra.Command {
	c := run(a)
	c.AddCommand(plan(a), emit(a), merge(a), status(a), show(a), search(a))
	return c
}

// load reads a specification file (YAML) and returns a Run of it with this process's settings.
func load(a *cli.App, file string) (*sweep.Run, error) {
	data, err := a.ReadAs(file, process.MaxSettings, inputs.Sweep)
	if err != nil {
		return nil, err
	}
	s, err := sweep.Parse(data, file)
	if err != nil {
		return nil, fail.Input(err)
	}
	opt := a.Options(nil)
	opt.Warn = nil // a point's warnings would come thousands of times
	cfg, err := a.Config()
	if err != nil {
		return nil, err
	}
	r := &sweep.Run{Spec: s, Options: opt, Version: a.Version, NCCL: cfg.Rules.Version()}
	for _, v := range config.EnvRows(cfg, config.Facts{}, false) {
		if v.Set && v.Status == "honoured" {
			r.Settings = append(r.Settings, v.Name+"="+v.Value)
		}
	}
	slices.Sort(r.Settings)
	return r, nil
}

// Options are the flags and arguments of sweep.
type Options struct {
	Spec    string        // a file
	Out     string        // a folder
	Shard   string        // I/N or auto; empty: all points
	Jobs    int           // points at a time; 0: as many as processors
	MaxTime time.Duration // after which no point begins; 0: none
	Retry   bool          // points again that failed
	Claim   bool          // batches that no other process has
	Format  string        // of files for a simulator of requests; empty: none
}

func run(a *cli.App) *cobra.Command {
	var o Options
	c := &cobra.Command{Use: "sweep SPEC", Short: "Run many points: on a laptop, under Slurm or Kubernetes",
		Long: `sweep runs a scenario at many points. A specification (YAML or JSON) has a base
scenario and what varies: grid (all combinations), zip, list, seeds, and where, a
condition that a point must meet. Points go to shards by their key, a hash of
what they say and of their files' contents; every result is a line that is
appended to a file of the process. A sweep that was killed goes on where it was.

  base: {workload: {op: all_reduce}}
  grid: {topo: [dgx-h100, dgx-a100], nodes: [1, 2, 4], size: [1M, 1G], NCCL_ALGO: [Ring, Tree]}
  where: nodes < 4 || NCCL_ALGO == "Ring"

Exit status 75: --max-time ended first, run the same command again; 7: points
failed (--retry runs them again). --shard auto takes the task of an array job
from the variables of Slurm, Kubernetes, PBS, LSF, Grid Engine or an MPI launcher.`,
		Example: `  echo '{"base": {"workload": {"op": "all_reduce"}},' '"grid": {"nodes": [1, 2], "size": ["8", "1M"]}}' > study.json
  simccl sweep study.json --out results
  simccl sweep study.json --out results --shard 1/2 --max-time 50m`,
		Args: cli.Exactly("SPEC"),
		RunE: cli.RunWithOne(a, &o, &o.Spec)}
	resume := true // always so
	flags.Register(c.Flags(), flags.In("",
		flags.Of(&o.Out, "out", "", "", "folder `DIR` of the results"),
		flags.Of(&o.Shard, "shard", "", "",
			"run part `I/N` of the points, or auto: the task of an array job"),
		flags.Of(&o.Jobs, "jobs", "", 0, "points at a time (default: processors)"),
		flags.Of(&o.MaxTime, "max-time", "", 0, "begin no point after this time, 50m"),
		flags.Of(&resume, "resume", "", true, "go on where the results end; always so"),
		flags.Of(&o.Retry, "retry", "", false, "run points again that failed"),
		flags.Of(&o.Claim, "claim", "", false,
			"take batches that no other process has, for points of uneven cost"),
		flags.Of(&o.Format, "format", "", "",
			"write DIR/FORMAT, communication times as a simulator of requests reads them: vidur, "+
				"aiconfigurator")))
	_ = c.Flags().MarkHidden("resume")
	return c
}

// Run simulates the points and prints how many were done.
func (o *Options) Run(ctx context.Context, a *cli.App) error {
	if o.Out == "" {
		return fail.Usage("--out DIR is missing: the folder of the results")
	}
	r, err := load(a, o.Spec)
	if err != nil {
		return err
	}
	if r.Shard, r.Shards, err = sweep.ParseShard(o.Shard, a.Getenv); err != nil {
		return err
	}
	if o.Jobs < 0 {
		return fail.Usage("--jobs %d: write 1 or more", o.Jobs)
	}
	if o.Format != "" && !slices.Contains(sweep.Formats(), o.Format) {
		return fail.Usage("--format %s: write %s", o.Format, strings.Join(sweep.Formats(), " or "))
	}
	r.Dir, r.Jobs, r.MaxTime, r.Retry, r.Claim = a.Path(o.Out), o.Jobs, o.MaxTime, o.Retry, o.Claim
	if err := finish(ctx, a, r); err != nil || o.Format == "" {
		return err
	}
	return o.files(a, cmp.Or(r.Spec.Base.NCCL.Version, cli.Rules().String()))
}

// files writes the times of the sweep as the tables of a serving simulator (--format), below o.Out.
func (o *Options) files(a *cli.App, nccl string) error {
	m, err := merged(a, []string{o.Out}, false)
	if err != nil {
		return err
	}
	list, err := m.Files(o.Format, nccl)
	if err != nil {
		return err
	}
	for _, f := range list {
		name := filepath.Join(o.Out, o.Format, filepath.FromSlash(f.Name))
		if err := os.MkdirAll(filepath.Dir(a.Path(name)), 0o777); err != nil {
			return fail.Input(err)
		}
		if err := newfile.Write(a.Path(name), f.Data); err != nil {
			return fail.Input(err)
		}
		a.Wrote(name, "for "+o.Format)
	}
	return nil
}

// left reports whether an error is of kind fail.LeftOver.
func left(err error) bool {
	var e *fail.Error
	return errors.As(err, &e) && e.Kind == fail.LeftOver
}

// finish simulates the points, prints how many were done, and returns an error if points failed or are left.
func finish(ctx context.Context, a *cli.App, r *sweep.Run) error {
	out, err := r.Do(ctx)
	if err != nil && !left(err) {
		return err
	}
	if a.JSON {
		if e := a.PrintJSON(map[string]int{"points": out.Points, "before": out.Done, "ran": out.Ran,
			"failed": out.Failed, "same": out.Skipped}); e != nil {
			return e
		}
	} else if e := a.PrintText(fmt.Sprintf("%d points: %d before, %d now, %d of them failed\n", out.Points,
		out.Done, out.Ran, out.Failed)); e != nil {
		return e
	}
	switch {
	case err != nil:
		return err
	case out.Failed > 0:
		return fail.Check("%d points failed; simccl sweep status shows the first, --retry runs them again",
			out.Failed)
	}
	return nil
}

// PlanOptions are the flags and arguments of plan.
type PlanOptions struct {
	Spec   string
	Probes int           // points that are run
	Limit  time.Duration // after which none begins
}

func plan(a *cli.App) *cobra.Command {
	var o PlanOptions
	c := &cobra.Command{Use: "plan SPEC", Short: "Count the points and estimate their cost",
		Long:    "plan runs some points, spread over the sweep, and writes nothing.",
		Example: "  simccl sweep plan study.json",
		Args:    cli.Exactly("SPEC"),
		RunE:    cli.RunWithOne(a, &o, &o.Spec)}
	c.Flags().IntVar(&o.Probes, "probes", 8, "run `N` points")
	c.Flags().DurationVar(&o.Limit, "limit", 20*time.Second, "begin no probe after this time")
	return c
}

// Run probes some points and prints what the whole sweep is expected to cost.
func (o *PlanOptions) Run(ctx context.Context, a *cli.App) error {
	r, err := load(a, o.Spec)
	if err != nil {
		return err
	}
	e, err := r.Plan(ctx, o.Probes, o.Limit)
	if err != nil {
		return err
	}
	if a.JSON {
		return a.PrintJSON(e)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%d points", e.Points)
	if e.Same > 0 {
		fmt.Fprintf(&b, " (%d more say what another says)", e.Same)
	}
	if e.Probed > e.Failed {
		fmt.Fprintf(&b, "\nabout %.3g s on this machine, by %d of them (%.3g to %.3g s); slowest %s",
			e.Seconds, e.Probed, e.Low, e.High, e.Largest)
	}
	if e.Failed > 0 {
		fmt.Fprintf(&b, "\n%d of %d failed: %s", e.Failed, e.Probed, e.Error)
	}
	return a.PrintText(b.String() + "\n")
}

// EmitOptions are the flags and arguments of emit.
type EmitOptions struct {
	Kind    string // slurm, k8s or parallel
	Spec    string
	Out     string
	Shards  int
	MaxTime time.Duration
}

func emit(a *cli.App) *cobra.Command {
	var o EmitOptions
	c := &cobra.Command{Use: "emit slurm|k8s|parallel SPEC",
		Short:   "Print a job that runs the shards of a sweep",
		Example: "  simccl sweep emit slurm study.json --shards 64 --out results > study.sbatch",
		Args:    cli.Exactly("slurm|k8s|parallel", "SPEC"),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.Kind, o.Spec = args[0], args[1]
			return o.Run(cmd.Context(), a)
		}}
	c.Flags().StringVar(&o.Out, "out", "results", "folder `DIR` of the results")
	c.Flags().IntVar(&o.Shards, "shards", 16, "number of shards")
	c.Flags().DurationVar(&o.MaxTime, "max-time", 50*time.Minute,
		"--max-time of a shard: less than the scheduler's limit")
	return c
}

// Run prints a job of Slurm, Kubernetes or parallel that runs the shards of the sweep.
func (o *EmitOptions) Run(_ context.Context, a *cli.App) error {
	if _, err := load(a, o.Spec); err != nil {
		return err
	}
	text, err := sweep.Emit(o.Kind, o.Spec, o.Out, o.Shards, o.MaxTime.String())
	if err != nil {
		return err
	}
	if a.JSON {
		return a.PrintJSON(map[string]string{"kind": o.Kind, "text": text})
	}
	return a.PrintText(text)
}

// MergeOptions are the flags and arguments of merge.
type MergeOptions struct {
	Dirs       []string
	File       string // empty: standard output
	Provenance bool
	Partial    bool // points may be missing
}

func merge(a *cli.App) *cobra.Command {
	var o MergeOptions
	c := &cobra.Command{Use: "merge DIR...", Short: "Join the results of all shards",
		Long: `merge reads the results of a sweep's shards and writes them sorted by key: a .jsonl with
a line a point, or a .csv, .parquet or .db (SQLite) with a row a size, for pandas. Exit status 7 where
points are missing, unless --partial. Two results of one point must be equal.`,
		Example: "  simccl sweep merge results -o all.csv",
		Args:    cli.Arguments(1, "DIR..."),
		RunE:    cli.RunWith(a, &o, &o.Dirs)}
	c.Flags().StringVarP(&o.File, "output", "o", "",
		"`FILE`.jsonl, .csv, .parquet or .db (default: lines of JSON on standard output)")
	c.Flags().BoolVar(&o.Provenance, "with-provenance", false, "keep host, process and CPU time")
	c.Flags().BoolVar(&o.Partial, "partial", false, "points may be missing")
	return c
}

// Run merges the results of folders into one table, and writes it to a file or to standard output.
func (o *MergeOptions) Run(_ context.Context, a *cli.App) error {
	m, err := merged(a, o.Dirs, o.Partial)
	if err != nil {
		return err
	}
	if err := write(a, m, o.File, o.Provenance); err != nil {
		return err
	}
	if o.File != "" {
		a.Wrote(o.File, fmt.Sprintf("%d points, %d of them failed", len(m.Lines), m.Failed))
	}
	return nil
}

// merged joins the results of folders; partial lets points be missing.
func merged(a *cli.App, dirs []string, partial bool) (*sweep.Merged, error) {
	var paths []string
	for _, d := range dirs {
		paths = append(paths, a.Path(d))
	}
	m, err := sweep.Merge(paths...)
	if err == nil && m.Missing > 0 && !partial {
		err = fail.Check("%d of %d points have no result; run the sweep to its end, or write --partial",
			m.Missing, m.Missing+len(m.Lines))
	}
	return m, err
}

// write writes the results in the format of the file's ending.
func write(a *cli.App, m *sweep.Merged, file string, provenance bool) error {
	form := func(w io.Writer) error { return m.WriteJSONL(w, provenance) }
	switch {
	case strings.HasSuffix(file, ".csv"):
		form = func(w io.Writer) error { return m.WriteCSV(w, provenance) }
	case strings.HasSuffix(file, ".parquet"):
		form = func(w io.Writer) error {
			t, err := m.Table(provenance)
			if err != nil {
				return err
			}
			return table.WriteParquet(w, t)
		}
	case strings.HasSuffix(file, ".db"), strings.HasSuffix(file, ".sqlite"):
		form = func(w io.Writer) error { return database(w, m, provenance) }
	case file != "" && !strings.HasSuffix(file, ".jsonl"):
		return fail.Usage("-o %s: the name must end in .jsonl, .csv, .parquet, .db or .sqlite", file)
	}
	if file == "" {
		return form(a.Out)
	}
	f, err := newfile.Create(a.Path(file))
	if err != nil {
		return fail.Input(err)
	}
	return fail.Input(f.Finish(form(f)))
}

// database writes a database of SQLite, which needs a file of its own while it grows.
func database(w io.Writer, m *sweep.Merged, provenance bool) error {
	t, err := m.Table(provenance)
	if err != nil {
		return err
	}
	dir, remove, err := newfile.TempDir("simccl-merge")
	if err != nil {
		return err
	}
	defer remove()
	name := filepath.Join(dir, "results.db")
	if err := sqlite.Write(name, t); err != nil {
		return err
	}
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = io.Copy(w, f)
	return err
}

// StatusOptions are the flags and arguments of status.
type StatusOptions struct{ Dir string }

func status(a *cli.App) *cobra.Command {
	return &cobra.Command{Use: "status DIR", Short: "Show how far a sweep is",
		Example: "  simccl sweep status results",
		Args:    cli.Exactly("DIR"),
		RunE:    cli.RunOf(a, func(args []string) cli.Runner { return &StatusOptions{args[0]} })}
}

// Run prints the progress of the sweep.
func (o *StatusOptions) Run(_ context.Context, a *cli.App) error {
	s, err := sweep.StatusOf(a.Path(o.Dir))
	if err != nil {
		return err
	}
	if a.JSON {
		return a.PrintJSON(s)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%d points: %d done, %d failed, %d left, %.1f s of CPU\n", s.Points, s.Done, s.Failed,
		s.Left, s.CPU)
	for _, p := range s.Parts {
		fmt.Fprintf(&b, "  %-40s %6d done %6d failed %8.1f s\n", p.File, p.Done, p.Failed, p.CPU)
	}
	if s.Torn > 0 {
		fmt.Fprintf(&b, "%d lines were cut off; their points run again\n", s.Torn)
	}
	if s.Example != "" {
		fmt.Fprintf(&b, "first error: %s\n", s.Example)
	}
	return a.PrintText(b.String())
}
