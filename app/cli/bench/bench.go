// Package bench has the commands about measured times: bench and bench verbs, which measure and verify
// operations on hardware; and calibrate, class, overlap and diagnose, about the machine classes that are
// fitted to them.
//
// What it must not know: how a backend runs an operation, how times are predicted and judged.
package bench

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	benchrun "github.com/simccl/simccl/app/bench"
	"github.com/simccl/simccl/app/cli"
	"github.com/simccl/simccl/app/cli/flags"
	schedulecmd "github.com/simccl/simccl/app/cli/schedule"
	"github.com/simccl/simccl/app/process"
	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/internal/fail"
	"github.com/simccl/simccl/nccltests"
	"github.com/simccl/simccl/nccltests/options"
	"github.com/simccl/simccl/plan/schedule"
	"github.com/simccl/simccl/real/bench"
	"github.com/simccl/simccl/real/team"
	"github.com/simccl/simccl/scenario"
	"github.com/simccl/simccl/trace/chrome"
	"github.com/simccl/simccl/trace/nccl"
	"github.com/spf13/cobra"
)

// Options are the flags and arguments of bench.
type Options struct {
	Op      string
	Machine cli.Machine
	Test    cli.TestFlags  // sizes, types and other flags with nccl-tests' letters
	Ask     bench.Request  // flags that are not nccl-tests'
	Place   cli.PlaceFlags // of this process among those of the run
	Detail  string         // of the trace
	// Schedule is a file whose plans are run; empty: NCCL's own.
	Schedule string
	// Open opens GPUs, as bench.OpenDevices does where it is nil.
	Open Opener

	sched *schedule.Schedule // the file of Schedule, parsed
}

// Opener opens the GPUs of a process.
type Opener func(
	context.Context, *bench.Spec, *team.Team, bench.DeviceConfig, bench.NewModel,
) (bench.Backend, error)

// Command returns `simccl bench`.
func Command(a *cli.App) *cobra.Command {
	var b Options
	c := &cobra.Command{Use: "bench OP", Short: "Measure an operation on hardware, and verify it",
		Long: `bench runs an operation over a sweep of sizes, checks every element of every
result, and prints nccl-tests' table; #wrong counts elements that are not what
they should be.

--backend nccl runs NVIDIA's libnccl.so.2; cuda runs kernels of our own over peer
memory: NCCL's schedule (--algo plan) or other algorithms, chosen by --algo or,
with auto, by measurement. A process drives -g GPUs, each from a thread of its
own: by default all, or one where there are several processes. --compare adds what
run predicts for this machine.

verbs, sockets and host run what NCCL would do, by its own schedule, in host
memory: every rank's programs on the CPU, every connection over InfiniBand verbs,
TCP sockets or (host) shared memory. Without --topo, every rank is a node of its
own there.

Every rank is a process where torchrun, Open MPI, PMI or Slurm started them, or
with --rank, --nranks and --root-address; otherwise this process has all ranks.
Flags with a letter are nccl-tests' own, with its meaning.`,
		Example: `  simccl bench all_reduce -b 1K -e 1G -f 4 --compare
  simccl bench all_gather --backend cuda -b 1M -e 1G -f 4 --launch graph --compare
  torchrun --no-python --nproc-per-node 4 simccl bench alltoall -b 1M -e 64M -f 2
  simccl bench all_reduce --backend sockets --nranks 4 -b 8 -e 64K -f 8
  simccl bench all_reduce --backend verbs --rank 1 --nranks 2 --root-address node0:29600`,
		Args: cli.Exactly("OP"),
		RunE: cli.RunWithOne(a, &b, &b.Op)}
	b.Register(c)
	c.AddCommand(verbs(a))
	return c
}

