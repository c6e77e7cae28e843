package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/internal/nccltrace"
	"github.com/simccl/simccl/internal/report/nccltests"
	"github.com/simccl/simccl/internal/report/sweep"
	"github.com/simccl/simccl/real/bench"
	"github.com/simccl/simccl/real/team"
	"github.com/simccl/simccl/trace/chrome"
	"github.com/spf13/cobra"
)

// benchFlags are the options of bench beside machine and sizes.
type benchFlags struct {
	run     runFlags // machine, test and outputs
	backend string
	place   placeFlags
	limit   time.Duration
	algo    string // of the cuda backend
	timing  string
	compare bool
	libnccl string
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
-g GPUs (alone: all; beside others: one), each from a thread of its own.
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
		Args: exactly("OP"),
		RunE: func(cmd *cobra.Command, args []string) error { return b.main(a, cmd, args[0]) }}
	b.run.machine.runsNCCL = true
	b.run.machine.register(c)
	b.run.machine.registerClass(c)
	b.run.test.register(c)
	c.Flags().Lookup("per-iter-timing").Hidden, c.Flags().Lookup("per-iter-skip").Hidden = false, false
	f := c.Flags()
	f.StringVar(&b.backend, "backend", "nccl", "what runs: nccl and cuda on GPUs; host (memory of this process), sockets and verbs on CPUs")
	f.DurationVar(&b.limit, "limit", 2*time.Minute, "most `TIME` of one size")
	f.Uint64Var(&b.run.seed, "seed", 1, "seed of the input data")
	b.place.register(f)
	f.StringVar(&b.algo, "algo", "auto", "algorithm of the cuda backend: auto, plan (NCCL's schedule), one-shot, two-words, two-shot, push, direct or copies")
	f.StringVar(&b.timing, "launch", "eager", "on GPUs, eager: host time around asynchronous launches; graph: device time of a replay")
	f.BoolVar(&b.compare, "compare", false, "on GPUs, add columns: simulated time, NCCL's model, with the cuda backend NCCL's measured time")
	f.StringVar(&b.libnccl, "libnccl", "", "`FILE` of NCCL (default $SIMCCL_LIBNCCL, else libnccl.so.2 of the loader)")
	f.StringVar(&b.run.out.trace, "trace", "", "write a Chrome trace of one verified operation of the last size to `FILE`; several processes put their rank before the ending")
	c.AddCommand(newBenchVerbs(a))
	f.StringVar(&b.run.out.detail, "trace-detail", "step", "how deep the trace goes")
	return c
}

// onGPUs reports whether the backend drives GPUs.
func (b *benchFlags) onGPUs() bool { return b.backend == "nccl" || b.backend == "cuda" }

// openDevices opens GPUs; tests put others in their place.
var openDevices = bench.OpenDevices

func (b *benchFlags) main(a *app, cmd *cobra.Command, op string) error {
	r := &benchRun{app: a, flags: b, began: time.Now()}
	fn, err := coll.ParseFunc(op)
	if err != nil {
		return err
	}
	if err := b.check(a, cmd); err != nil {
		return err
	}
	if r.spec, err = b.spec(a, cmd, fn); err != nil {
		return err
	}
	at, err := b.place.find(a)
	if err != nil {
		return err
	}
	ranks := max(at.NRanks, 1)
	if b.onGPUs() {
		if at.Rank < 0 && at.NRanks > 1 {
			return usage("--nranks %d without --rank: the ranks of one process are its GPUs; write -g %d", at.NRanks, at.NRanks)
		}
	} else {
		if r.model, err = b.hostModel(a, fn, at.NRanks); err != nil {
			return err
		}
		ranks = r.model.ranks()
		if at.NRanks > 0 && at.NRanks != ranks {
			return usage("%d ranks were started, but the machine has %d: choose --topo, --nodes and -g to fit", at.NRanks, ranks)
		}
	}
	if r.team, err = team.Assemble(cmd.Context(), at, ranks); err != nil {
		return err
	}
	defer r.team.Leave()
	if b.onGPUs() {
		return r.team.Own(r.measure())
	}
	return r.team.Give(r.measure())
}

