package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/comm"
	"github.com/simccl/simccl/exec"
	"github.com/simccl/simccl/explain"
	"github.com/simccl/simccl/plan"
	"github.com/simccl/simccl/report/nccltests"
	"github.com/simccl/simccl/report/page"
	"github.com/simccl/simccl/topo"
	"github.com/simccl/simccl/topo/fabric"
	"github.com/simccl/simccl/trace"
	"github.com/simccl/simccl/trace/nccltrace"
	"github.com/simccl/simccl/tuning"
	"github.com/simccl/simccl/units"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// runFlags are the options of run beside machine and sizes.
type runFlags struct {
	machine  machineFlags
	test     testFlags
	launch   string
	fidelity string
	fold     string
	faults   []string
	procs    int
	ncclLog  bool
	seed     uint64
	out      outputFlags
}

func newRun(a *app) *cobra.Command {
	var r runFlags
	c := &cobra.Command{Use: "run OP", Short: "Simulate a sweep of sizes and print nccl-tests' table",
		Long: `run simulates an operation over a sweep of sizes, by NCCL's own schedule, and
prints nccl-tests' table. OP is all_reduce, all_gather, reduce_scatter,
broadcast, reduce, sendrecv, alltoall, gather or scatter, with or without _perf.
Options have nccl-tests' letters; without -b, -e, -f, -i: 8 B to 1 GiB, factor 2.`,
		Example: `  simccl run all_reduce
  simccl run all_reduce_perf -b 8 -e 16M -f 8 -g 4 --topo topo.xml --nodes 4
  simccl run all_gather --sizes 96,1M --trace out.json.gz --ops flows.csv`,
		Args: exactly("OP"),
		RunE: func(cmd *cobra.Command, args []string) error {
			s, err := r.prepare(a, cmd, args[0])
			if err != nil {
				return err
			}
			return s.run(cmd.Context())
		}}
	r.register(c)
	return c
}

// register adds all options of a run.
func (r *runFlags) register(c *cobra.Command) {
	r.machine.register(c)
	r.machine.registerClass(c)
	r.test.register(c)
	r.registerTimes(c.Flags())
	c.Flags().BoolVar(&r.ncclLog, "nccl-log", false, "print what NCCL_DEBUG=INFO would show, on standard error")
	r.out.register(c.Flags())
}

// registerTimes adds what times depend on beside machine and operation.
func (r *runFlags) registerTimes(f *pflag.FlagSet) {
	f.StringVar(&r.launch, "launch", "eager", "eager: one process a GPU, asynchronous launches; graph: device time alone")
	f.StringVar(&r.fidelity, "fidelity", "", "level of detail: alpha, NCCL's own formula; step, an ideal network; flow, the network of --fabric (default flow with one, else step)")
	f.StringVar(&r.fold, "fold", "auto", "what ranks simulate that behave alike: "+foldWords)
	f.StringArrayVar(&r.faults, "fault", nil, "what is `BROKEN`: rank=3:slow=1.5, nic=node0/2:loss=0.001, link=leaf0~spine1:down; also latency=US; repeatable")
	f.IntVar(&r.procs, "procs", 0, "processes of a node, each with -t threads (default one a GPU; with -t one)")
	f.Uint64Var(&r.seed, "seed", 1, "seed of everything random")
}

// sweep is a prepared run.
type sweep struct {
	app     *app
	m       *machine
	flags   *runFlags
	fn      coll.Func
	sizes   []size
	config  nccltests.Config
	types   []coll.DataType
	ops     []coll.RedOp
	roots   []int
	columns []column
	minBW   float64
	// perThread counts the GPUs that a host thread launches for.
	perThread int

	rows     []nccltests.Row
	own      []string
	summary  nccltests.Summary
	measured []page.Measured // for the page
	near     []string        // of each row that is near and not exact, what was left out
	unproved []unproved      // the rows whose plans are too large for their proofs
	pool     *pool
}

