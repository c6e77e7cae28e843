package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/real/device"
	"github.com/simccl/simccl/report/nccltests"
	"github.com/simccl/simccl/units"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// gpuFlags are the options of bench that only GPUs have.
type gpuFlags struct {
	algo    string
	timing  string
	compare bool
	libnccl string
}

func (g *gpuFlags) register(f *pflag.FlagSet) {
	f.StringVar(&g.algo, "algo", "auto", "algorithm of the cuda backend: auto, plan (NCCL's schedule), one-shot, two-words, two-shot, push, direct or copies")
	f.StringVar(&g.timing, "launch", "eager", "on GPUs, eager: host time around asynchronous launches; graph: device time of a replay")
	f.BoolVar(&g.compare, "compare", false, "on GPUs, add columns: simulated time, NCCL's model, with the cuda backend NCCL's measured time")
	f.StringVar(&g.libnccl, "libnccl", "", "`FILE` of NCCL (default $SIMCCL_LIBNCCL, else libnccl.so.2 of the loader)")
}

// backend runs operations on hardware for device. All processes of a run call
// it alike.
type backend interface {
	// ranks counts those of all processes.
	ranks() int
	// devices lists all ranks, on every process.
	devices() []nccltests.Device
	// measure times an operation and checks its result; how is the algorithm
	// that ran, "-" where there is nothing to tell.
	measure(ctx context.Context, op *device.Op, o device.Options) (m device.Measurement, how string, err error)
	// describe is a line for the table's head.
	describe() string
	close() error
}

// backends make a backend for a run whose largest operation has buffers of
// the given size.
var backends = map[string]func(context.Context, *benchRun, units.Bytes) (backend, error){
	"nccl": openGPUs, "cuda": openGPUs,
}

// benchRun is a prepared device.
type benchRun struct {
	app     *app
	flags   *benchFlags
	procs   place
	team    *team
	fn      coll.Func
	sizes   []size
	bounds  coll.Sweep
	types   []coll.DataType
	ops     []coll.RedOp
	columns []benchColumn
	minBW   float64
	back    backend
	oracle  *oracle
	rivals  regrets // with the column regret
	rows    []nccltests.Row
	own     []string
	wrong   int
	config  nccltests.Config
	roots   []int
	began   time.Time
}

// onGPUs runs a bench whose backend drives GPUs.
func (b *benchFlags) onGPUs(a *app, cmd *cobra.Command, op string) (err error) {
	r := &benchRun{app: a, flags: b, began: time.Now()}
	if err := r.prepare(cmd, op); err != nil {
		return err
	}
	if r.team, err = assemble(cmd.Context(), r.procs, max(r.procs.nranks, 1)); err != nil {
		return err
	}
	defer r.team.leave()
	ctx := r.team.ctx
	if r.back, err = backends[b.backend](ctx, r, r.buffer(r.gpus())); err != nil {
		return hardwareError(r.team.own(err))
	}
	err = r.sweep(ctx)
	if cerr := r.back.close(); err == nil {
		err = cerr
	}
	return hardwareError(r.team.own(err))
}

func (r *benchRun) prepare(cmd *cobra.Command, op string) (err error) {
	t, b := &r.flags.run.test, r.flags
	if r.fn, err = coll.ParseFunc(op); err != nil {
		return err
	}
	if err := b.checkGPUs(); err != nil {
		return err
	}
	if err := b.checkModes(); err != nil {
		return err
	}
	if r.sizes, r.bounds, err = t.list(cmd); err != nil {
		return err
	}
	if r.types, err = t.types(); err != nil {
		return err
	}
	if r.ops, err = t.ops(r.fn); err != nil {
		return err
	}
	if r.columns, err = b.columns(); err != nil {
		return err
	}
	if r.minBW, err = r.app.minBW(); err != nil {
		return err
	}
	if text, ok := r.app.getenv("NCCL_TESTS_DEVICE"); ok && text != "" {
		return notYet("NCCL_TESTS_DEVICE="+text, "a first GPU other than the first; CUDA_VISIBLE_DEVICES chooses GPUs")
	}
	if r.procs, err = b.place.find(r.app); err != nil {
		return err
	}
	if r.procs.rank < 0 && r.procs.nranks > 1 {
		return usage("--nranks %d without --rank: the ranks of one process are its GPUs; write -g %d", r.procs.nranks, r.procs.nranks)
	}
	return nil
}

