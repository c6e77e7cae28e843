package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/simccl/simccl/app/cli"
	"github.com/simccl/simccl/app/process"
	"github.com/simccl/simccl/app/report/sweep"
	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/internal/fail"
	"github.com/simccl/simccl/nccltests/options"
	"github.com/simccl/simccl/scenario"
	"github.com/simccl/simccl/workload/inputs"
	"github.com/spf13/cobra"
)

// spec is what the options of a run say.
func (r *runFlags) spec(a *app, cmd *cobra.Command, op string) (scenario.Spec, error) {
	s, err := r.machine.Spec(&a.App)
	if err != nil {
		return s, err
	}
	s.Machine.Split = options.Split(a.Getenv)
	if s.Workload, err = a.Pairs(r.test.workload(cmd, op), op, &r.test.Options); err != nil {
		return s, err
	}
	s.Network.Faults, s.Engine, s.Outputs = r.faults, r.engine(), r.out.outputs()
	s.Seed = r.seed
	return s, nil
}

// engine is how times are found.
func (r *runFlags) engine() scenario.Engine {
	e := scenario.Engine{Fidelity: r.fidelity, Fold: cli.OrDefault(r.fold, "auto"),
		Skip: cli.OrDefault(r.skip, "auto"), Jitter: cli.OrDefault(r.jitter, "drawn"),
		Launch: cli.OrDefault(r.launch, "eager"), Processes: r.procs, Threads: cli.OrDefault(r.test.Threads,
			1),
		Blocking: r.test.Blocking, CPUTime: r.test.CPUTime != 0, NoProof: r.test.Check == 0,
		Rivals: slices.Contains(strings.FieldsFunc(r.test.Columns, func(c rune) bool {
			return c == ',' || c == '+'
		}), sweep.Regret) || strings.Contains(r.test.Columns, "best")}
	if e.Launch == "" && r.test.Graph > 0 {
		e.Launch = "graph"
	}
	if e.Launch == "graph" && e.Blocking == 3 { // as nccl-tests does
		e.Blocking = 0
	}
	return e
}

// workload is the operation and what it goes through.
func (t *testFlags) workload(c *cobra.Command, op string) scenario.Workload {
	w := scenario.Workload{Op: op, Root: t.Root, Cycles: cli.OrDefault(t.Cycles, 1),
		Group: cli.OrDefault(t.Agg, 1)}
	if f, err := coll.ParseFunc(op); err == nil {
		w.Op = f.TestName()
	}
	if t.Sizes != "" {
		w.Sizes = strings.Split(t.Sizes, ",")
	}
	if w.Range = (scenario.Range{Min: t.Min, Max: t.Max, Step: t.Step, Factor: t.Factor}); swept(c) &&
		w.Range == (scenario.Range{}) {
		w.Range.Min = "32M" // nccl-tests' own, where a sweep is asked for that says nothing
	}
	if t.DataType != "float" {
		w.Types = []string{t.DataType}
	}
	if t.Op != "sum" {
		w.Reductions = []string{t.Op}
	}
	w.Buffers = [...]string{"", "registered", "windows"}[max(0, min(t.LocalRegister, 2))]
	w.CTAPolicy, w.Unalign = max(0, min(t.CTAPolicy, 2)), max(0, t.Unalign)
	w.Device, w.DeviceBlocks = t.Device, t.DeviceCTAs*min(t.Device*t.Device, 1)
	return w
}

// outputs are the files about one operation.
func (o *outputFlags) outputs() scenario.Outputs {
	out := scenario.Outputs{Trace: o.trace, Profile: o.profile, Ops: o.ops, Detail: cli.OrDefault(o.detail,
		"step"), Style: cli.OrDefault(o.style, "lanes"),
		Ranks: o.ranks, Deps: o.deps, MaxEvents: cli.OrDefault(o.events, defaultEvents), EventMask: o.mask}
	if o.events == 0 {
		out.MaxEvents = -1
	}
	return out
}

// readScenario reads a scenario file; placed gives errors about its members their
// line and column.
func (a *app) readScenario(name string) (scenario.Spec, func(error) error, error) {
	data, err := a.ReadAs(name, process.MaxSettings, inputs.Scenario)
	if err != nil {
		return scenario.Spec{}, nil, err
	}
	s, placed, err := scenario.ParsePlaced(data, name)
	if err == nil { // a flag outranks a file
		s = s.WithEnv(a.Env)
	}
	return s, func(err error) error {
		var f *scenario.FieldError
		if errors.As(err, &f) {
			return input(placed(err))
		}
		return err
	}, input(err)
}

// saveScenario writes what the options meant.
func (a *app) saveScenario(name string, s scenario.Spec) error {
	s = s.WithEnv(a.Env)
	opt := a.Options(nil)
	f, err := opt.Create(name)
	if err != nil {
		return input(err)
	}
	_, err = f.Write(s.JSON())
	if err = f.Finish(err); err == nil {
		a.Wrote(name, "run it with simccl run --scenario "+name)
	}
	return err
}

func newScenario(a *app) *cobra.Command {
	show := &cobra.Command{Use: "show FILE", Short: "Print a scenario as it is understood",
		Long: `show prints a scenario file as a Spec is written, with how many points its grid has
and the digest of the first: equal digests give equal results, with any file
are called.`,
		Example: "  simccl run all_reduce --nodes 4 --sizes 1M --save-scenario four.json\n" +
			"  simccl scenario show four.json",
		Args: cli.Exactly("FILE"),
		RunE: func(_ *cobra.Command, args []string) error {
			s, placed, err := a.readScenario(args[0])
			if err != nil {
				return err
			}
			points, digest, err := cli.Describe(&s, a.Options(nil))
			if err != nil {
				return placed(err)
			}
			if a.JSON {
				return a.PrintJSON(map[string]any{"points": points, "digest": digest, "spec": s})
			}
			_, err = fmt.Fprintf(a.Out, "%s# points %d, digest %s\n", s.JSON(), points, digest)
			return err
		}}
	check := &cobra.Command{Use: "check FILE…", Short: "Check scenario files and the files they name",
		Example: "  simccl run all_reduce --sizes 1M --save-scenario two.json && simccl scenario check " +
			"two.json", Args: cobra.ArbitraryArgs,
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usage("simccl scenario check: FILE missing")
			}
			return a.checkScenarios(args)
		}}
	return cli.Long(cli.Group("scenario", "Show and check scenario files", show, check),
		`A scenario file holds a whole run as JSON: machine, network, NCCL's settings and
workload. run --save-scenario writes one, run --scenario carries it out. check
names every mistake in a file with its line; show prints a file as a Spec is
written, and how many points its grid has.`)
}

// checkScenarios checks files; --json prints the verdicts as a list.
func (a *app) checkScenarios(names []string) error {
	type verdict struct {
		File  string `json:"file"`
		OK    bool   `json:"ok"`
		Error string `json:"error,omitempty"`
	}
	var errs []error
	var doc []verdict
	for _, name := range names {
		s, placed, err := a.readScenario(name)
		if err == nil {
			err = placed(cli.CheckFirst(&s, a.Options(nil)))
		}
		v := verdict{File: name, OK: err == nil}
		if err != nil {
			v.Error = err.Error()
		} else if !a.JSON {
			fmt.Fprintf(a.Out, "%s %s\n", a.Paint(a.Out).Green("ok"), name)
		}
		errs, doc = append(errs, err), append(doc, v)
	}
	if a.JSON {
		if err := a.PrintJSON(doc); err != nil {
			return err
		}
	}
	return fail.Join(errs...)
}
