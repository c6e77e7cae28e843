package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"time"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/comm"
	"github.com/simccl/simccl/plan"
	"github.com/simccl/simccl/real/host"
	"github.com/simccl/simccl/report/nccltests"
	"github.com/simccl/simccl/trace"
	"github.com/simccl/simccl/trace/chrome"
	"github.com/simccl/simccl/trace/nccltrace"
	"github.com/simccl/simccl/units"
	"github.com/spf13/cobra"
)

// benchFlags are the options of bench beside machine and sizes.
type benchFlags struct {
	run     runFlags // machine, test and outputs
	backend string
	place   placeFlags
	limit   time.Duration
	gpu     gpuFlags
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
	b.run.machine.register(c)
	b.run.machine.registerClass(c)
	b.run.test.register(c)
	c.Flags().Lookup("per-iter-timing").Hidden, c.Flags().Lookup("per-iter-skip").Hidden = false, false
	f := c.Flags()
	f.StringVar(&b.backend, "backend", "nccl", "what runs: nccl and cuda on GPUs; host (memory of this process), sockets and verbs on CPUs")
	f.DurationVar(&b.limit, "limit", 2*time.Minute, "most `TIME` of one size")
	f.Uint64Var(&b.run.seed, "seed", 1, "seed of the input data")
	b.place.register(f)
	b.gpu.register(f)
	f.StringVar(&b.run.out.trace, "trace", "", "write a Chrome trace of one verified operation of the last size to `FILE`; several processes put their rank before the ending")
	c.AddCommand(newBenchVerbs(a))
	f.StringVar(&b.run.out.detail, "trace-detail", "step", "how deep the trace goes")
	return c
}

// bench is a prepared run.
type bench struct {
	sweep
	flags *benchFlags
	team  *team
	exec  *host.Executor
}

func (b *benchFlags) main(a *app, cmd *cobra.Command, op string) (err error) {
	if backends[b.backend] != nil {
		return b.onGPUs(a, cmd, op)
	}
	s := &bench{flags: b}
	s.app, s.sweep.flags = a, &b.run
	if s.fn, err = coll.ParseFunc(op); err != nil {
		return err
	}
	if err := b.checkHost(cmd); err != nil {
		return err
	}
	p, err := b.place.find(a)
	if err != nil {
		return err
	}
	if b.run.machine.topo == "" && b.run.machine.nodes == 0 && b.run.machine.gpus == 0 {
		b.run.machine.nodes, b.run.machine.gpus = cmp.Or(p.nranks, 2), 1
	}
	if err := s.prepare(cmd); err != nil {
		return err
	}
	if p.nranks > 0 && p.nranks != s.m.comm.NRanks {
		return usage("%d ranks were started, but the machine has %d: choose --topo, --nodes and -g to fit", p.nranks, s.m.comm.NRanks)
	}
	if s.team, err = assemble(cmd.Context(), p, s.m.comm.NRanks); err != nil {
		return err
	}
	defer s.team.leave()
	if err := s.open(); err != nil {
		return s.team.give(err)
	}
	return s.team.give(s.all())
}

func (s *bench) prepare(cmd *cobra.Command) (err error) {
	r := s.sweep.flags
	var bounds coll.Sweep
	if s.sizes, bounds, err = r.test.list(cmd); err != nil {
		return err
	}
	if s.types, err = r.test.types(); err != nil {
		return err
	}
	if s.ops, err = r.test.ops(s.fn); err != nil {
		return err
	}
	if s.columns, err = parseColumns(r.test.columns); err != nil {
		return err
	}
	if i := slices.IndexFunc(s.columns, func(c column) bool { return c.simulated || c.rivals }); i >= 0 {
		if s.columns[i].rivals {
			return usage("--columns +%s: --backend %s has no rivals to measure; write --backend nccl", regretColumn, s.flags.backend)
		}
		return usage("--columns +%s: --backend %s measures and simulates nothing; write some of +algo,proto,nch,model", s.columns[i].head.Name, s.flags.backend)
	}
	if s.minBW, err = s.app.minBW(); err != nil {
		return err
	}
	if s.m, err = r.machine.load(s.app); err != nil {
		return err
	}
	if s.roots, err = r.test.roots(s.fn, s.m.comm.NRanks); err != nil {
		return err
	}
	t := &r.test
	code := s.m.cfg.Rules.Release.Code()
	s.config = nccltests.Config{Program: s.fn.TestName() + "_perf", NCCLHeaders: code, NCCLLibrary: code,
		Threads: 1, GPUs: 1, MinBytes: bounds.Min, MaxBytes: bounds.Max, StepFactor: bounds.Factor,
		StepBytes: bounds.StepBytes, Warmup: t.warmup, Iters: t.iters, AggIters: t.agg, Check: t.check,
		ParallelInit: t.parallelInit != 0, Timestamps: t.timestamps != 0}
	return nil
}