// spec is what the options ask for.
func (b *benchFlags) spec(a *app, cmd *cobra.Command, fn coll.Func) (*bench.Spec, error) {
	t := &b.run.test
	s := &bench.Spec{Func: fn, Root: t.root, Cycles: t.cycles, Seed: b.run.seed, Skip: t.skip, Unalign: t.unalign,
		Register: bench.Registration(t.localRegister), Memory: t.memory != 0, Timestamps: t.timestamps != 0, Parallel: t.parallelInit != 0,
		Limit: b.most(), Compare: b.compare,
		Options: bench.Options{Iters: t.iters, Warmup: t.warmup, Agg: t.agg, Replays: b.replays(), Check: t.check,
			Average: bench.Average(t.average), PerIter: t.perIter != 0, Seed: uint32(b.run.seed),
			Wait: bench.Wait(t.blocking), CPUTime: t.cpuTime != 0}}
	sizes, bounds, err := t.list(cmd)
	if err != nil {
		return nil, err
	}
	s.Bounds = bounds
	for _, z := range sizes {
		s.Sizes = append(s.Sizes, bench.Size{Asked: z.Asked, Exact: z.Exact})
	}
	if s.Types, err = t.types(); err != nil {
		return nil, err
	}
	if s.Ops, err = t.ops(fn); err != nil {
		return nil, err
	}
	if s.Columns, err = b.columns(); err != nil {
		return nil, err
	}
	s.MinBW, err = a.minBW()
	return s, err
}

// columns lists what --columns and --compare add, in that order.
func (b *benchFlags) columns() ([]bench.Column, error) {
	if !b.onGPUs() {
		return b.hostColumns()
	}
	var names []string
	if b.run.test.columns != "" {
		for name := range strings.SplitSeq(strings.TrimPrefix(b.run.test.columns, "+"), ",") {
			names = append(names, strings.TrimPrefix(name, "+"))
		}
	}
	return bench.ColumnsOf(names, b.backend == "cuda", b.compare, func(name string) (bench.Column, error) {
		of, err := sweep.ParseColumns(name)
		if err != nil {
			return bench.Column{}, usage("--columns %s: %v", name, err)
		}
		c := columnOfRun(of[0])
		c.Predicts = true
		return c, nil
	})
}

// hostColumns are those of the choice by which CPUs run a plan.
func (b *benchFlags) hostColumns() ([]bench.Column, error) {
	all, err := b.run.test.parseColumns()
	var out []bench.Column
	for _, c := range all {
		switch {
		case c.Rivals:
			return nil, usage("--columns +%s: --backend %s has no rivals to measure; write --backend nccl", c.Head.Name, b.backend)
		case c.Simulated:
			return nil, usage("--columns +%s: --backend %s measures and simulates nothing; write some of +algo,proto,nch,model", c.Head.Name, b.backend)
		}
		out = append(out, columnOfRun(c))
	}
	return out, err
}

// benchRun is a bench whose ranks have met.
type benchRun struct {
	app   *app
	flags *benchFlags
	spec  *bench.Spec
	team  *team.Team
	model *benchModel // of CPUs
	began time.Time
	table *nccltests.Table
}

func (r *benchRun) measure() error {
	back, err := r.open(r.team.Ctx)
	if err != nil {
		return err
	}
	err = r.sweep(r.team.Ctx, back)
	if cerr := back.Close(); err == nil {
		err = cerr
	}
	return err
}

func (r *benchRun) open(ctx context.Context) (bench.Backend, error) {
	if r.flags.onGPUs() {
		return openDevices(ctx, r.spec, r.team, r.flags.devices(r.app), r.newModel)
	}
	m := r.model.run.Site
	return bench.OpenHost(r.spec, r.team, bench.HostConfig{Wire: r.flags.backend, Socket: m.Config.Socket, IB: m.Config.IB, Cluster: m.Cluster, Version: m.Config.Rules.Release.Code(),
		Describe: fmt.Sprintf("topo=%s sha256=%s nccl-rules=%s seed=%d", m.Name, m.Digest[:12], m.Config.Rules.Version(), r.spec.Seed),
		Same:     fmt.Append(nil, r.spec.Func, m.Digest, r.spec.Sizes, r.spec.Options, r.spec.Types, r.spec.Ops, r.spec.Root, r.spec.Seed, m.Settings())}, r.newModel)
}