// Register declares the options of the backend, of nccl-tests, of the place of this process, and of the
// machine to compare with.
func (b *Options) Register(c *cobra.Command) {
	b.Machine.RunsNCCL = true
	flags.Register(c.Flags(), flags.In("Backend",
		flags.Of(&b.Ask.Backend, "backend", "", "nccl",
			"`BACKEND` that runs the operation: nccl or cuda on GPUs; host (memory "+
				"of this process), sockets or verbs on CPUs", "Backend"),
		flags.Of(&b.Ask.Algo, "algo", "", "auto",
			"`ALGORITHM` of the cuda backend: auto (the fastest), plan (NCCL's schedule) "+
				"or one of simccl help algorithms", "Algo"),
		flags.Of(&b.Ask.Library, "libnccl", "", "",
			"library `FILE` of NCCL (default $SIMCCL_LIBNCCL, else the loader's "+
				"libnccl.so.2)", "Library"),
		flags.Of(&b.Schedule, "schedule", "", "",
			"schedule `FILE` (MSCCL XML, MSCCL++ JSON) to run with the cuda, host, "+
				"sockets or verbs backend"),
		flags.Of(&b.Ask.Compare, "compare", "", false,
			"columns of the simulated time; of NCCL's model as well, and with "+
				"the cuda backend of NCCL's measured time; on GPUs alone", "Compare")))
	b.Machine.Register(c)
	b.Machine.RegisterClass(c)
	b.Machine.RegisterNetwork(c)
	b.Test.Register(c)
	flags.Register(c.Flags(), flags.In(flags.Sizes,
		flags.Of(&b.Ask.Shares, "shares", "", nil,
			"alltoall of unequal parts: `PARTS` that each rank sends to rank 0, 1, …, "+
				"relative to the others, 40,30,20,10", "Shares")),
		flags.In(cli.Test,
			flags.Of(&b.Ask.Limit, "limit", "", 2*time.Minute, "most `TIME` of one size", "Limit"),
			flags.Of(&b.Ask.Seed, "seed", "", 1, "`SEED` of the input data")),
		flags.In(cli.Launch,
			flags.Of(&b.Ask.Launch, "launch", "", "eager",
				"launch `MODE` on GPUs: eager (host time around asynchronous "+
					"launches) or graph (device time of a replay)", "Launch")))
	b.Test.RegisterOutput(c)
	flags.Register(c.Flags(), flags.In(flags.Output,
		flags.Of(&b.Ask.Trace, "trace", "", "",
			"write a Chrome trace of the last size to `FILE` (one verified operation; "+
				"several processes put their rank before the ending)", "Trace"),
		flags.Of(&b.Detail, "trace-detail", "", "step", "`LEVEL` of the trace: "+strings.Join(nccl.Details[:],
			", "))))
	b.Place.Register(c)
	flags.Most(c, "backend", "min-bytes", "max-bytes", "gpus", "compare", "trace")
}

// request converts the options to a request. A bench on CPUs without sizes uses small ones, because CPUs
// transfer less than GPUs.
func (b *Options) request(a *cli.App) (*bench.Request, error) {
	if !b.Ask.OnGPUs() && !b.Test.Sized() {
		b.Test.Min, b.Test.Max, b.Test.Factor = "8", "16M", 8
	}
	ask := b.Ask
	if n := b.Machine.Network; n != "flow" && !ask.Compare {
		return nil,
			fail.Usage("--network %s: it applies to the prediction of --compare; add --compare, or leave "+
				"it out", n)
	}
	if b.Schedule != "" {
		if ask.Backend == "nccl" {
			return nil,
				fail.Usage("--schedule %s: NCCL has its own; choose --backend cuda, host, sockets or verbs",
					b.Schedule)
		}
		var err error
		if b.sched, err = schedulecmd.Prove(a, b.Schedule); err != nil {
			return nil, err
		}
		schedulecmd.Warn(a, b.sched, b.Schedule)
		if ask.OnGPUs() {
			ask.Algo, b.sched = "plan", b.sched.Simple()
		}
	}
	ask.Options, ask.Multicast, ask.Ranks = b.Test.Options, b.Machine.Multicast, b.Place.Ranks
	ask.TestsDevice, _ = a.Getenv("NCCL_TESTS_DEVICE")
	return &ask, a.AsFlags(ask.Validate())
}