func (r *runFlags) prepare(a *app, cmd *cobra.Command, op string) (*sweep, error) {
	s := &sweep{app: a, flags: r}
	var err error
	if s.fn, err = coll.ParseFunc(op); err != nil {
		return nil, err
	}
	if err := r.check(); err != nil {
		return nil, err
	}
	var bounds coll.Sweep
	if s.sizes, bounds, err = r.test.list(cmd); err != nil {
		return nil, err
	}
	if s.types, err = r.test.types(); err != nil {
		return nil, err
	}
	if s.ops, err = r.test.ops(s.fn); err != nil {
		return nil, err
	}
	if s.columns, err = parseColumns(r.test.columns); err != nil {
		return nil, err
	}
	if s.minBW, err = a.minBW(); err != nil {
		return nil, err
	}
	if s.m, err = r.machine.load(a); err != nil {
		return nil, err
	}
	if err := s.m.comm.CheckNets(); err != nil {
		return nil, err
	}
	if w := explain.PeerChannels(s.m.comm); w != "" && s.fn.IsP2P() {
		a.warn("%s", w)
	}
	if s.roots, err = r.test.roots(s.fn, s.m.comm.NRanks); err != nil {
		return nil, err
	}
	if _, err = r.out.options(s.m.comm.NRanks); err != nil {
		return nil, err
	}
	if s.perThread, err = r.gpusOfThread(s.m); err != nil {
		return nil, err
	}
	if _, err = r.executor(s.m, nccltrace.Options{}, nil); err != nil {
		return nil, err
	}
	t := &r.test
	s.config = nccltests.Config{Program: s.fn.TestName() + "_perf", NCCLHeaders: ncclVersionCode, NCCLLibrary: ncclVersionCode,
		Threads: t.threads, GPUs: s.m.cluster.Host(0).NRanks(), MinBytes: bounds.Min, MaxBytes: bounds.Max, StepFactor: bounds.Factor,
		StepBytes: bounds.StepBytes, Warmup: t.warmup, Iters: t.iters, AggIters: t.agg, Check: t.check, Graph: r.graphs()}
	if s.perThread > 1 || t.threads > 1 {
		s.config.GPUs = s.perThread
	}
	s.measured, err = s.readMeasured()
	return s, err
}

// gpusOfThread is how many GPUs one host thread launches for: of --procs
// processes with -t threads each.
func (r *runFlags) gpusOfThread(m *machine) (int, error) {
	threads, procs := max(r.test.threads, 1), r.procs
	if procs == 0 && threads == 1 {
		return 1, nil // a process a GPU
	}
	procs = max(procs, 1)
	most := 0
	for h := range m.cluster.NHosts() {
		n := m.cluster.Host(h).NRanks()
		if n%(procs*threads) != 0 {
			return 0, usage("--procs %d -t %d: %d GPUs of a node cannot be shared out evenly to so many threads", procs, threads, n)
		}
		most = max(most, n/(procs*threads))
	}
	return most, nil
}

func (r *runFlags) graphs() int {
	if r.launch == "graph" {
		return max(r.test.graph, 1)
	}
	return r.test.graph
}

// check refuses values that mean nothing before anything is computed.
func (r *runFlags) check() error {
	switch {
	case r.test.iters < 1:
		return usage("-n %d: at least one operation is timed", r.test.iters)
	case r.test.cycles < 1:
		return usage("-N %d: run_cycles from 1 on; the number of nodes is --nodes", r.test.cycles)
	case r.test.warmup < 0:
		return usage("-w %d: cannot be below 0", r.test.warmup)
	}
	if err := r.checkTimes(); err != nil {
		return err
	}
	if err := r.out.check(); err != nil {
		return err
	}
	if err := directory("-J", r.test.output); err != nil {
		return err
	}
	return r.test.unsimulated(r.graphs() > 0)
}

// checkTimes refuses values of what registerTimes adds.
func (r *runFlags) checkTimes() error {
	if r.launch != "eager" && r.launch != "graph" {
		return usage("--launch %s: write eager or graph", r.launch)
	}
	if r.procs < 0 || r.test.threads < 0 {
		return usage("--procs %d -t %d: neither can be below 0", r.procs, r.test.threads)
	}
	if _, ok := foldings[r.fold]; !ok {
		return usage("--fold %s: write %s", r.fold, foldWords)
	}
	return r.checkFidelity()
}

// minBW reads NCCL_TESTS_MIN_BW as nccl-tests does; -1 where it is unset. Its
// variables that would make another run of this one are refused.
func (a *app) minBW() (float64, error) {
	v := -1.0
	for _, name := range []string{"NCCL_TESTS_SPLIT_MASK", "NCCL_TESTS_SPLIT"} {
		if text, ok := a.getenv(name); ok && text != "" {
			return 0, notYet(name+"="+text, "groups of ranks that run at the same time; unset it")
		}
	}
	if text, ok := a.getenv("NCCL_TESTS_MIN_BW"); ok && text != "" {
		if _, err := fmt.Sscanf(text, "%g", &v); err != nil {
			return 0, usage("NCCL_TESTS_MIN_BW=%s: not a number of GB/s", text)
		}
	}
	return v, nil
}

