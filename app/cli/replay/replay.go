// Package replay holds the command replay: recorded jobs on any machine.
//
// What it must not know: how files are read, how jobs are simulated.
package replay

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/simccl/simccl/app/cli"
	"github.com/simccl/simccl/app/cli/workload"
	"github.com/simccl/simccl/app/report/jobpage"
	"github.com/simccl/simccl/internal/fail"
	"github.com/simccl/simccl/internal/newfile"
	"github.com/simccl/simccl/job/timeline"
	"github.com/simccl/simccl/scenario"
	"github.com/simccl/simccl/study/replay"
	"github.com/simccl/simccl/trace/nccl"
	programs "github.com/simccl/simccl/workload"
	"github.com/simccl/simccl/workload/load"
	"github.com/simccl/simccl/workload/transform"
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
	c := &cobra.Command{Use: "replay FILE|DIR...", Short: "Run a recorded job on a machine, and compare with what was recorded",
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
		Example: "  simccl replay recording --compare\n  simccl replay recording --host ideal --topo dgx-b200 --nodes 2 --trace out.json.gz\n" +
			"  simccl replay recording --vs NCCL_ALGO=Ring --vs \"dgx-h100 -g 2 --gpu H100\"\n  simccl replay recording --ideal all --report job.html",
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return f.run(cmd, a, args) }}
	f.register(c)
	f.jobs.Add(c)
	c.Flags().StringVar(&f.trace, "trace", "", "write the timeline to `FILE` (.json, .json.gz, .pftrace)")
	c.Flags().StringVar(&f.report, "report", "", "write a page to `FILE`.html: iteration by rank, groups, calls, timeline")
	c.Flags().StringArrayVar(&f.versus, "vs", nil, "run it with these `OPTIONS` too, and compare; repeatable")
	c.Flags().BoolVar(&f.compare, "compare", false, "each call beside what was recorded")
	return c
}

// outcome is a job that ran as a choice says.
type outcome struct {
	report *replay.Report
	line   *timeline.Timeline
	site   *scenario.Site
	spec   scenario.Spec
	rank   func(place int) string // what the rank at a place is called
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
	o, err := f.choice.run(cmd.Context(), a, j)
	if err != nil {
		return err
	}
	list, err := f.others(cmd, a, j, o.report)
	if err != nil {
		return err
	}
	if f.trace != "" {
		o.spec.Outputs.Trace = f.trace
		if err := o.site.TraceRanks(&o.spec, a.Options(nil), o.line, o.rank); err != nil {
			return cli.AsFlags(err)
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
	p := jobpage.Page{Title: strings.Join(args, " "), Command: "simccl " + strings.Join(a.Args, " "), Machine: fmt.Sprintf("%d × %s", o.site.Cluster.NHosts(), o.site.Name),
		Rules: o.site.Config.Rules.Version(), Program: a.Version, Times: o.site.Times(), Report: o.report, Timeline: o.line, Rank: o.rank, Versus: list}
	if err := w.Finish(p.Write(w)); err != nil {
		return err
	}
	a.Wrote(f.report, "open it in a browser")
	return nil
}

// run runs the job as the choice says. With --host auto a job whose GPUs turn out to wait
// for the host runs again, with the host as it is estimated.
func (f *choice) run(ctx context.Context, a *cli.App, j *load.Job) (*outcome, error) {
	o, err := f.options()
	if err != nil {
		return nil, err
	}
	if j, err = f.vary(j); err != nil {
		return nil, err
	}
	if err := f.unprofiled(j, &o); err != nil {
		return nil, err
	}
	out, err := f.simulate(ctx, a, j, o)
	if err != nil || f.host != "auto" || out.report.Limit != replay.LimitHost {
		return out, err
	}
	o.Hosts, _ = replay.Unprofiled(j)
	quiet := *a // the line on the machine is out
	quiet.Err = io.Discard
	return f.simulate(ctx, &quiet, j, o)
}

// simulate runs the job with these options.
func (f *choice) simulate(ctx context.Context, a *cli.App, j *load.Job, o replay.Options) (*outcome, error) {
	p, scaled, err := f.onGPU(j)
	if err == nil {
		p, err = replay.Change(p, o)
	}
	if err == nil && f.place != "" {
		p, o.At, err = replay.Place(p, f.place)
	}
	if err != nil {
		return nil, fail.Argument(err)
	}
	out := &outcome{rank: func(place int) string { return fmt.Sprintf("rank %d", place) }}
	if o.At != nil {
		ranks := make([]int, len(o.At))
		for r, place := range o.At {
			ranks[place] = r
		}
		out.rank = func(place int) string { return fmt.Sprintf("rank %d", ranks[place]) }
	}
	if out.spec, err = f.spec(a, j, p.Ranks()); err != nil {
		return nil, err
	}
	if out.site, err = scenario.Load(&out.spec, a.Options(nil)); err != nil {
		return nil, cli.AsFlags(err)
	}
	m, err := out.site.Session(&out.spec)
	if err != nil {
		return nil, cli.AsFlags(err)
	}
	r, res, err := replay.Run(ctx, j, p, m, o)
	var wrong *programs.Problem
	if errors.As(err, &wrong) {
		return nil, fail.Input(err)
	}
	if err != nil {
		return nil, err
	}
	out.report, out.line = r, timeline.Of(res)
	if r.GPU = scaled; scaled != nil {
		r.Notes = append(r.Notes, scaled.String())
	} else if f.machine.Topo != "" && j.Meta.GPU != "" {
		r.Notes = append(r.Notes, fmt.Sprintf("computing takes what it took on %s; --gpu NAME scales it", j.Meta.GPU))
	}
	var unknown *transform.Error
	if err := r.Free(ctx, p, m, o, f.ideal); errors.As(err, &unknown) {
		return nil, fail.Argument(fmt.Errorf("--ideal: %w", err))
	} else if err != nil {
		return nil, err
	}
	return out, nil
}

// spec is the machine that the flags name, or that of the recording.
func (f *choice) spec(a *cli.App, j *load.Job, ranks int) (scenario.Spec, error) {
	spec, err := f.machine.Spec(a)
	if err != nil {
		return spec, err
	}
	if f.machine.NCCL == "" && f.machine.LibNCCL == "" && j.Meta.NCCL != "" {
		spec.NCCL.Version = a.Recorded(j.Meta.NCCL)
	}
	if f.machine.Topo != "" || f.machine.Nodes != 0 {
		return spec, nil
	}
	meta := j.Meta
	if f.gpu != "" { // the machine is that of the GPUs which compute
		_, to := f.gpus(j)
		meta.GPU = cmp.Or(replay.MachineName(to), meta.GPU)
	}
	note, err := replay.Machine(&spec, &meta, ranks)
	if err != nil {
		return spec, cli.AsFlags(err)
	}
	if meta.GPU != j.Meta.GPU {
		note = strings.Replace(note, "the recording's "+meta.GPU, "--gpu", 1)
	}
	fmt.Fprintf(a.Err, "simccl: %s\n", note)
	return spec, nil
}