// Run measures. Where several processes are started, it meets the others.
func (b *Options) Run(ctx context.Context, a *cli.App) error {
	r := &benchrun.Bench{Began: time.Now()}
	fn, err := coll.ParseFunc(b.Op)
	if err != nil {
		return err
	}
	if r.Request, err = b.request(a); err != nil {
		return err
	}
	if err := a.AsFlags(r.Request.CheckShares(fn)); err != nil {
		return err
	}
	if r.Spec, err = b.spec(a, r.Request, fn); err != nil {
		return err
	}
	at, err := b.Place.Find(a)
	if err != nil {
		return err
	}
	// of a process alone the rank is -1
	if err := options.NotSplit(a.Getenv, at.NRanks*min(at.Rank+1, 1)); err != nil {
		return err
	}
	ranks := max(at.NRanks, 1)
	if r.Request.OnGPUs() {
		if at.Rank < 0 && at.NRanks > 1 {
			return fail.Usage("--nranks %d without --rank: the ranks of one process are its GPUs; write -g "+
				"%d", at.NRanks, at.NRanks)
		}
	} else {
		if r.Plans, err = b.hostModel(a, fn, at.NRanks); err != nil {
			return err
		}
		ranks = r.Plans.Ranks()
		if at.NRanks > 0 && at.NRanks != ranks {
			return fail.Usage("%d ranks were started, but the machine has %d: choose --topo, --nodes and "+
				"-g to fit", at.NRanks, ranks)
		}
	}
	if r.Team, err = team.Assemble(ctx, at, ranks); err != nil {
		return err
	}
	defer r.Team.Leave()
	if r.Request.OnGPUs() {
		return r.Team.Own(b.bench(a, r).Run(r.Team.Ctx))
	}
	return r.Team.Give(b.bench(a, r).Run(r.Team.Ctx))
}

// spec converts the options to the benchmark's specification.
func (b *Options) spec(a *cli.App, ask *bench.Request, fn coll.Func) (*bench.Spec, error) {
	s := ask.Spec(fn)
	if b.sched != nil && b.sched.InPlace != b.sched.OutOfPlace {
		s.InPlace = &b.sched.InPlace
	}
	if err := b.Test.OneWay(); err != nil {
		return nil, err
	}
	w, err := a.Pairs(b.Test.Workload(b.Op), b.Op, &b.Test.Options)
	if err != nil {
		return nil, err
	}
	if err = a.AsFlags(benchrun.FillSpec(s, &w)); err != nil {
		return nil, err
	}
	if s.Columns, err = benchrun.PredictedColumns(ask); err != nil {
		return nil, a.AsFlags(err)
	}
	s.MinBW, err = options.MinBW(a.Getenv)
	return s, err
}

// hostModel returns the model of the machine whose plans CPUs execute; without a machine it has nranks hosts
// of one GPU each.
func (b *Options) hostModel(a *cli.App, fn coll.Func, nranks int) (*benchrun.Model, error) {
	m := &b.Machine
	m.Multicast = "off"
	if m.Topo == "" && m.Nodes == 0 && m.GPUs == 0 {
		m.Nodes, m.GPUs = cmp.Or(nranks, 2), 1
	}
	return b.load(a, *m, scenario.Spec{Workload: scenario.Workload{Op: fn.TestName()}, Seed: b.Ask.Seed})
}

// load loads the machine of a model, with the plans of --schedule if it is given.
func (b *Options) load(a *cli.App, m cli.Machine, spec scenario.Spec) (*benchrun.Model, error) {
	on, err := m.Spec(a)
	if err != nil {
		return nil, err
	}
	spec.Machine, spec.Network = on.Machine, on.Network
	opt := a.Options(m.Found)
	if b.sched != nil {
		opt.Planner = schedulecmd.Planner(b.sched, b.Schedule)
	}
	model, err := benchrun.LoadModel(spec, opt)
	if err != nil {
		return nil, a.AsFlags(err)
	}
	model.Schedule = b.Schedule
	return model, nil
}

