// Package replay holds the command replay: recorded jobs on any machine.
//
// What it must not know: how files are read, how jobs are simulated.
package replay

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/simccl/simccl/internal/cli"
	"github.com/simccl/simccl/internal/cli/workload"
	"github.com/simccl/simccl/internal/fail"
	"github.com/simccl/simccl/internal/replay"
	"github.com/simccl/simccl/internal/session"
	"github.com/simccl/simccl/scenario"
	"github.com/simccl/simccl/workload/load"
	"github.com/simccl/simccl/workload/variant"
	"github.com/spf13/cobra"
)

// flags are the options of replay.
type flags struct {
	machine  cli.Machine
	jobs     workload.Flags
	fidelity string
	host     string
	scale    string
	slow     []string
	trace    string
	variants []string
	compare  bool
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
away, a factor scales it. --scale dp=N makes data parallel groups N ranks large.
--variant changes what a recording allows to: buckets of DDP (bucket=25MB, no-sync),
a pipeline (schedule=gpipe|1f1b, microbatches=4), shares of experts (skew=40,30,20,10).`,
		Example: "  simccl replay recording --compare\n  simccl replay recording --host ideal --topo dgx-b200 --nodes 2 --trace out.json.gz",
		Args:    cobra.MinimumNArgs(1),
		RunE:    func(cmd *cobra.Command, args []string) error { return run(cmd, a, &f, args) }}
	f.machine.Register(c)
	f.machine.RegisterClass(c)
	f.jobs.Add(c)
	c.Flags().StringVar(&f.fidelity, "fidelity", "share", "share (calls simulated once, sharing links and GPUs), step (all plans in one engine) or alpha (NCCL's formula)")
	c.Flags().StringVar(&f.host, "host", "recorded", "the host's time: recorded, ideal (none) or a factor")
	c.Flags().StringVar(&f.scale, "scale", "", "`dp=N`: data parallel groups of N ranks")
	c.Flags().StringArrayVar(&f.slow, "straggler", nil, "`RANK=FACTOR`: compute of a rank takes that much longer; repeatable")
	c.Flags().StringVar(&f.trace, "trace", "", "write the timeline to `FILE` (.json, .json.gz, .pftrace)")
	c.Flags().StringArrayVar(&f.variants, "variant", nil, "`K=V`: bucket=25MB, no-sync, schedule=gpipe|1f1b, microbatches=4 or skew=40,30,20,10; repeatable")
	c.Flags().BoolVar(&f.compare, "compare", false, "each call beside what was recorded")
	return c
}

// options are what the flags say.
func (f *flags) options() (o replay.Options, err error) {
	if o.Fidelity, err = session.ParseFidelity(f.fidelity); err != nil {
		return o, fail.Usage("--fidelity: %v", err)
	}
	switch f.host {
	case "recorded":
		o.Host = 1
	case "ideal":
	default:
		if o.Host, err = strconv.ParseFloat(f.host, 64); err != nil || !(o.Host >= 0 && o.Host <= 1000) {
			return o, fail.Usage("--host %s: write recorded, ideal or a factor from 0 to 1000", f.host)
		}
	}
	if f.scale != "" {
		n, ok := strings.CutPrefix(f.scale, "dp=")
		if o.Replicas, err = strconv.Atoi(n); !ok || err != nil || o.Replicas < 1 {
			return o, fail.Usage("--scale %s: write dp=N; other groups are part of the recorded work, workload gen makes jobs of other sizes", f.scale)
		}
	}
	for _, s := range f.slow {
		rank, factor, ok := strings.Cut(s, "=")
		r, err1 := strconv.Atoi(rank)
		x, err2 := strconv.ParseFloat(factor, 64)
		if !ok || err1 != nil || err2 != nil {
			return o, fail.Usage("--straggler %s: write RANK=FACTOR, 3=1.2", s)
		}
		if o.Slow == nil {
			o.Slow = map[int]float64{}
		}
		o.Slow[r] = x
	}
	return o, nil
}

func run(cmd *cobra.Command, a *cli.App, f *flags, args []string) error {
	o, err := f.options()
	if err != nil {
		return err
	}
	j, err := workload.Read(a, args, f.jobs)
	if err != nil {
		return err
	}
	if j, err = f.vary(j); err != nil {
		return err
	}
	p, err := replay.Change(j.Program, o)
	if err != nil {
		return fail.Argument(err)
	}
	spec, err := f.spec(a, j, p.Ranks())
	if err != nil {
		return err
	}
	spec.Outputs.Trace = f.trace
	site, err := scenario.Load(&spec, a.Options(nil))
	if err != nil {
		return cli.AsFlags(err)
	}
	m, err := site.Session(&spec)
	if err != nil {
		return cli.AsFlags(err)
	}
	r, res, err := replay.Run(cmd.Context(), j, p, m, o)
	if err != nil {
		return err
	}
	if f.trace != "" {
		if err := site.TraceJob(&spec, a.Options(nil), res); err != nil {
			return cli.AsFlags(err)
		}
		a.WroteOf(f.trace, "trace", "open it in https://ui.perfetto.dev")
	}
	if a.JSON {
		return a.PrintJSON(r)
	}
	return r.WriteText(a.Out, f.compare)
}

// vary makes the variant that the flags ask for. What was recorded is not of it.
func (f *flags) vary(j *load.Job) (*load.Job, error) {
	spec, err := variant.Parse(f.variants)
	if err != nil || !spec.Any() {
		return j, fail.Argument(err)
	}
	p, notes, err := variant.Apply(j.Program, spec)
	if err != nil {
		return nil, fail.Input(err)
	}
	q := *j
	q.Program, q.Rebuilt, q.Notes = p, nil, append(slices.Clone(j.Notes), notes...)
	return &q, nil
}

// spec is the machine that the flags name, or that of the recording.
func (f *flags) spec(a *cli.App, j *load.Job, ranks int) (scenario.Spec, error) {
	spec, err := f.machine.Spec(a)
	if err != nil {
		return spec, err
	}
	if f.machine.NCCL == "" && f.machine.LibNCCL == "" && j.Meta.NCCL != "" {
		if version, err := a.Release(j.Meta.NCCL, ""); err == nil {
			spec.NCCL.Version = version
		}
	}
	if f.machine.Topo != "" || f.machine.Nodes != 0 {
		return spec, nil
	}
	note, err := replay.Machine(&spec, &j.Meta, ranks)
	if err != nil {
		return spec, cli.AsFlags(err)
	}
	fmt.Fprintf(a.Err, "simccl: %s\n", note)
	return spec, nil
}
