package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"time"

	benchrun "github.com/simccl/simccl/app/bench"
	"github.com/simccl/simccl/app/cli"
	schedulecmd "github.com/simccl/simccl/app/cli/schedule"
	"github.com/simccl/simccl/app/process"
	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/nccltests"
	"github.com/simccl/simccl/nccltests/options"
	"github.com/simccl/simccl/plan/msccl"
	"github.com/simccl/simccl/real/bench"
	"github.com/simccl/simccl/real/team"
	"github.com/simccl/simccl/scenario"
	"github.com/simccl/simccl/trace/chrome"
	"github.com/simccl/simccl/trace/nccl"
	"github.com/spf13/cobra"
)

// benchFlags are the options of bench.
type benchFlags struct {
	machine cli.Machine
	test    testFlags
	ask     bench.Request // what test has not
	place   placeFlags
	detail  string // of the trace

	schedule string          // a file
	sched    *msccl.Schedule // what it says
}

func newBench(a *app) *cobra.Command {
	var b benchFlags
	c := &cobra.Command{Use: "bench OP", Short: "Measure an operation on hardware, and verify it",
		Long: `bench runs an operation over a sweep of sizes, checks every element of every
result, and prints nccl-tests' table; #wrong counts elements that are not what
they should be.

--backend nccl runs NVIDIA's libnccl.so.2; cuda runs kernels of our own over peer
memory: NCCL's schedule (--algo plan) or other algorithms, chosen by --algo or,
with auto, by measurement. One process drives
-g GPUs (alone: all; with other processes: one), each from a thread of its own.
--compare adds what run predicts for this machine.

verbs, sockets and host run what NCCL would do, by its own schedule, in host
memory: every rank's programs on the CPU, every connection over InfiniBand verbs,
TCP sockets or (host) shared memory. Without --topo, every rank is a node of its
own there.

Ranks are processes where torchrun, Open MPI, PMI or Slurm started them, or where
--rank, --nranks and --root-address say so; else all are of this process.`,
		Example: `  simccl bench all_reduce -b 1K -e 1G -f 4 --compare
  simccl bench all_gather --backend cuda -b 1M -e 1G -f 4 --launch graph --compare
  torchrun --no-python --nproc-per-node 4 simccl bench alltoall -b 1M -e 64M -f 2
  simccl bench all_reduce --backend sockets --nranks 4 -b 8 -e 64K -f 8
  simccl bench all_reduce --backend verbs --rank 1 --nranks 2 --root-address node0:29600`,
		Args: cli.Exactly("OP"),
		RunE: func(cmd *cobra.Command, args []string) error { return b.main(a, cmd, args[0]) }}
	b.machine.RunsNCCL = true
	b.machine.Register(c)
	b.machine.RegisterClass(c)
	b.machine.RegisterNetwork(c)
	b.test.register(c)
	c.Flags().Lookup("per-iter-timing").Hidden, c.Flags().Lookup("per-iter-skip").Hidden = false, false
	f := c.Flags()
	f.StringVar(&b.ask.Backend, "backend", "nccl", "what runs: nccl and cuda on GPUs; host (memory of this process), sockets and verbs on CPUs")
	f.DurationVar(&b.ask.Limit, "limit", 2*time.Minute, "most `TIME` of one size")
	f.Uint64Var(&b.ask.Seed, "seed", 1, "seed of the input data")
	b.place.register(f)
	f.StringVar(&b.ask.Algo, "algo", "auto", "algorithm of the cuda backend: auto, plan (NCCL's schedule), one-shot, two-words, two-shot, push, direct, copies, words, lines or relay")
	f.StringVar(&b.schedule, "schedule", "", "run the schedule `FILE` (MSCCL XML, MSCCL++ JSON) with the cuda, host, sockets or verbs backend")
	f.Float64SliceVar(&b.ask.Shares, "shares", nil, "alltoall of unequal parts, as of experts: what each rank sends to rank 0, 1, …, relative to the others (`40,30,20,10`)")
	f.StringVar(&b.ask.Launch, "launch", "eager", "on GPUs, eager: host time around asynchronous launches; graph: device time of a replay")
	f.BoolVar(&b.ask.Compare, "compare", false, "on GPUs, add columns: simulated time, NCCL's model, with the cuda backend NCCL's measured time")
	f.StringVar(&b.ask.Library, "libnccl", "", "`FILE` of NCCL (default $SIMCCL_LIBNCCL, else libnccl.so.2 of the loader)")
	f.StringVar(&b.ask.Trace, "trace", "", "write a Chrome trace of one verified operation of the last size to `FILE`; several processes put their rank before the ending")
	c.AddCommand(newBenchVerbs(a))
	f.StringVar(&b.detail, "trace-detail", "step", "how deep the trace goes")
	return c
}

