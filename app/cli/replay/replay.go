// Package replay holds the command replay: recorded jobs on any machine.
//
// What it must not know: how files are read, how jobs are simulated.
package replay

import (
	"fmt"
	"strings"

	"github.com/simccl/simccl/app/cli"
	table "github.com/simccl/simccl/app/cli/flags"
	"github.com/simccl/simccl/app/cli/workload"
	"github.com/simccl/simccl/app/report/job"
	"github.com/simccl/simccl/internal/fail"
	"github.com/simccl/simccl/internal/newfile"
	"github.com/simccl/simccl/study/replay"
	"github.com/simccl/simccl/trace/nccl"
	"github.com/spf13/cobra"
)

// flags are the options of replay.
type flags struct {
	choice
	jobs    workload.Flags
	trace   string
	report  string
	versus  []string
	compare bool
}

// Command is "replay".
func Command(a *cli.App) *cobra.Command {
	var f flags
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
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return f.run(cmd, a, args) }}
	f.register(c)
	f.jobs.Add(c)
	table.Register(c.Flags(), table.In("", table.Of(&f.trace, "trace", "", "",
		"write the timeline to `FILE` (.json, .json.gz, .pftrace)", "outputs.trace")))
	c.Flags().StringVar(&f.report, "report", "",
		"write a page to `FILE`.html: iteration by rank, groups, calls, timeline")
	c.Flags().StringArrayVar(&f.versus, "vs", nil, "run it with these `OPTIONS` too, and compare; repeatable")
	c.Flags().BoolVar(&f.compare, "compare", false, "each call beside what was recorded")
	return c
}

func (f *flags) run(cmd *cobra.Command, a *cli.App, args []string) error {
	for _, out := range []struct{ flag, name string }{{"--trace", f.trace}, {"--report", f.report}} {
		if out.name != "" && !newfile.Possible(a.Path(out.name)) {
			return fail.File("%s %s: no such directory", out.flag, out.name)
		}
	}
	j, err := workload.Read(a, args, f.jobs)
	if err != nil {
		return err
	}
	defer nccl.CollectOften()() // what a large job holds stays until the end
	f.observe = f.trace != ""
	o, list, err := f.all(cmd, a, j)
	if err != nil {
		return err
	}
	if f.trace != "" {
		o.spec.Outputs.Trace = f.trace
		if err := o.site.TraceRanks(&o.spec, a.Options(nil), o.line, o.rank); err != nil {
			return a.AsFlags(err)
		}
		a.WroteOf(f.trace, "a timeline, ", "open it in https://ui.perfetto.dev")
	}
	if f.report != "" {
		if err := f.page(a, args, o, list); err != nil {
			return err
		}
	}
	if a.JSON {
		return a.PrintJSON(struct {
			*replay.Report
			Versus []replay.Versus `json:"vs,omitempty"`
		}{o.report, list})
	}
	if err := o.report.WriteText(a.Out, f.compare); err != nil || len(list) == 0 {
		return err
	}
	return o.report.WriteVersus(a.Out, list)
}

// page writes the page.
func (f *flags) page(a *cli.App, args []string, o *outcome, list []replay.Versus) error {
	w, err := newfile.Create(a.Path(f.report))
	if err != nil {
		return err
	}
	p := job.Page{Title: strings.Join(args, " "), Command: "simccl " + strings.Join(a.Args, " "),
		Machine: fmt.Sprintf("%d × %s", o.site.Cluster.NHosts(), o.site.Name),
		Rules:   o.site.Config.Rules.Version(), Program: a.Version, Times: o.site.Times(), Report: o.report,
		Timeline: o.line, Rank: o.rank, Versus: list}
	if err := w.Finish(p.Write(w)); err != nil {
		return err
	}
	a.Wrote(f.report, "open it in a browser")
	return nil
}