// predict returns the model of the devices' machine: the topology file of --topo, else this machine as
// detected.
func (b *Options) predict(
	a *cli.App, ask *bench.Request, fn coll.Func, devices []nccltests.Device,
) (bench.Model, error) {
	m := b.Machine
	hosts, gpus := benchrun.CountHosts(devices)
	m.GPUs, m.Nodes = gpus, cmp.Or(m.Nodes, hosts)
	if m.Topo == "" {
		text, err := a.Host().Topology()
		if err != nil {
			return nil, fmt.Errorf("prediction of this machine: %w", err)
		}
		m.Found = text
	}
	// every GPU has a thread of its own
	spec := scenario.Spec{Workload: scenario.Workload{Op: fn.TestName()}, Engine: scenario.Engine{
		NoProof: true}}
	if ask.Replays() > 0 {
		spec.Engine.Launch = "graph"
	}
	model, err := b.load(a, m, spec)
	if err != nil {
		return nil, err
	}
	return model, nil
}

// bench completes a bench whose ranks have connected with this command's output, devices and predictions.
func (b *Options) bench(a *cli.App, r *benchrun.Bench) *benchrun.Bench {
	r.Program, r.Table = a.Version, a.Out
	r.Wrong = func(line string) { fmt.Fprintf(a.Err, "simccl: %s\n", line) }
	if a.JSON {
		r.Table = io.Discard
	}
	open := b.Open
	if open == nil {
		open = bench.OpenDevices
	}
	r.OpenGPUs = func(ctx context.Context, newModel bench.NewModel) (bench.Backend, error) {
		return open(ctx, r.Spec, r.Team, Devices(a, r.Request, b.Machine.GPUs), newModel)
	}
	r.Predict = func(d []nccltests.Device) (bench.Model, error) {
		return b.predict(a, r.Request, r.Spec.Func, d)
	}
	r.Args, r.Env = append([]string{"simccl"}, a.Args...), bench.NCCLVariables(a.Environ,
		r.Request.NCCLEnv(a.Env))
	r.Document = func(doc *nccltests.Report) error { return a.WriteJSON(doc, r.Request.Output, a.JSON) }
	if r.Request.Trace == "" {
		return r
	}
	r.Trace = bench.Trace{File: a.Path(r.Request.Trace), Cancelled: a.Cancelled,
		Detail: nccl.Detail(slices.Index(nccl.Details[:], b.Detail)),
		Meta: chrome.Meta{Source: "real", Version: a.Version, NCCLRules: cli.Rules().String(),
			Seed: int64(r.Spec.Seed)}}
	if r.Plans != nil {
		r.Trace.Meta = r.Plans.Run.Site.Meta(a.Version, r.Spec.Seed)
		r.Trace.Meta.Source, r.Trace.Meta.Clock = "real", ""
	}
	r.Traced = func(name string, w *chrome.Writer) error {
		if w == nil {
			a.Wrote(name, process.OpenTrace(name))
			return nil
		}
		return a.CloseTrace(name, w)
	}
	return r
}

// Devices returns the selection of GPUs for a request; gpus is the largest number, 0 all.
func Devices(a *cli.App, ask *bench.Request, gpus int) bench.DeviceConfig {
	return bench.DeviceConfig{Own: ask.Backend == "cuda", Algo: ask.Algo, Compare: ask.Compare,
		Trace: ask.Trace != "", Library: ask.Library,
		GPUs: gpus, Threads: ask.Threads, Env: ask.NCCLEnv(a.Env), Getenv: a.Getenv,
		Headers: cli.Rules().Code()}
}