// openDevices opens GPUs; tests put others in their place.
var openDevices = bench.OpenDevices

// request is what the options ask for. A bench on CPUs without sizes takes small
// ones: a CPU moves less than a GPU.
func (b *benchFlags) request(a *app, cmd *cobra.Command) (*bench.Request, error) {
	if !b.ask.OnGPUs() && !b.test.sized(cmd) {
		for _, kv := range [][2]string{{"min-bytes", "8"}, {"max-bytes", "16M"}, {"step-factor", "8"}} {
			if err := cmd.Flags().Set(kv[0], kv[1]); err != nil {
				return nil, err
			}
		}
	}
	ask := b.ask
	if n := b.machine.Network; n != "flow" && !ask.Compare {
		return nil, usage("--network %s: it applies to the prediction of --compare; add --compare, or leave it out", n)
	}
	if b.schedule != "" {
		if ask.Backend == "nccl" {
			return nil, usage("--schedule %s: NCCL has its own; choose --backend cuda, host, sockets or verbs", b.schedule)
		}
		var err error
		if b.sched, err = schedulecmd.Prove(&a.App, b.schedule); err != nil {
			return nil, err
		}
		schedulecmd.Warn(&a.App, b.sched, b.schedule)
		if ask.OnGPUs() {
			ask.Algo, b.sched = "plan", b.sched.Simple()
		}
	}
	ask.Options, ask.Multicast, ask.Ranks = b.test.Options, b.machine.Multicast, b.place.nranks
	ask.TestsDevice, _ = a.Getenv("NCCL_TESTS_DEVICE")
	return &ask, cli.AsFlags(ask.Validate())
}

func (b *benchFlags) main(a *app, cmd *cobra.Command, op string) error {
	r := &benchrun.Bench{Began: time.Now()}
	fn, err := coll.ParseFunc(op)
	if err != nil {
		return err
	}
	if r.Request, err = b.request(a, cmd); err != nil {
		return err
	}
	if err := cli.AsFlags(r.Request.CheckShares(fn)); err != nil {
		return err
	}
	if r.Spec, err = b.spec(a, cmd, r.Request, fn, op); err != nil {
		return err
	}
	at, err := b.place.find(a)
	if err != nil {
		return err
	}
	if err := options.NotSplit(a.Getenv, at.NRanks*min(at.Rank+1, 1)); err != nil { // of a process alone the rank is -1
		return err
	}
	ranks := max(at.NRanks, 1)
	if r.Request.OnGPUs() {
		if at.Rank < 0 && at.NRanks > 1 {
			return usage("--nranks %d without --rank: the ranks of one process are its GPUs; write -g %d", at.NRanks, at.NRanks)
		}
	} else {
		if r.Plans, err = b.hostModel(a, fn, at.NRanks); err != nil {
			return err
		}
		ranks = r.Plans.Ranks()
		if at.NRanks > 0 && at.NRanks != ranks {
			return usage("%d ranks were started, but the machine has %d: choose --topo, --nodes and -g to fit", at.NRanks, ranks)
		}
	}
	if r.Team, err = team.Assemble(cmd.Context(), at, ranks); err != nil {
		return err
	}
	defer r.Team.Leave()
	if r.Request.OnGPUs() {
		return r.Team.Own(b.run(a, r).Run(r.Team.Ctx))
	}
	return r.Team.Give(b.run(a, r).Run(r.Team.Ctx))
}

// spec is the benchmark that the options request.
func (b *benchFlags) spec(a *app, cmd *cobra.Command, ask *bench.Request, fn coll.Func, op string) (*bench.Spec, error) {
	s := ask.Spec(fn)
	if b.sched != nil && b.sched.InPlace != b.sched.OutOfPlace {
		s.InPlace = &b.sched.InPlace
	}
	if err := b.test.oneWay(cmd); err != nil {
		return nil, err
	}
	w, err := a.Pairs(b.test.workload(cmd, op), op, &b.test.Options)
	if err != nil {
		return nil, err
	}
	if err = cli.AsFlags(benchrun.FillSpec(s, &w)); err != nil {
		return nil, err
	}
	if s.Columns, err = benchrun.PredictedColumns(ask); err != nil {
		return nil, cli.AsFlags(err)
	}
	s.MinBW, err = options.MinBW(a.Getenv)
	return s, err
}

