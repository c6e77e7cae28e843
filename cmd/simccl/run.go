package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/simccl/simccl/comm/ncclog"
	"github.com/simccl/simccl/report/nccltests"
	"github.com/simccl/simccl/report/page"
	"github.com/simccl/simccl/scenario"
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
	from     string // --scenario
	save     string // --save-scenario
}

func newRun(a *app) *cobra.Command {
	var r runFlags
	c := &cobra.Command{Use: "run OP", Short: "Simulate a sweep of sizes and print nccl-tests' table",
		Long: `run simulates an operation over a sweep of sizes, by NCCL's own schedule, and
prints nccl-tests' table. OP is all_reduce, all_gather, reduce_scatter,
broadcast, reduce, sendrecv, alltoall, gather or scatter, with or without _perf.
Options have nccl-tests' letters; without -b, -e, -f, -i: 8 B to 1 GiB, factor 2.

--scenario FILE takes machine, operation and files from a scenario file in place
of OP and options; --save-scenario FILE writes what the options meant as one.`,
		Example: `  simccl run all_reduce
  simccl run all_reduce_perf -b 8 -e 16M -f 8 -g 4 --topo topo.xml --nodes 4
  simccl run all_gather --sizes 96,1M --trace out.json.gz --ops flows.csv`,
		Args: r.operation,
		RunE: func(cmd *cobra.Command, args []string) error {
			s, err := r.prepare(a, cmd, args)
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
		return exactly()(cmd, args)
	}
	return exactly("OP")(cmd, args)
}

// register adds all options of a run.
func (r *runFlags) register(c *cobra.Command) {
	r.machine.register(c)
	r.machine.registerClass(c)
	r.test.register(c)
	r.registerTimes(c.Flags())
	c.Flags().BoolVar(&r.ncclLog, "nccl-log", false, "print what NCCL_DEBUG=INFO would show, on standard error")
	r.out.register(c.Flags())
	c.Flags().StringVar(&r.from, "scenario", "", "run the scenario `FILE` in place of OP and options")
	c.Flags().StringVar(&r.save, "save-scenario", "", "write what the options meant as a scenario `FILE`")
}

// registerTimes adds what times depend on beside machine and operation.
func (r *runFlags) registerTimes(f *pflag.FlagSet) {
	f.StringVar(&r.launch, "launch", "eager", "eager: one process a GPU, asynchronous launches; graph: device time alone")
	f.StringVar(&r.fidelity, "fidelity", "", "level of detail: alpha, NCCL's own formula; step, an ideal network; flow, the network of --fabric (default flow with one, else step)")
	f.StringVar(&r.fold, "fold", "auto", "what ranks simulate that behave alike: auto (those alike are one; beyond 512 ranks where need be also those nearly alike), exact, near, off")
	f.StringArrayVar(&r.faults, "fault", nil, "what is `BROKEN`: rank=3:slow=1.5, nic=node0/2:loss=0.001, link=leaf0~spine1:down; also latency=US; repeatable")
	f.IntVar(&r.procs, "procs", 0, "processes of a node, each with -t threads (default one a GPU; with -t one)")
	f.Uint64Var(&r.seed, "seed", 1, "seed of everything random")
}

// beside are the options of run that a scenario does not hold.
var beside = []string{"scenario", "save-scenario", "columns", "output-file", "nccl-log", "report", "measured", "iters", "warmup-iters", "env", "no-env", "json"}

// sweep is a table in the making: that of a run, or of a bench on CPUs.
type sweep struct {
	app     *app
	flags   *runFlags
	r       *scenario.Running
	config  nccltests.Config
	columns []column
	minBW   float64

	rows     []nccltests.Row
	own      []string
	facts    []*scenario.Facts
	summary  nccltests.Summary
	measured []page.Measured // for the page
}

// scenarioSpec is the Spec of a run; placed gives errors about its members the
// name of their option, or their place in the file.
func (r *runFlags) scenarioSpec(a *app, cmd *cobra.Command, args []string) (s scenario.Spec, placed func(error) error, err error) {
	if r.from == "" {
		s, err = r.spec(a, cmd, args[0])
		return s, asFlags, err
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

func (r *runFlags) prepare(a *app, cmd *cobra.Command, args []string) (*sweep, error) {
	s := &sweep{app: a, flags: r}
	spec, placed, err := r.scenarioSpec(a, cmd, args)
	if err != nil {
		return nil, err
	}
	if err := r.check(); err != nil {
		return nil, err
	}
	if s.columns, err = parseColumns(r.test.columns); err != nil {
		return nil, err
	}
	spec.Engine.Rivals = spec.Engine.Rivals || slices.ContainsFunc(s.columns, func(c column) bool { return c.rivals })
	if s.minBW, err = a.minBW(); err != nil {
		return nil, err
	}
	for _, f := range spec.Outputs.Files() {
		if err := directory(flagNames["outputs."+f.Member], f.Name); err != nil {
			return nil, err
		}
	}
	if s.r, err = scenario.Prepare(spec, a.options(r.machine.found)); err != nil {
		return nil, placed(err)
	}
	if s.config, err = r.header(s.r); err != nil {
		return nil, err
	}
	if r.save != "" {
		if err := a.saveScenario(r.save, spec); err != nil {
			return nil, err
		}
	}
	s.measured, err = s.readMeasured()
	return s, err
}

// header is what nccl-tests prints above its table.
func (r *runFlags) header(run *scenario.Running) (nccltests.Config, error) {
	t, e := &r.test, &run.Spec.Engine
	bounds, err := run.Spec.Workload.Bounds()
	if err != nil {
		return nccltests.Config{}, err
	}
	perThread, err := e.GPUsPerThread(run.Site.Cluster)
	c := nccltests.Config{Program: run.Func().TestName() + "_perf", NCCLHeaders: ncclVersionCode, NCCLLibrary: ncclVersionCode,
		Threads: max(e.Threads, 1), GPUs: run.Site.Cluster.Host(0).NRanks(), MinBytes: bounds.Min, MaxBytes: bounds.Max, StepFactor: bounds.Factor,
		StepBytes: bounds.StepBytes, Warmup: t.warmup, Iters: t.iters, AggIters: t.agg, Check: t.check, Graph: t.graph}
	if e.Launch == "graph" {
		c.Graph = max(t.graph, 1)
	}
	if perThread > 1 || e.Threads > 1 {
		c.GPUs = perThread
	}
	return c, err
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
	if err := r.out.check(); err != nil {
		return err
	}
	if err := directory("-J", r.test.output); err != nil {
		return err
	}
	return r.test.unsimulated(r.launch == "graph" || r.test.graph > 0)
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

// run goes through all sizes and prints.
func (s *sweep) run(ctx context.Context) error {
	site := s.r.Site
	table := nccltests.NewTable(s.app.out, columnHeads(s.columns)...)
	if !s.app.json {
		table.Preface(fmt.Sprintf("simccl %s simulated: topo=%s sha256=%s nccl-rules=%s seed=%d", version, site.Name, site.Digest[:12], ncclRules, cmp.Or(s.r.Spec.Seed, 1)))
		table.Preface(site.Class.Summary(site.Between()))
		table.Start(&s.config, devices(site))
	}
	if s.flags.ncclLog {
		if err := ncclog.WriteRank(s.app.err, site.Comm, 0); err != nil {
			return err
		}
	}
	if err := s.all(ctx, table); err != nil {
		return err
	}
	if !s.app.json {
		if err := table.Finish(&s.config, &s.summary); err != nil {
			return err
		}
		for _, note := range s.notes() {
			fmt.Fprintln(s.app.out, "# "+note)
		}
	}
	if err := s.outputs(ctx); err != nil {
		return err
	}
	if s.summary.Failed() {
		return belowMinBW(&s.summary)
	}
	return nil
}

// all simulates and prints every row.
func (s *sweep) all(ctx context.Context, table *nccltests.Table) error {
	n := len(s.r.Lines())
	told := s.app.progress("sizes", n)
	defer told.End()
	told.Follow(func() float64 { return s.r.Share() * float64(n) })
	bus := 0.0
	for row, err := range s.r.Rows(ctx) {
		if err != nil {
			return err
		}
		r := tableRow(row)
		for _, c := range s.columns {
			r.Extra = append(r.Extra, c.value(&row.Facts))
		}
		s.rows, s.facts, s.own = append(s.rows, r), append(s.facts, &row.Facts), append(s.own, toJSON(&row.Facts))
		bus += r.Out.BusBW + r.In.BusBW
		if !s.app.json {
			told.Clear()
			table.Row(&r)
		}
		told.Step()
	}
	s.summary = nccltests.Summary{AvgBusBW: bus / float64(2*n), MinBW: s.minBW}
	return nil
}

// tableRow is a row as nccl-tests prints it.
func tableRow(r *scenario.Row) nccltests.Row {
	measure := func(m *scenario.Measure) nccltests.Measure {
		return nccltests.Measure{TimeUs: m.Time.Micros(), AlgBW: m.AlgBW, BusBW: m.BusBW, Checked: m.Checked}
	}
	return nccltests.Row{Size: int64(r.Bytes), Count: r.Count, Type: r.Type, RedOp: cmp.Or(r.RedOp, "none"), Root: r.Root, Out: measure(&r.Out), In: measure(&r.In)}
}

// notes say which rows are approximate, and which plans are not proved, with the
// largest size as the example.
func (s *sweep) notes() []string {
	var near, unproved []string
	most := int64(-1)
	for i, f := range s.facts {
		if f.Near != "" {
			near = append(near, fmt.Sprintf("Near, not exact, within about %.0f %%: %s; --fold exact leaves nothing out", 100*f.Margin, f.Near))
		}
		if f.NotProved != "" {
			if unproved = append(unproved, f.NotProved); s.rows[i].Size > most {
				most, unproved[0] = s.rows[i].Size, f.NotProved
			}
		}
	}
	out := slices.Compact(near)
	if len(unproved) > 0 {
		out = append(out, fmt.Sprintf("#wrong is N/A in %d of %d rows: the proof of the plan (-c 1) is too large; that of %d B would have %s",
			len(unproved), len(s.rows), most, unproved[0]))
	}
	return out
}

func belowMinBW(s *nccltests.Summary) error {
	return failed("average bus bandwidth %.3f GB/s is below 0.9 of NCCL_TESTS_MIN_BW=%g", s.AvgBusBW, s.MinBW)
}

// devices lists the ranks as nccl-tests lists GPUs.
func devices(site *scenario.Site) []nccltests.Device {
	var out []nccltests.Device
	for _, d := range site.Devices() {
		out = append(out, nccltests.Device{Rank: d.Rank, Host: d.Host, Device: d.Dev, Name: d.Name, BusID: d.BusID})
	}
	return out
}

// outputs writes the files that were asked for.
func (s *sweep) outputs(ctx context.Context) error {
	told := s.app.progress("events", 0)
	defer told.End()
	err := s.r.Write(ctx, scenario.Listener{
		Phase: func(p scenario.Phase) {
			told.Phase(p.Name, p.Counts)
			told.Follow(p.Share)
		},
		Wrote: func(w scenario.Written) {
			told.End()
			s.app.wroteOutput(w)
		}})
	told.End()
	if err != nil {
		return asFlags(err)
	}
	if s.flags.out.report != "" {
		if err := s.writeReport(ctx); err != nil {
			return err
		}
	}
	return s.app.writeJSON(s.report(), s.flags.test.output)
}

// report is the whole run. A simulation has no clock: its start is the epoch.
func (s *sweep) report() *nccltests.Report {
	site := s.r.Site
	r := &nccltests.Report{Start: "1970-01-01 00:00:00", End: "1970-01-01 00:00:00", Args: append([]string{"simccl"}, s.app.args...),
		Config: s.config, Devices: devices(site), Rows: s.rows, Own: s.own, Summary: s.summary,
		Whole: toJSON(map[string]any{"machine_class": map[string]any{
			"name": site.Class.Name, "machine": site.Class.Machine, "source": site.Class.Source, "uncertainty": site.Class.Sure}})}
	for _, v := range site.Settings() {
		r.Env = append(r.Env, v[0]+"="+v[1])
	}
	return r
}
