// Package run has the commands that simulate one operation: run and its page (report), two runs compared
// (diff), runs as files (scenario), and networks simulated packet by packet without NCCL (network).
//
// What it must not know: how times are found.
package run

import (
	"bytes"
	"context"
	"slices"

	"github.com/simccl/simccl/app/cli"
	"github.com/simccl/simccl/app/cli/flags"
	"github.com/simccl/simccl/app/cli/jobs"
	schedulecmd "github.com/simccl/simccl/app/cli/schedule"
	"github.com/simccl/simccl/app/report/page"
	"github.com/simccl/simccl/app/report/sweep"
	"github.com/simccl/simccl/internal/fail"
	"github.com/simccl/simccl/internal/newfile"
	"github.com/simccl/simccl/nccltests"
	"github.com/simccl/simccl/nccltests/options"
	"github.com/simccl/simccl/plan/schedule"
	"github.com/simccl/simccl/scenario"
	"github.com/simccl/simccl/study/ncclog"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// RunOptions are the flags and arguments of run.
type RunOptions struct {
	Op        string // ignored with Scenario
	Machine   cli.Machine
	Test      cli.TestFlags // sizes, types and other flags with nccl-tests' letters
	Launch    string
	Fidelity  string
	Fold      string
	Skip      string
	Jitter    string
	Faults    []string
	Processes int
	NCCLLog   bool
	// ExplainMethod prints for each size which part of the operation was simulated, and why that suffices.
	ExplainMethod bool
	Seed          uint64
	Outputs       Outputs
	Scenario      string // a file in place of Op, machine and sizes
	Save          string // a scenario file to be written
	CSV           string
	Schedule      string // a file; empty: NCCL's own
	Kernel        string // in place of NCCL's choice
	Serving       scenario.Serving

	given *pflag.FlagSet // of a command line; nil: the values alone count
}

// Run returns `simccl run`.
func Run(a *cli.App) *cobra.Command {
	var r RunOptions
	c := &cobra.Command{Use: "run OP", Short: "Simulate a sweep of sizes and print nccl-tests' table",
		Long: `run simulates an operation over a sweep of sizes, by NCCL's own schedule, and
prints nccl-tests' table. OP is all_reduce, all_gather, reduce_scatter,
broadcast, reduce, sendrecv, alltoall, gather or scatter, with or without _perf,
or all_to_all_v, an alltoall of unequal parts (--counts, --imbalance). Sizes go
from 8 B to 1 GiB by a factor of 2, unless -b, -e, -f or -i say otherwise.

ep_dispatch, ep_combine (--experts, --top-k, --hidden, --tokens) and kv_transfer
(--from-tp, --to-tp, --layers, --block-tokens, --kv-bytes, --tokens) are
operations of serving, each of one size. --kernel takes one that is not NCCL's.

Flags with a letter are nccl-tests' own, with its meaning. simccl help lists the
topics that flags name.

--save-scenario FILE writes machine, operation and files as a scenario;
--scenario FILE runs one, in place of OP and flags. Its job (workload.job), where
it has one, runs as with replay.`,
		Example: `  simccl run all_reduce
  simccl run all_reduce_perf -b 8 -e 16M -f 8 -g 4 --topo topo.xml --nodes 4
  simccl run all_gather --sizes 96,1M --trace out.json.gz --ops flows.csv
  simccl run ep_dispatch --experts 256 --top-k 8 --hidden 7168 --tokens 128 --kernel deepep-ll`,
		Args: r.Arguments,
		RunE: func(cmd *cobra.Command, args []string) error {
			r.Take(args)
			return r.Run(cmd.Context(), a)
		}}
	r.Register(c)
	return c
}

// Arguments checks the arguments: OP, or none if there is a scenario.
func (r *RunOptions) Arguments(cmd *cobra.Command, args []string) error {
	if r.Scenario != "" {
		return cli.Exactly()(cmd, args)
	}
	return cli.Exactly("OP")(cmd, args)
}

// Take stores the arguments.
func (r *RunOptions) Take(args []string) {
	if len(args) > 0 {
		r.Op = args[0]
	}
}

// Register declares all options of run: machine, network, sizes, times, outputs and serving.
func (r *RunOptions) Register(c *cobra.Command) {
	r.given = c.Flags()
	r.Machine.Register(c)
	r.Machine.RegisterClass(c)
	r.Machine.RegisterNetwork(c)
	r.Test.Register(c)
	r.RegisterTimes(c)
	r.RegisterSchedule(c)
	r.RegisterServing(c)
	r.Test.RegisterOutput(c)
	flags.Register(c.Flags(), r.Outputs.table(), flags.In(flags.Output,
		flags.Of(&r.CSV, "csv", "", "", "write a row for each size to the CSV `FILE`, for pandas"),
		flags.Of(&r.NCCLLog, "nccl-log", "", false, "print NCCL's log (NCCL_DEBUG=INFO) to standard error")),
		flags.In(flags.Model, flags.Of(&r.ExplainMethod, "explain-method", "", false,
			"print for each size what was simulated in place of all of it, and why")),
		flags.In("Scenario files",
			flags.Of(&r.Scenario, "scenario", "", "", "scenario `FILE` to run, in place of OP and options"),
			flags.Of(&r.Save, "save-scenario", "", "", "write the options as a scenario `FILE`")))
	flags.Most(c, "topo", "nodes", "min-bytes", "max-bytes", "nccl-version", "trace")
}

// RegisterTimes declares the flags that affect times, besides machine and operation.
func (r *RunOptions) RegisterTimes(c *cobra.Command) {
	flags.Register(c.Flags(), flags.In(cli.Launch,
		flags.Of(&r.Launch, "launch", "", "eager",
			"launch `MODE`: eager (one process a GPU, asynchronous launches) or graph "+
				"(device time of a CUDA graph)", "engine.launch"),
		flags.Of(&r.Processes, "procs", "", 0,
			"`N` processes on each node, each with -t threads (default one a GPU; with "+
				"-t one)", "engine.processes"),
	), flags.In(flags.Model,
		flags.Of(&r.Fidelity, "fidelity", "", "",
			"`LEVEL` of detail: alpha (NCCL's own cost model), step (an ideal network) "+
				"or flow (the network of --fabric) (default flow with a fabric, else step)",
			"engine.fidelity"),
		flags.Of(&r.Faults, "fault", "", nil,
			"`FAULT` of machine or network: rank=3:slow=1.5, nic=node0/2:loss=0.001, "+
				"link=leaf0~spine1:down, gpu=node0/3:absent, … (simccl help faults); repeatable",
			"network.faults"),
		flags.Of(&r.Jitter, "jitter", "", "drawn",
			"jitter of up to 72 ranks, `MODE` drawn (from --seed) or off (exact "+
				"lockstep; large sizes within a node come out up to 18 % slower)", "engine.jitter"),
		flags.Of(&r.Seed, "seed", "", 0,
			"`SEED` of everything random: one draw of hashed routes (default 1; where hashed "+
				"routes bind, the median of several draws)"),
		flags.Of(&r.Fold, "fold", "", "auto",
			"folding of equivalent ranks, `MODE` exact (equal ranks are simulated "+
				"once, without an error), near (nearly equal ones too), off, or auto (exact; near above 512 "+
				"ranks and in large rings, if needed)", "engine.fold"),
		flags.Of(&r.Skip, "skip", "", "auto",
			"skipping of what repeats, `MODE` auto (periods of a steady state are counted, "+
				"with the same result; with jitter a window is simulated, within a margin that the table "+
				"says) or off", "engine.skip"),
	))
}

// RegisterSchedule declares the option of plans that are not NCCL's.
func (r *RunOptions) RegisterSchedule(c *cobra.Command) {
	flags.Register(c.Flags(), flags.In(flags.Model, flags.Of(&r.Schedule, "schedule", "", "",
		"schedule `FILE` (MSCCL XML, MSCCL++ JSON) to simulate in place of NCCL's, with NCCL's beside it")))
}

// beside lists the flags of run that a scenario does not contain.
var beside = []string{"scenario", "save-scenario", "schedule", "columns", "output-file", "nccl-log",
	"explain-method", "report", "figures", "measured", "iters", "warmup-iters", "env", "no-env", "json"}

// tables lists the flags of beside that apply to a table of sizes, which a job does not have.
var tables = []string{"columns", "output-file", "nccl-log", "explain-method", "report", "figures", "measured",
	"iters",
	"warmup-iters", "save-scenario"}

// Run simulates the operation, or the job of the scenario, over all sizes and prints nccl-tests' table.
func (r *RunOptions) Run(ctx context.Context, a *cli.App) error {
	r.Test.Settle(r.Launch == "graph" || r.Test.Graph > 0, a.Warn)
	spec, placed, err := r.spec(a)
	if err != nil {
		return err
	}
	if spec.Workload.IsJob() {
		return r.job(ctx, a, spec, placed)
	}
	if scenario.OfServing(spec.Workload.Op) {
		return r.serving(ctx, a, spec, placed)
	}
	s, err := r.prepare(a, spec, placed)
	if err != nil {
		return err
	}
	return s.Run(ctx)
}

// job runs the job of a scenario file.
func (r *RunOptions) job(ctx context.Context, a *cli.App, spec scenario.Spec,
	placed func(error) error) error {
	for _, name := range tables {
		if r.given != nil && r.given.Changed(name) {
			return fail.Usage("--%s: the scenario has a job, which has no table of sizes; leave it out", name)
		}
	}
	return jobs.ReplayScenario(ctx, a, spec, placed)
}

// named replaces the names of members in an error by names of flags.
func (r *RunOptions) named(err error) error { return flags.Name(r.given, err) }

// Prepared is a run that is ready to be simulated and printed.
type Prepared struct {
	*sweep.Table
	Running *scenario.Running

	app      *cli.App
	opt      *RunOptions
	measured []page.Measured     // for the page
	schedule *schedulecmd.Beside // nil for NCCL's own
}

// spec returns the Spec of a run; placed adds to errors about its members the name of the flag, or the
// position in the scenario file.
func (r *RunOptions) spec(a *cli.App) (s scenario.Spec, placed func(error) error, err error) {
	if r.Scenario == "" {
		s, err = r.Spec(a)
		return s, r.named, err
	}
	if r.given != nil {
		r.given.Visit(func(f *pflag.Flag) {
			if !slices.Contains(beside, f.Name) && err == nil {
				err = fail.Usage("--%s: the scenario %s says it; leave one of them out", f.Name, r.Scenario)
			}
		})
	}
	if err != nil {
		return s, nil, err
	}
	if s, placed, err = a.ReadScenario(r.Scenario); err == nil && len(s.Grid) > 0 {
		n, _ := s.Points()
		err = fail.Usage("--scenario %s: has a grid of %d points; run takes one", r.Scenario, n)
	}
	return s, placed, err
}

// Prepare reads and checks all that the options name, before time is spent on simulation.
func (r *RunOptions) Prepare(a *cli.App) (*Prepared, error) {
	spec, placed, err := r.spec(a)
	if err != nil {
		return nil, err
	}
	return r.prepare(a, spec, placed)
}

func (r *RunOptions) prepare(a *cli.App, spec scenario.Spec, placed func(error) error) (*Prepared, error) {
	s := &Prepared{app: a, opt: r}
	if err := r.check(); err != nil {
		return nil, err
	}
	columns, err := r.Test.ParseColumns()
	if err != nil {
		return nil, err
	}
	spec.Engine.Rivals = spec.Engine.Rivals || slices.ContainsFunc(columns, func(c sweep.Column) bool {
		return c.Rivals
	})
	minBW, err := options.MinBW(a.Getenv)
	if err != nil {
		return nil, err
	}
	names := flags.Names(r.given)
	for _, f := range spec.Outputs.Files() {
		if err := cli.Directory(names["outputs."+f.Member], f.Name); err != nil {
			return nil, err
		}
	}
	if err := r.load(s, spec, placed); err != nil {
		return nil, err
	}
	t := &r.Test
	s.Table, err = sweep.New(s.Running, nccltests.Config{Warmup: t.Warmup, Iters: t.Iters, AggIters: t.Agg,
		Check: t.Check, Graph: t.Graph, PerIter: t.PerIter != 0, PerIterSkip: t.Skip},
		s.Running.Site.Config.Rules.Release.Code())
	if err != nil {
		return nil, r.named(err)
	}
	s.Columns, s.Summary.MinBW, s.ExplainMethod = columns, minBW, r.ExplainMethod
	if r.Save != "" {
		if err := saveSpec(a, r.Save, spec); err != nil {
			return nil, err
		}
	}
	s.measured, err = s.readMeasured()
	return s, err
}

// load loads the machine, with the plans of the schedule, if there is one.
func (r *RunOptions) load(s *Prepared, spec scenario.Spec, placed func(error) error) (err error) {
	opt := s.app.Options(r.Machine.Found)
	var sched *schedule.Schedule
	if r.Schedule != "" {
		if sched, err = schedulecmd.Prove(s.app, r.Schedule); err != nil {
			return err
		}
		opt.Planner = schedulecmd.Planner(sched, r.Schedule)
	}
	if s.Running, err = scenario.Prepare(spec, opt); err != nil {
		return placed(err)
	}
	if sched != nil {
		s.schedule, err = schedulecmd.Compare(s.app, s.Running, spec, sched, r.Schedule)
	}
	return err
}

// check refuses values that mean nothing before anything is computed.
func (r *RunOptions) check() error {
	if err := r.Test.Counts(); err != nil {
		return r.named(err)
	}
	if err := r.Outputs.check(); err != nil {
		return err
	}
	if err := cli.Directory("-J", r.Test.Output); err != nil {
		return err
	}
	return r.named(r.Test.Simulated(r.Launch == "graph" || r.Test.Graph > 0))
}

// Run simulates all sizes and prints them.
func (s *Prepared) Run(ctx context.Context) error {
	n := len(s.Running.Lines())
	progress := s.app.Progress("sizes", n)
	defer progress.End()
	progress.Follow(func() float64 { return s.Running.Share() * float64(n) })
	p := sweep.Printer{Program: s.app.Version, Quiet: s.app.Quiet, Printing: progress.Clear,
		Done: progress.Step, Ended: progress.End, Begun: func() error {
			if !s.opt.NCCLLog {
				return nil
			}
			return ncclog.WriteRank(s.app.Err, s.Running.Site.Comm, 0)
		}}
	if !s.app.JSON {
		p.Out = s.app.Out
	}
	s.Running.Records = true // outputs are written next
	if err := s.Print(ctx, s.Running, p); err != nil {
		return err
	}
	if !s.app.JSON {
		if !s.app.Quiet {
			s.PrintNotes(s.app.Out)
		}
		if err := s.schedule.Print(ctx, s.app.Out); err != nil {
			return err
		}
	}
	if err := s.outputs(ctx); err != nil {
		return err
	}
	return s.Summary.BelowMinBW()
}

// outputs writes the requested files.
func (s *Prepared) outputs(ctx context.Context) error {
	progress := s.app.Progress("events", 0)
	defer progress.End()
	err := s.Running.Write(ctx, scenario.Listener{
		Phase: func(p scenario.Phase) {
			progress.Phase(p.Name, p.Counts)
			progress.Follow(p.Share)
			progress.Before(p.Later)
		},
		Wrote: func(w scenario.Written) {
			progress.End()
			wrote(s.app, w)
		}})
	progress.End()
	if err != nil {
		return s.opt.named(err)
	}
	if s.opt.Outputs.Report+s.opt.Outputs.Figures != "" {
		if err := s.writeReport(ctx); err != nil {
			return err
		}
	}
	if s.opt.CSV != "" {
		if err := s.writeCSV(); err != nil {
			return err
		}
	}
	return s.app.WriteJSON(s.Report(s.Running.Site, append([]string{"simccl"}, s.app.Args...)),
		s.opt.Test.Output, s.app.JSON)
}

func (s *Prepared) writeCSV() error {
	var b bytes.Buffer
	if err := sweep.CSV(&b, s.Running.Result().Rows); err != nil {
		return err
	}
	if err := newfile.Write(s.app.Path(s.opt.CSV), b.Bytes()); err != nil {
		return fail.Input(err)
	}
	s.app.Wrote(s.opt.CSV, "pandas.read_csv reads it")
	return nil
}
