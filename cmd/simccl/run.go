package main

import (
	"bytes"
	"context"
	"slices"

	"github.com/simccl/simccl/app/cli"
	"github.com/simccl/simccl/app/cli/replay"
	schedulecmd "github.com/simccl/simccl/app/cli/schedule"
	"github.com/simccl/simccl/app/report/page"
	"github.com/simccl/simccl/app/report/sweep"
	"github.com/simccl/simccl/internal/newfile"
	"github.com/simccl/simccl/nccltests"
	"github.com/simccl/simccl/nccltests/options"
	"github.com/simccl/simccl/scenario"
	"github.com/simccl/simccl/study/ncclog"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// runFlags are the options of run other than machine and sizes.
type runFlags struct {
	machine  cli.Machine
	test     testFlags
	launch   string
	fidelity string
	fold     string
	skip     string
	jitter   string
	faults   []string
	procs    int
	ncclLog  bool
	seed     uint64
	out      outputFlags
	from     string // --scenario
	save     string // --save-scenario
	csv      string // --csv
	schedule string

	explainMethod bool
}

func newRun(a *app) *cobra.Command {
	var r runFlags
	c := &cobra.Command{Use: "run OP", Short: "Simulate a sweep of sizes and print nccl-tests' table",
		Long: `run simulates an operation over a sweep of sizes, by NCCL's own schedule, and
prints nccl-tests' table. OP is all_reduce, all_gather, reduce_scatter,
broadcast, reduce, sendrecv, alltoall, gather, scatter, with or without _perf, or
all_to_all_v: an alltoall of unequal parts (--counts, --imbalance).
Options have nccl-tests' letters; without -b, -e, -f, -i: 8 B to 1 GiB, factor 2.

--scenario FILE takes machine, operation and files from a scenario file in place
of OP and options, and runs its job (workload.job), where it has one, as replay
does; --save-scenario FILE writes what the options meant as one.`,
		Example: `  simccl run all_reduce
  simccl run all_reduce_perf -b 8 -e 16M -f 8 -g 4 --topo topo.xml --nodes 4
  simccl run all_gather --sizes 96,1M --trace out.json.gz --ops flows.csv`,
		Args: r.operation,
		RunE: func(cmd *cobra.Command, args []string) error {
			r.test.Settle(r.launch == "graph" || r.test.Graph > 0, a.Warn)
			spec, placed, err := r.scenarioSpec(a, cmd, args)
			if err != nil {
				return err
			}
			if spec.Workload.Job != "" {
				return replay.Scenario(cmd, &a.App, spec, placed)
			}
			s, err := r.prepareSpec(a, spec, placed)
			if err != nil {
				return err
			}
			return s.run(cmd.Context())
		}}
	r.register(c)
	return c
}

// operation wants OP, or a scenario in its place.
func (r *runFlags) operation(cmd *cobra.Command, args []string) error {
	if r.from != "" {
		return cli.Exactly()(cmd, args)
	}
	return cli.Exactly("OP")(cmd, args)
}

// register adds all options of a run.
func (r *runFlags) register(c *cobra.Command) {
	r.machine.Register(c)
	r.machine.RegisterClass(c)
	r.machine.RegisterNetwork(c)
	r.test.register(c)
	r.registerTimes(c.Flags())
	c.Flags().BoolVar(&r.ncclLog, "nccl-log", false, "print what NCCL_DEBUG=INFO would show, on standard error")
	c.Flags().BoolVar(&r.explainMethod, "explain-method", false,
		"say for each size what was simulated in place of all of it, and why")
	r.out.register(c.Flags())
	c.Flags().StringVar(&r.csv, "csv", "", "write a row for each size to the CSV `FILE`, for pandas")
	c.Flags().StringVar(&r.from, "scenario", "", "run the scenario `FILE` in place of OP and options")
	r.registerSchedule(c.Flags())
	c.Flags().StringVar(&r.save, "save-scenario", "", "write what the options meant as a scenario `FILE`")
}

// registerTimes adds what times depend on other than machine and operation.
func (r *runFlags) registerTimes(f *pflag.FlagSet) {
	f.StringVar(&r.launch, "launch", "eager", "eager: one process a GPU, asynchronous launches; graph: device time alone")
	f.StringVar(&r.fidelity, "fidelity", "", "level of detail: alpha, NCCL's own formula; step, an ideal network; flow, the network of --fabric (default flow with one, else step)")
	f.StringVar(&r.fold, "fold", "auto", "how equivalent ranks are folded: auto (merge equivalent ranks exactly; above 512 ranks, and in large rings, also merge nearly equivalent ones if needed), exact, near, off")
	f.StringVar(&r.skip, "skip", "auto", "what is done where a run repeats itself: auto (periods are counted, with the same result; with jitter a window is simulated, within a margin that the table says), off (all is simulated)")
	f.StringVar(&r.jitter, "jitter", "drawn", "jitter of up to 72 ranks: drawn (from --seed), off (exact lockstep; large sizes within a node come out up to 18 % slower)")
	f.StringArrayVar(&r.faults, "fault", nil, "what is `BROKEN`: rank=3:slow=1.5, nic=node0/mlx5_3:loss=0.001, link=leaf0~spine1:down, gpu=node0/3:absent; also latency=US; repeatable")
	f.IntVar(&r.procs, "procs", 0, "processes of a node, each with -t threads (default one a GPU; with -t one)")
	f.Uint64Var(&r.seed, "seed", 0, "`SEED` of everything random: one draw of hashed routes (default 1; where hashed routes bind, the median of several draws)")
}

// beside are the options of run that a scenario does not hold.
var beside = []string{"scenario", "save-scenario", "schedule", "columns", "output-file", "nccl-log", "explain-method", "report", "measured", "iters", "warmup-iters", "env", "no-env", "json"}

// tableRun is a run that prints a table: a simulation, or a bench on CPUs.
type tableRun struct {
	app   *app
	flags *runFlags
	r     *scenario.Running
	*sweep.Table
	measured []page.Measured     // for the page
	schedule *schedulecmd.Beside // nil for NCCL's own
}

// scenarioSpec is the Spec of a run; placed gives errors about its members the
// name of their option, or their place in the file.
func (r *runFlags) scenarioSpec(a *app, cmd *cobra.Command, args []string) (s scenario.Spec, placed func(error) error, err error) {
	if r.from == "" {
		s, err = r.spec(a, cmd, args[0])
		return s, cli.AsFlags, err
	}
	cmd.Flags().Visit(func(f *pflag.Flag) {
		if !slices.Contains(beside, f.Name) && err == nil {
			err = usage("--%s: the scenario %s says it; leave one of them out", f.Name, r.from)
		}
	})
	if err != nil {
		return s, nil, err
	}
	if s, placed, err = a.readScenario(r.from); err == nil && len(s.Grid) > 0 {
		n, _ := s.Points()
		err = usage("--scenario %s: has a grid of %d points; run takes one", r.from, n)
	}
	return s, placed, err
}

func (r *runFlags) prepare(a *app, cmd *cobra.Command, args []string) (*tableRun, error) {
	spec, placed, err := r.scenarioSpec(a, cmd, args)
	if err != nil {
		return nil, err
	}
	return r.prepareSpec(a, spec, placed)
}

func (r *runFlags) prepareSpec(a *app, spec scenario.Spec, placed func(error) error) (*tableRun, error) {
	s := &tableRun{app: a, flags: r}
	if err := r.check(); err != nil {
		return nil, err
	}
	columns, err := r.test.parseColumns()
	if err != nil {
		return nil, err
	}
	spec.Engine.Rivals = spec.Engine.Rivals || slices.ContainsFunc(columns, func(c sweep.Column) bool { return c.Rivals })
	minBW, err := options.MinBW(a.Getenv)
	if err != nil {
		return nil, err
	}
	for _, f := range spec.Outputs.Files() {
		if err := directory(cli.FlagNames["outputs."+f.Member], f.Name); err != nil {
			return nil, err
		}
	}
	if s.r, err = scenario.Prepare(spec, a.Options(r.machine.Found)); err != nil {
		return nil, placed(err)
	}
	if r.schedule != "" {
		if s.schedule, err = schedulecmd.Use(&a.App, s.r, r.schedule); err != nil {
			return nil, err
		}
	}
	t := &r.test
	s.Table, err = sweep.New(s.r, nccltests.Config{Warmup: t.Warmup, Iters: t.Iters, AggIters: t.Agg, Check: t.Check, Graph: t.Graph, PerIter: t.PerIter != 0, PerIterSkip: t.Skip}, s.r.Site.Config.Rules.Release.Code())
	if err != nil {
		return nil, cli.AsFlags(err)
	}
	s.Columns, s.Summary.MinBW, s.ExplainMethod = columns, minBW, r.explainMethod
	if r.save != "" {
		if err := a.saveScenario(r.save, spec); err != nil {
			return nil, err
		}
	}
	s.measured, err = s.readMeasured()
	return s, err
}

// check refuses values that mean nothing before anything is computed.
func (r *runFlags) check() error {
	if err := r.test.Counts(); err != nil {
		return cli.AsFlags(err)
	}
	if err := r.out.check(); err != nil {
		return err
	}
	if err := directory("-J", r.test.Output); err != nil {
		return err
	}
	return cli.AsFlags(r.test.Simulated(r.launch == "graph" || r.test.Graph > 0))
}

// run goes through all sizes and prints.
func (s *tableRun) run(ctx context.Context) error {
	n := len(s.r.Lines())
	progress := s.app.Progress("sizes", n)
	defer progress.End()
	progress.Follow(func() float64 { return s.r.Share() * float64(n) })
	p := sweep.Printer{Program: version, Printing: progress.Clear, Done: progress.Step, Ended: progress.End, Begun: func() error {
		if !s.flags.ncclLog {
			return nil
		}
		return ncclog.WriteRank(s.app.Err, s.r.Site.Comm, 0)
	}}
	if !s.app.JSON {
		p.Out = s.app.Out
	}
	s.r.Records = true // outputs are written next
	if err := s.Print(ctx, s.r, p); err != nil {
		return err
	}
	if !s.app.JSON {
		s.PrintNotes(s.app.Out)
		if err := s.schedule.Print(ctx, s.app.Out); err != nil {
			return err
		}
	}
	if err := s.outputs(ctx); err != nil {
		return err
	}
	return s.Summary.BelowMinBW()
}

// outputs writes the files that were asked for.
func (s *tableRun) outputs(ctx context.Context) error {
	progress := s.app.Progress("events", 0)
	defer progress.End()
	err := s.r.Write(ctx, scenario.Listener{
		Phase: func(p scenario.Phase) {
			progress.Phase(p.Name, p.Counts)
			progress.Follow(p.Share)
			progress.Before(p.Later)
		},
		Wrote: func(w scenario.Written) {
			progress.End()
			s.app.wroteOutput(w)
		}})
	progress.End()
	if err != nil {
		return cli.AsFlags(err)
	}
	if s.flags.out.report != "" {
		if err := s.writeReport(ctx); err != nil {
			return err
		}
	}
	if s.flags.csv != "" {
		if err := s.writeCSV(); err != nil {
			return err
		}
	}
	return s.app.WriteJSON(s.Report(s.r.Site, append([]string{"simccl"}, s.app.Args...)), s.flags.test.Output, s.app.JSON)
}

// writeCSV writes the rows for a table program.
func (s *tableRun) writeCSV() error {
	var b bytes.Buffer
	if err := sweep.CSV(&b, s.r.Result().Rows); err != nil {
		return err
	}
	if err := newfile.Write(s.app.Path(s.flags.csv), b.Bytes()); err != nil {
		return input(err)
	}
	s.app.Wrote(s.flags.csv, "pandas.read_csv reads it")
	return nil
}

func (r *runFlags) registerSchedule(f *pflag.FlagSet) {
	f.StringVar(&r.schedule, "schedule", "", "simulate the schedule `FILE` (MSCCL XML, MSCCL++ JSON) in place of NCCL's, with NCCL's beside it")
}