// open makes the executor of the local ranks.
func (s *bench) open() error {
	wire, err := openWire(s.flags.backend, s.m, s.team)
	if err != nil {
		return err
	}
	detail := nccltrace.Detail(slices.Index(nccltrace.Details[:], s.flags.run.out.detail))
	s.exec = host.New(host.Config{Ranks: s.team.here(), Wire: wire, Seed: s.flags.run.seed, Timeout: s.flags.most(),
		Trace: nccltrace.Options{Detail: detail}})
	return s.team.agree([]byte(fmt.Sprint(s.fn, s.m.digest, s.config, s.types, s.ops, s.roots, s.flags.run.seed, s.m.settings())))
}

// all goes through the sizes and prints.
func (s *bench) all() error {
	table := nccltests.NewTable(s.app.out, columnHeads(s.columns)...)
	talks := s.team.rank == 0 && !s.app.json
	devices, err := s.devices()
	if err != nil {
		return err
	}
	if talks {
		table.Preface(fmt.Sprintf("simccl %s measured in host memory, backend %s: topo=%s sha256=%s nccl-rules=%s seed=%d",
			version, s.flags.backend, s.m.name, s.m.digest[:12], s.m.cfg.Rules.Version(), s.flags.run.seed))
		table.Start(&s.config, devices)
	}
	started := time.Now()
	var bus float64
	lines := s.lines()
	for i, l := range lines {
		row, err := s.measure(l, i == len(lines)-1)
		if err != nil {
			return err
		}
		bus += row.Out.BusBW + row.In.BusBW
		if row.Out.Wrong+row.In.Wrong > 0 {
			s.summary.OutOfBounds++
		}
		if talks {
			table.Row(row)
		}
	}
	s.summary.AvgBusBW, s.summary.MinBW = bus/float64(max(2*len(lines), 1)), s.minBW
	if talks {
		err = table.Finish(&s.config, &s.summary)
	}
	if s.team.rank == 0 && err == nil {
		doc := s.report()
		doc.Start, doc.End, doc.Devices, doc.Whole = started.Format(jsonTime), time.Now().Format(jsonTime), devices, ""
		err = s.app.writeJSON(doc, s.flags.run.test.output)
	}
	switch {
	case err != nil:
		return err
	case s.summary.OutOfBounds > 0:
		return failed("%d of %d rows hold wrong values", s.summary.OutOfBounds, len(lines))
	case s.summary.Failed():
		return belowMinBW(&s.summary)
	}
	return nil
}

// measure makes one row, out of place and in place.
func (s *bench) measure(l line, last bool) (*nccltests.Row, error) {
	row := nccltests.Row{Size: int64(l.shown), Count: l.count, Type: l.typ.TestName(), RedOp: "none", Root: l.column}
	if s.fn.PrintsRedOp() {
		row.RedOp = l.op.TestName()
	}
	var first outcome
	for i, m := range []*nccltests.Measure{&row.Out, &row.In} {
		p := l.point
		p.inPlace = i == 1
		pl, choice, err := s.m.comm.Plan(comm.Op{Func: s.fn, Count: p.count, Type: p.typ, RedOp: p.op, Root: int32(p.root), InPlace: p.inPlace})
		if err != nil {
			return nil, decisionError(fmt.Errorf("%s of %d elements: %w", s.fn.TestName(), p.count, err))
		}
		if i == 0 {
			first = outcome{choice: choice, plan: pl}
		}
		if *m, err = s.point(pl, i == 0 && last); err != nil {
			return nil, fmt.Errorf("%s of %d elements: %w", s.fn.TestName(), p.count, err)
		}
	}
	facts := s.facts(&row, &first)
	for _, c := range s.columns {
		row.Extra = append(row.Extra, c.value(facts))
	}
	s.rows = append(s.rows, row)
	s.own = append(s.own, toJSON(hostFacts{facts.Algo, facts.Proto, facts.Channels, facts.ModelUs, row.Out.TimeUs}))
	if s.flags.run.test.timestamps != 0 {
		row.Stamp = time.Now().Format(jsonTime)
	}
	return &row, nil
}

// hostFacts are what the JSON's own key tells of a row that CPUs ran.
type hostFacts struct {
	Algo       string  `json:"algo"`
	Proto      string  `json:"proto"`
	Channels   int     `json:"nchannels"`
	ModelUs    float64 `json:"model_us"` // what NCCL predicts for the machine of --topo, by which it chooses
	MeasuredUs float64 `json:"measured_us"`
}

// share is what every rank tells the others of a point.
type share struct {
	Time  units.Time
	Wrong int64
}

// point times one plan as nccl-tests does, and verifies it in a run of its own.
func (s *bench) point(pl *plan.Plan, traced bool) (nccltests.Measure, error) {
	var none nccltests.Measure
	ctx, t := s.team.ctx, &s.flags.run.test
	x, err := s.exec.Open(ctx, pl)
	if err != nil {
		return none, err
	}
	mine, err := s.timed(ctx, x, traced)
	if e := x.Close(err == nil); err == nil {
		err = e
	}
	if err != nil {
		return none, err
	}
	all, err := gather(s.team, mine)
	if err != nil {
		return none, err
	}
	m := nccltests.Measure{Checked: t.check != 0 && pl.DataDefined()}
	for _, o := range all {
		if m.Checked {
			m.Wrong += o.Wrong
		}
	}
	d := combine(all, t.average)
	m.TimeUs = d.Micros()
	m.AlgBW, m.BusBW = coll.Bandwidth(pl.Req.Func, pl.Req.Count, pl.Req.Type, pl.Comm.NRanks, d)
	return m, nil
}