// hostModel is the model of the machine whose plans CPUs run; nranks of one GPU
// each, where no machine is asked for.
func (b *benchFlags) hostModel(a *app, fn coll.Func, nranks int) (*benchrun.Model, error) {
	m := &b.machine
	m.Multicast = "off"
	if m.Topo == "" && m.Nodes == 0 && m.GPUs == 0 {
		m.Nodes, m.GPUs = cmp.Or(nranks, 2), 1
	}
	return b.bind(loadModel(a, *m, scenario.Spec{Workload: scenario.Workload{Op: fn.TestName()}, Seed: b.ask.Seed}))
}

// bind makes a model's plans those of --schedule.
func (b *benchFlags) bind(m *benchrun.Model, err error) (*benchrun.Model, error) {
	if err != nil || b.sched == nil {
		return m, err
	}
	m.Schedule = b.schedule
	return m, schedulecmd.Bind(m.Run, b.sched, b.schedule)
}

// loadModel loads the machine of a model.
func loadModel(a *app, m cli.Machine, spec scenario.Spec) (*benchrun.Model, error) {
	on, err := m.Spec(&a.App)
	if err != nil {
		return nil, err
	}
	spec.Machine, spec.Network = on.Machine, on.Network
	model, err := benchrun.LoadModel(spec, a.Options(m.Found))
	return model, cli.AsFlags(err)
}

// predict is the model of the machine that the devices are of: the file of --topo,
// else this machine as it is found.
func (b *benchFlags) predict(a *app, ask *bench.Request, fn coll.Func, devices []nccltests.Device) (bench.Model, error) {
	m := b.machine
	hosts, gpus := benchrun.CountHosts(devices)
	m.GPUs, m.Nodes = gpus, cmp.Or(m.Nodes, hosts)
	if m.Topo == "" {
		text, err := a.thisHost().Topology()
		if err != nil {
			return nil, fmt.Errorf("prediction of this machine: %w", err)
		}
		m.Found = text
	}
	spec := scenario.Spec{Workload: scenario.Workload{Op: fn.TestName()}, Engine: scenario.Engine{NoProof: true}} // every GPU has a thread of its own
	if ask.Replays() > 0 {
		spec.Engine.Launch = "graph"
	}
	model, err := b.bind(loadModel(a, m, spec))
	if err != nil {
		return nil, err
	}
	return model, nil
}

// run is the bench of ranks that have met.
func (b *benchFlags) run(a *app, r *benchrun.Bench) *benchrun.Bench {
	r.Program, r.Table, r.Wrong = version, a.Out, func(line string) { fmt.Fprintf(a.Err, "simccl: %s\n", line) }
	if a.JSON {
		r.Table = io.Discard
	}
	r.OpenGPUs = func(ctx context.Context, newModel bench.NewModel) (bench.Backend, error) {
		return openDevices(ctx, r.Spec, r.Team, a.devices(r.Request, b.machine.GPUs), newModel)
	}
	r.Predict = func(d []nccltests.Device) (bench.Model, error) { return b.predict(a, r.Request, r.Spec.Func, d) }
	r.Args, r.Env = append([]string{"simccl"}, a.Args...), bench.NCCLVariables(a.Environ, r.Request.NCCLEnv(a.Env))
	r.Document = func(doc *nccltests.Report) error { return a.WriteJSON(doc, r.Request.Output, a.JSON) }
	if r.Request.Trace == "" {
		return r
	}
	r.Trace = bench.Trace{File: a.Path(r.Request.Trace), Cancelled: a.Cancelled, Detail: nccl.Detail(slices.Index(nccl.Details[:], b.detail)),
		Meta: chrome.Meta{Source: "real", Version: version, NCCLRules: cli.Rules().String(), Seed: int64(r.Spec.Seed)}}
	if r.Plans != nil {
		r.Trace.Meta = r.Plans.Run.Site.Meta(version, r.Spec.Seed)
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

// devices are the GPUs that a request asks for.
func (a *app) devices(ask *bench.Request, gpus int) bench.DeviceConfig {
	return bench.DeviceConfig{Own: ask.Backend == "cuda", Algo: ask.Algo, Compare: ask.Compare, Trace: ask.Trace != "", Library: ask.Library,
		GPUs: gpus, Threads: ask.Threads, Env: ask.NCCLEnv(a.Env), Getenv: a.Getenv, Headers: cli.Rules().Code()}
}