// getenv looks at --env, then at the environment.
func (a *app) getenv(name string) (string, bool) {
	for i := len(a.env) - 1; i >= 0; i-- {
		if v, ok := strings.CutPrefix(a.env[i], name+"="); ok {
			return v, true
		}
	}
	if !a.noEnv {
		for _, e := range a.environ {
			if v, ok := strings.CutPrefix(e, name+"="); ok {
				return v, true
			}
		}
	}
	return "", false
}

// point is one operation to simulate; equal ones are simulated once.
type point struct {
	typ     coll.DataType
	op      coll.RedOp
	root    int
	count   int64
	inPlace bool
}

// operation is the point as the communicator plans it.
func (p point) operation(f coll.Func) comm.Op {
	return comm.Op{Func: f, Count: p.count, Type: p.typ, RedOp: p.op, Root: int32(p.root), InPlace: p.inPlace}
}

// sends tells whether the operation is made of sends and receives: one of one
// rank may be a copy, or nothing.
func (o *outcome) sends() bool {
	if o.plan == nil || !o.plan.Req.Func.IsP2P() {
		return false
	}
	one := o.plan.OneRank()
	return one == plan.NotOneRank || one == plan.SelfSend
}

// outcome is what became of a point.
type outcome struct {
	choice  tuning.Choice
	plan    *plan.Plan
	result  exec.Result
	checked bool
	tooBig  string   // what of the plan is too large for its proof; empty: nothing
	best    *outcome // the fastest of all choices, where that is asked for
}

// run goes through all sizes and prints.
func (s *sweep) run(ctx context.Context) error {
	table := nccltests.NewTable(s.app.out, columnHeads(s.columns)...)
	if !s.app.json {
		table.Preface(fmt.Sprintf("simccl %s simulated: topo=%s sha256=%s nccl-rules=%s seed=%d", version, s.m.name, s.m.digest[:12], ncclRules, s.flags.seed))
		table.Preface(s.m.class.Summary(s.m.between()))
		table.Start(&s.config, s.devices())
	}
	if s.flags.ncclLog {
		if err := s.m.ncclLog(s.app.err); err != nil {
			return err
		}
	}
	lines := s.lines()
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	s.pool = s.start(ctx, lines)
	bus := 0.0
	told := s.app.progress("sizes", len(lines))
	told.follow(func() float64 { return s.pool.reached() * float64(len(lines)) })
	for _, l := range lines {
		row, err := s.row(l)
		if err != nil {
			told.end()
			return err
		}
		bus += row.Out.BusBW + row.In.BusBW
		if !s.app.json {
			told.clear()
			table.Row(row)
		}
		told.step()
	}
	told.end()
	s.summary = nccltests.Summary{AvgBusBW: bus / float64(2*len(lines)), MinBW: s.minBW}
	if !s.app.json {
		if err := table.Finish(&s.config, &s.summary); err != nil {
			return err
		}
		for _, note := range append(s.nearNotes(), s.proofNotes(len(lines))...) {
			fmt.Fprintln(s.app.out, "# "+note)
		}
	}
	if err := s.outputs(ctx, lines[len(lines)-1]); err != nil {
		return err
	}
	if s.summary.Failed() {
		return belowMinBW(&s.summary)
	}
	return nil
}

func belowMinBW(s *nccltests.Summary) error {
	return failed("average bus bandwidth %.3f GB/s is below 0.9 of NCCL_TESTS_MIN_BW=%g", s.AvgBusBW, s.MinBW)
}

// line is one row to come.
type line struct {
	point  // out of place
	shown  units.Bytes
	column int // the root as printed
}

// lines lists the rows in the order in which nccl-tests prints them.
func (s *sweep) lines() []line {
	var out []line
	for _, typ := range s.types {
		for _, op := range s.ops {
			for _, root := range s.roots {
				for range s.flags.test.cycles {
					for _, sz := range s.sizes {
						count, shown := sz.count(s.fn, typ, s.m.comm.NRanks)
						out = append(out, line{point{typ, op, max(root, 0), count, false}, shown, root})
					}
				}
			}
		}
	}
	return out
}