func (b *benchFlags) replays() int {
	if b.gpu.timing == "graph" {
		return max(b.run.test.graph, 1)
	}
	return b.run.test.graph
}

// buffer is the size of the largest buffer.
func (r *benchRun) buffer(ranks int) units.Bytes {
	most := units.Bytes(0)
	for _, typ := range r.types {
		for _, s := range r.sizes {
			most = max(most, r.counts(s, typ, ranks).Bytes(typ))
		}
	}
	return most
}

func (r *benchRun) counts(s size, typ coll.DataType, ranks int) coll.Sizes {
	if s.exact {
		return coll.ExactSizes(r.fn, s.asked, typ, ranks)
	}
	return coll.TestSizes(r.fn, s.asked, typ, ranks)
}

// sweep goes through all sizes and prints; only process 0 has a table.
func (r *benchRun) sweep(ctx context.Context) (err error) {
	t := &r.flags.run.test
	if r.roots, err = t.roots(r.fn, r.back.ranks()); err != nil {
		return err
	}
	if r.oracle, err = r.newOracle(); err != nil {
		return err
	}
	if err := r.measureRivals(ctx); err != nil {
		return err
	}
	out := r.app.out
	if r.team.rank != 0 || r.app.json {
		out = io.Discard
	}
	r.config = nccltests.Config{Program: r.fn.TestName() + "_perf", NCCLHeaders: ncclRules().Code(), NCCLLibrary: r.libraryVersion(),
		Threads: r.gpus() / r.team.nranks, GPUs: 1, MinBytes: r.bounds.Min, MaxBytes: r.bounds.Max, StepFactor: r.bounds.Factor,
		StepBytes: r.bounds.StepBytes, Warmup: t.warmup, Iters: t.iters, AggIters: t.agg, Check: t.check, Graph: r.flags.replays(),
		Blocking: t.blocking, CPUTime: t.cpuTime != 0, Unalign: t.unalign, ParallelInit: t.parallelInit != 0,
		PerIter: t.perIter != 0, PerIterSkip: t.skip, Timestamps: t.timestamps != 0}
	table := nccltests.NewTable(out, benchHeads(r.columns)...)
	table.Preface(fmt.Sprintf("simccl %s measured: %s", version, r.back.describe()))
	table.Start(&r.config, r.back.devices())
	bus := 0.0
	for _, typ := range r.types {
		for _, op := range r.ops {
			for _, root := range r.roots {
				for range t.cycles {
					for _, sz := range r.sizes {
						row, err := r.row(ctx, typ, op, root, sz)
						if err != nil {
							return err
						}
						bus += row.Out.BusBW + row.In.BusBW
						table.Row(row)
					}
				}
			}
		}
	}
	summary := nccltests.Summary{OutOfBounds: r.wrong, AvgBusBW: bus / float64(2*max(len(r.rows), 1)), MinBW: r.minBW}
	if summary.Memory, err = r.memory(); err != nil {
		return err
	}
	if err := table.Finish(&r.config, &summary); err != nil {
		return err
	}
	if err := r.trace(ctx); err != nil {
		return err
	}
	if err := r.outputs(&summary); err != nil {
		return err
	}
	switch {
	case r.wrong > 0:
		return failed("%d of %d measurements gave wrong values", r.wrong, 2*len(r.rows))
	case summary.Failed():
		return belowMinBW(&summary)
	}
	return nil
}

