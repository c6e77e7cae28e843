package jobs

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/simccl/simccl/app/cli"
	"github.com/simccl/simccl/app/cli/flags"
	"github.com/simccl/simccl/app/report/page"
	"github.com/simccl/simccl/internal/fail"
	"github.com/simccl/simccl/internal/newfile"
	"github.com/simccl/simccl/study/replay"
	"github.com/simccl/simccl/trace/nccl"
	"github.com/spf13/cobra"
)

// ReplayOptions are the flags and arguments of replay.
type ReplayOptions struct {
	Choice
	Job     Files
	Trace   string // files to be written; empty: none
	Report  string
	Figures string   // directory of the page's figures, as SVG and PDF
	Versus  []string // options of further runs, as a command line has them
	Shared  []string // options that these begin with, a word each
	Compare bool     // print each call with its recorded time
}

// Replay returns `simccl replay`.
func Replay(a *cli.App) *cobra.Command {
	var o ReplayOptions
	c := &cobra.Command{Use: "replay FILE|DIR...",
		Short: "Run a recorded job on a machine, and compare with what was recorded",
		Long: `replay reads a job as workload show does (Kineto traces of all ranks, execution
traces, Flight Recorder, logs, SimAI, Chakra, GOAL, …), runs it on the machine of
--topo, and says what an iteration takes, how much of it communication costs, and
by which groups. Without --topo the machine is the built-in one of the recording's
GPUs.

--host recorded keeps what the host took between launches (default), ideal takes it
away, a factor scales it, unprofiled is an estimate of what it takes without a
profiler, auto is that where the host is the limit then, and ideal where it is not:
what compares with steps that no profiler slows. --scale dp=N makes data parallel groups N ranks large.
--variant changes what a recording allows to: buckets of DDP (bucket=25MB, no-sync),
a pipeline (schedule=gpipe|1f1b, microbatches=4), shares of experts (skew=40,30,20,10).

--vs runs the job with other options too, and prints both side by side: K=V is short
for --env K=V, FILE.xml and names of topo list for --topo, FILE.json for --fabric, a
version such as 2.21.5 for --nccl-version.`,
		Example: "  simccl replay recording --compare\n" +
			"  simccl replay recording --host ideal --topo dgx-b200 --nodes 2 --trace out.json.gz\n" +
			"  simccl replay recording --vs NCCL_ALGO=Ring --vs \"dgx-h100 -g 2 --gpu H100\"\n" +
			"  simccl replay recording --ideal all --report job.html",
		Args: cli.Arguments(1, "FILE|DIR..."),
		RunE: func(cmd *cobra.Command, args []string) error {
			side := &cobra.Command{}
			new(Choice).register(side)
			o.Job.Names, o.Shared = args, cli.Given(cmd, side)
			return o.Run(cmd.Context(), a)
		}}
	o.register(c)
	o.Job.Register(c)
	flags.Register(c.Flags(), flags.In("",
		flags.Of(&o.Trace, "trace", "", "",
			"write the timeline to `FILE` (.json, .json.gz, .pftrace)", "outputs.trace"),
		flags.Of(&o.Report, "report", "", "",
			"write a page to `FILE`.html: iteration by rank, groups, calls, timeline"),
		flags.Of(&o.Figures, "figures", "", "",
			"write figures for papers to `DIR`, as SVG and PDF: parts of an iteration, calls by size"),
		flags.Of(&o.Versus, "vs", "", nil, "run it with these `OPTIONS` too, and compare; repeatable"),
		flags.Of(&o.Compare, "compare", "", false, "each call beside what was recorded")))
	return c
}

// Run simulates the job and prints its times.
func (o *ReplayOptions) Run(ctx context.Context, a *cli.App) error {
	for _, out := range []struct{ flag, name string }{{"--trace", o.Trace}, {"--report", o.Report}} {
		if out.name != "" && !newfile.Possible(a.Path(out.name)) {
			return fail.File("%s %s: no such directory", out.flag, out.name)
		}
	}
	j, err := o.Job.Read(a)
	if err != nil {
		return err
	}
	defer nccl.CollectOften()() // the data of a large job is live until the end
	o.observe = o.Trace != ""
	first, list, err := o.all(ctx, a, j)
	if err != nil {
		return err
	}
	if o.Trace != "" {
		first.spec.Outputs.Trace = o.Trace
		if err := first.site.TraceRanks(&first.spec, a.Options(nil), first.line, first.rank); err != nil {
			return a.AsFlags(err)
		}
		a.WroteOf(o.Trace, "a timeline, ", "open it in https://ui.perfetto.dev")
	}
	if o.Report+o.Figures != "" {
		if err := o.page(a, first, list); err != nil {
			return err
		}
	}
	if a.JSON {
		return a.PrintJSON(struct {
			*replay.Report
			Versus []replay.Versus `json:"vs,omitempty"`
		}{first.report, list})
	}
	if err := first.report.WriteText(a.Out, o.Compare); err != nil || len(list) == 0 {
		return err
	}
	return first.report.WriteVersus(a.Out, list)
}

// page writes the page and the figures.
func (o *ReplayOptions) page(a *cli.App, first *outcome, list []replay.Versus) error {
	names := make([]string, len(o.Job.Names))
	for i, n := range o.Job.Names {
		names[i] = filepath.Base(n)
	}
	p := page.JobPage{Title: strings.Join(names, " "), Command: "simccl " + strings.Join(a.Args, " "),
		Machine: fmt.Sprintf("%d × %s", first.site.Cluster.NHosts(), first.site.Name),
		Rules:   first.site.Config.Rules.Version(), Program: a.Version, Times: first.site.Times(),
		Report: first.report, Timeline: first.line, Rank: first.rank, Versus: list}
	if o.Report != "" {
		if err := a.Save(o.Report, "open it in a browser", p.Write); err != nil {
			return err
		}
	}
	if o.Figures != "" {
		return a.SaveFigures(o.Figures, p.Figures())
	}
	return nil
}