// combine is -a: 0 rank 0's time, 1 the average, 2 the shortest, 3 the longest.
func combine(all []share, how int) units.Time {
	sum, lo, hi := units.Time(0), all[0].Time, all[0].Time
	for _, o := range all {
		sum, lo, hi = sum+o.Time, min(lo, o.Time), max(hi, o.Time)
	}
	switch how {
	case 0:
		return all[0].Time
	case 2:
		return lo
	case 3:
		return hi
	}
	return sum / units.Time(len(all))
}

func (s *bench) timed(ctx context.Context, x *host.Session, traced bool) (share, error) {
	t := &s.flags.run.test
	if t.warmup > 0 {
		if _, err := x.Iterate(ctx, t.warmup); err != nil {
			return share{}, err
		}
	}
	if err := s.team.barrier(); err != nil {
		return share{}, err
	}
	d, err := x.Iterate(ctx, t.iters)
	if err != nil {
		return share{}, err
	}
	mine := share{Time: d / units.Time(t.iters)}
	if t.check == 0 && !traced {
		return mine, nil
	}
	var sync []chrome.ClockSync
	if traced = traced && s.flags.run.out.trace != ""; traced {
		if sync, err = s.team.clocks(0); err != nil {
			return share{}, err
		}
	}
	if err := s.team.barrier(); err != nil {
		return share{}, err
	}
	if !traced {
		res, err := x.Run(ctx, trace.Discard)
		mine.Wrong = max(res.Wrong, 0)
		return mine, err
	}
	w, err := s.traceFile()
	if err != nil {
		return share{}, err
	}
	res, err := x.Run(ctx, w)
	mine.Wrong = max(res.Wrong, 0)
	if err != nil {
		w.Abort()
		return mine, err
	}
	w.Clock(x.Epoch(), sync)
	return mine, s.app.closeTrace(s.traceName(), w)
}

// traceName is the trace's file of this process.
func (s *bench) traceName() string {
	return s.team.fileName(s.app.path(s.flags.run.out.trace))
}

// clocks compares this process's clock with rank 0's, where there are others;
// far is how well it tells the times of the trace, in nanoseconds.
func (t *team) clocks(far int64) ([]chrome.ClockSync, error) {
	if t.boot == nil {
		return nil, nil
	}
	ahead, doubt, err := host.CompareClocks(t.boot, t.rank, t.nranks)
	return []chrome.ClockSync{{Rank: t.rank, OffsetNs: ahead, UncertaintyNs: doubt + far}}, err
}

// traceFile opens the trace of a process.
func (s *bench) traceFile() (*chrome.Writer, error) {
	meta := chrome.Meta{Source: "real", Version: version, NCCLRules: s.m.cfg.Rules.Version(), Topo: "sha256:" + s.m.digest,
		Seed: int64(s.flags.run.seed), Clock: "CLOCK_MONOTONIC"}
	for _, v := range s.m.settings() {
		meta.Env = append(meta.Env, trace.Str(v[0], v[1]))
	}
	if s.team.boot != nil && s.team.nranks > 1 {
		meta.Part = &chrome.Part{Rank: s.team.rank, Of: s.team.nranks}
	}
	w, err := chrome.Create(s.traceName(), chrome.Options{Meta: meta, Cancelled: s.app.cancelled})
	return w, input(err)
}

// devices lists the processes of all ranks where nccl-tests lists GPUs.
func (s *bench) devices() ([]nccltests.Device, error) {
	name, err := os.Hostname()
	if err != nil {
		name = "localhost"
	}
	out, err := gather(s.team, nccltests.Device{PID: os.Getpid(), Host: name})
	if err != nil {
		return nil, err
	}
	if s.team.boot == nil {
		out = slices.Repeat(out, s.team.nranks)
	}
	for r := range out {
		out[r].Rank, out[r].Name, out[r].BusID = r, "host memory", "0000:00:00"
	}
	return out, nil
}

// gather gives every process what each has to say.
func gather[T any](t *team, mine T) ([]T, error) {
	if t.boot == nil {
		return []T{mine}, nil
	}
	out := make([]T, t.nranks)
	b, err := json.Marshal(mine)
	if err != nil {
		return nil, err
	}
	all, err := t.boot.AllGather(b)
	if err != nil {
		return nil, err
	}
	for r, b := range all {
		if err := json.Unmarshal(b, &out[r]); err != nil {
			return nil, fmt.Errorf("what rank %d says: %w", r, err)
		}
	}
	return out, nil
}

// loopbackOnly tells whether all processes meet on this host.
func loopbackOnly(root string) bool {
	h, _, err := net.SplitHostPort(root)
	ip := net.ParseIP(h)
	return err == nil && (h == "localhost" || ip != nil && ip.IsLoopback())
}

var errDisagree = errors.New("ranks were started with different options")