// memory is what -M 1 tells.
func (r *benchRun) memory() ([]nccltests.MemoryUse, error) {
	g, ok := r.back.(*gpuBackend)
	if r.flags.run.test.memory == 0 || !ok {
		return nil, nil
	}
	m, err := g.session.Memory()
	return []nccltests.MemoryUse{{Name: "Initialization", Bytes: int64(m.Init)}, {Name: "User-Allocated", Bytes: int64(m.Buffers)}, {Name: "Collective", Bytes: int64(m.Work)}}, err
}

// trace writes one operation of the last size.
func (r *benchRun) trace(ctx context.Context) error {
	g, ok := r.back.(*gpuBackend)
	if !ok || len(r.sizes) == 0 {
		return nil
	}
	typ := r.types[len(r.types)-1]
	return g.writeTrace(ctx, r, &device.Op{Func: r.fn, Type: typ, Red: r.ops[len(r.ops)-1], Root: max(r.roots[len(r.roots)-1], 0),
		Sizes: r.counts(r.sizes[len(r.sizes)-1], typ, r.back.ranks())})
}

// row measures one line of the table, out of place and in place.
func (r *benchRun) row(ctx context.Context, typ coll.DataType, red coll.RedOp, root int, sz size) (*nccltests.Row, error) {
	sizes := r.counts(sz, typ, r.back.ranks())
	shown := sizes.Bytes(typ)
	if sz.exact {
		shown = sz.asked
	}
	row := nccltests.Row{Size: int64(shown), Count: sizes.Count, Type: typ.TestName(), RedOp: "none", Root: root}
	if r.fn.PrintsRedOp() {
		row.RedOp = red.TestName()
	}
	op := &device.Op{Func: r.fn, Type: typ, Red: red, Root: max(root, 0), Sizes: sizes}
	facts := benchFacts{Shape: "-"}
	for i, m := range []*nccltests.Measure{&row.Out, &row.In} {
		op.InPlace = i == 1
		got, how, err := r.measure(ctx, op)
		if err != nil {
			return nil, fmt.Errorf("%s of %d bytes: %w", r.fn.TestName(), shown, err)
		}
		if got.Wrong > 0 {
			r.wrong++
			fmt.Fprintf(r.app.err, "simccl: %s of %d bytes: %s\n", r.fn.TestName(), shown, got.First)
		}
		alg, bus := coll.Bandwidth(r.fn, sizes.Count, typ, r.back.ranks(), got.Time)
		*m = nccltests.Measure{TimeUs: got.Time.Micros(), AlgBW: alg, BusBW: bus, Wrong: got.Wrong, Checked: got.Checked,
			Iters: r.iterStats(&got)}
		if i == 0 {
			facts.Shape, facts.MeasuredUs = how, got.Time.Micros()
			if g, ok := r.back.(*gpuBackend); ok {
				facts.Rivals = g.picked[*op].rivals
			}
			facts.Iters = m.Iters
			r.regret(op, got.Time, &facts)
		}
	}
	if r.config.Timestamps {
		row.Stamp = time.Now().Format(jsonTime)
	}
	op.InPlace = false
	if err := r.oracle.ask(ctx, r, op, &facts); err != nil {
		return nil, err
	}
	for _, c := range r.columns {
		row.Extra = append(row.Extra, c.value(&facts))
	}
	r.rows = append(r.rows, row)
	r.own = append(r.own, facts.json())
	return &row, nil
}

// measure bounds one measurement by --limit and -T.
func (r *benchRun) measure(ctx context.Context, op *device.Op) (device.Measurement, string, error) {
	limit := r.flags.most()
	ctx, stop := context.WithTimeoutCause(ctx, limit, fmt.Errorf("no end within %v: %w", limit, context.DeadlineExceeded))
	defer stop()
	return r.back.measure(ctx, op, r.options())
}

func (r *benchRun) options() device.Options {
	t := &r.flags.run.test
	return device.Options{Iters: t.iters, Warmup: t.warmup, Agg: t.agg, Replays: r.flags.replays(), Check: t.check,
		Average: device.Average(t.average), PerIter: t.perIter != 0, Seed: 1,
		Wait: device.Wait(t.blocking), CPUTime: t.cpuTime != 0}
}