// devices are the GPUs that the options ask for.
func (b *benchFlags) devices(a *app) bench.DeviceConfig {
	return bench.DeviceConfig{Own: b.backend == "cuda", Algo: b.algo, Compare: b.compare, Trace: b.run.out.trace != "", Library: b.libnccl,
		GPUs: b.run.machine.gpus, Threads: b.run.test.threads, Env: b.ncclWords(a), Getenv: a.getenv, Headers: ncclRules().Code()}
}

// ncclWords are --env's variables, and the one that -x stands for.
func (b *benchFlags) ncclWords(a *app) []string {
	words := slices.Clone(a.env)
	if p := b.run.test.ctaPolicy; p != noPolicy {
		words = append(words, fmt.Sprintf("NCCL_CTA_POLICY=%d", p))
	}
	return words
}

// ncclEnv lists the NCCL variables that the library sees.
func (b *benchFlags) ncclEnv(a *app) []string {
	var out []string
	for _, kv := range append(slices.Clone(a.environ), b.ncclWords(a)...) {
		if strings.HasPrefix(kv, "NCCL_") {
			out = append(out, kv)
		}
	}
	slices.Sort(out)
	return out
}

// Begin prints the head of the table; only rank 0 has one.
func (r *benchRun) Begin(c *nccltests.Config, about *bench.About) {
	out := r.app.out
	if r.team.Rank != 0 || r.app.json {
		out = io.Discard
	}
	r.table = nccltests.NewTable(out, bench.Heads(r.spec.Columns)...)
	where := ""
	if !r.flags.onGPUs() {
		where = " in host memory, backend " + r.flags.backend
	}
	r.table.Preface(fmt.Sprintf("simccl %s measured%s: %s", version, where, about.Describe))
	r.table.Start(c, about.Devices)
}

// Row prints a row.
func (r *benchRun) Row(row *nccltests.Row) { r.table.Row(row) }

// Wrong prints what is wrong.
func (r *benchRun) Wrong(of, first string) {
	if first != "" {
		fmt.Fprintf(r.app.err, "simccl: %s: %s\n", of, first)
	}
}

// sweep measures everything and writes what was asked for.
func (r *benchRun) sweep(ctx context.Context, back bench.Backend) error {
	run, err := bench.New(r.spec, r.team, back, r.newModel, r.began)
	if err != nil {
		return err
	}
	doc, err := run.Sweep(ctx, r)
	if err != nil {
		return err
	}
	if err := r.table.Finish(&doc.Config, &doc.Summary); err != nil {
		return err
	}
	if err := r.trace(ctx, run); err != nil {
		return err
	}
	if r.team.Rank == 0 {
		doc.Args, doc.Env = append([]string{"simccl"}, r.app.args...), r.flags.ncclEnv(r.app)
		if r.model != nil {
			doc.Env = r.model.env()
		}
		if err := r.app.writeJSON(doc, r.flags.run.test.output); err != nil {
			return err
		}
	}
	switch {
	case doc.Summary.OutOfBounds > 0:
		return failed("%d of %d measurements gave wrong values", doc.Summary.OutOfBounds, 2*len(doc.Rows))
	}
	return belowMinBW(&doc.Summary)
}

// trace writes one operation of the last size.
func (r *benchRun) trace(ctx context.Context, run *bench.Run) error {
	o := &r.flags.run.out
	if o.trace == "" {
		return nil
	}
	to := bench.Trace{File: r.app.path(o.trace), Cancelled: r.app.cancelled, Detail: nccltrace.Detail(slices.Index(nccltrace.Details[:], o.detail)),
		Meta: chrome.Meta{Source: "real", Version: version, NCCLRules: ncclRules().String(), Seed: int64(r.spec.Seed)}}
	if r.model != nil {
		to.Meta = r.model.run.Site.Meta(version, r.spec.Seed)
		to.Meta.Source, to.Meta.Clock = "real", ""
	}
	name := r.team.FileName(to.File)
	w, err := run.Trace(ctx, to)
	if err != nil {
		return err
	}
	if w != nil {
		return r.app.closeTrace(name, w)
	}
	r.app.wrote(name, openTrace)
	return nil
}