// row makes one line of the table of its two simulations.
func (s *sweep) row(l line) (*nccltests.Row, error) {
	row := nccltests.Row{Size: int64(l.shown), Count: l.count, Type: l.typ.TestName(), RedOp: "none", Root: l.column}
	if s.fn.PrintsRedOp() {
		row.RedOp = l.op.TestName()
	}
	p := l.point
	var first outcome
	for i, m := range []*nccltests.Measure{&row.Out, &row.In} {
		p.inPlace = i == 1
		o, err := s.pool.wait(p)
		if err != nil {
			return nil, err
		}
		if i == 0 {
			first = o
		}
		alg, bus := coll.Bandwidth(s.fn, p.count, p.typ, s.m.comm.NRanks, o.result.Elapsed)
		*m = nccltests.Measure{TimeUs: o.result.Elapsed.Micros(), AlgBW: alg, BusBW: bus, Checked: o.checked}
	}
	facts := s.facts(&row, &first)
	if facts.Near != "" {
		s.near = append(s.near, fmt.Sprintf("within about %.0f %%: %s", 100*facts.Margin, facts.Near))
	}
	if first.tooBig != "" {
		s.unproved = append(s.unproved, unproved{row.Size, first.tooBig})
	}
	for _, c := range s.columns {
		row.Extra = append(row.Extra, c.value(facts))
	}
	s.rows = append(s.rows, row)
	s.own = append(s.own, facts.json())
	return &row, nil
}

// plan chooses and plans one operation, and proves the plan if it is asked for
// and not too large. It is safe for concurrent use.
func (s *sweep) plan(p point, prove bool) (outcome, error) {
	pl, choice, err := s.m.comm.Plan(p.operation(s.fn))
	if err != nil {
		return outcome{}, decisionError(fmt.Errorf("%s of %d elements: %w", s.fn.TestName(), p.count, err))
	}
	o := outcome{choice: choice, plan: pl}
	if prove && s.flags.test.check != 0 && pl.DataDefined() {
		if err := o.prove(); err != nil {
			return outcome{}, fmt.Errorf("%s of %d elements: %w", s.fn.TestName(), p.count, err)
		}
	}
	return o, nil
}

// simulate plans and runs one operation. It is safe for concurrent use.
func (s *sweep) simulate(ctx context.Context, p point, sink trace.Sink, opt nccltrace.Options) (outcome, error) {
	return s.simulateTold(ctx, p, sink, opt, nil)
}

// simulateTold is simulate that tells how far it is, where tell is not nil.
func (s *sweep) simulateTold(ctx context.Context, p point, sink trace.Sink, opt nccltrace.Options, tell func(float64)) (outcome, error) {
	if p.count == 0 { // NCCL returns without a launch
		return outcome{checked: s.flags.test.check != 0}, nil
	}
	o, err := s.plan(p, sink == trace.Discard)
	if err != nil {
		return outcome{}, err
	}
	return s.execute(ctx, o, sink, opt, tell)
}

// execute runs what was planned. It is safe for concurrent use.
func (s *sweep) execute(ctx context.Context, o outcome, sink trace.Sink, opt nccltrace.Options, tell func(float64)) (outcome, error) {
	if s.flags.fidelity == "alpha" {
		return s.formula(o, sink)
	}
	x, err := s.flags.executor(s.m, opt, tell)
	if err != nil {
		return outcome{}, err
	}
	if o.result, err = x.Run(ctx, exec.One(o.plan), sink); err != nil {
		return outcome{}, runError(err)
	}
	return o, nil
}

func runError(err error) error {
	if errors.Is(err, plan.ErrUnsupported) {
		return &statusError{code: exitNotImplemented, err: err}
	}
	var parted *fabric.NoRouteError
	var apart *fabric.NoTreeError
	if errors.As(err, &parted) || errors.As(err, &apart) {
		return input(err)
	}
	return err
}

// devices lists the ranks as nccl-tests lists GPUs.
func (s *sweep) devices() []nccltests.Device {
	out := make([]nccltests.Device, s.m.comm.NRanks)
	for r := range out {
		p := s.m.cluster.Locate(r)
		g := p.System.Nodes[p.GPU].GPU
		id := topo.BusID(g.BusID)
		name := g.Name
		if name == "" {
			name = fmt.Sprintf("sm_%d", g.SM)
		}
		out[r] = nccltests.Device{Rank: r, Host: s.m.cluster.HostName(p.Host), Device: g.Dev, Name: name,
			BusID: fmt.Sprintf("%04x:%02x:%02x", id>>20, id>>12&0xff, id>>4&0xff)}
	}
	return out
}
