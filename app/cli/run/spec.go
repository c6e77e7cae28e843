package run

import (
	"slices"
	"strings"

	"github.com/simccl/simccl/app/cli"
	"github.com/simccl/simccl/app/report/sweep"
	"github.com/simccl/simccl/internal/fail"
	"github.com/simccl/simccl/nccltests/options"
	"github.com/simccl/simccl/scenario"
)

// Spec converts the flags of a run to a Spec.
func (r *RunOptions) Spec(a *cli.App) (scenario.Spec, error) {
	s, err := r.Machine.Spec(a)
	if err != nil {
		return s, err
	}
	s.Machine.Split = options.Split(a.Getenv)
	if s.Workload, err = a.Pairs(r.Test.Workload(r.Op), r.Op, &r.Test.Options); err != nil {
		return s, err
	}
	s.Workload.Kernel, s.Workload.Serving = r.Kernel, r.Serving
	s.Network.Faults, s.Engine, s.Outputs = r.Faults, r.engine(), r.Outputs.spec()
	s.Seed = r.Seed
	return s, nil
}

// engine converts the flags that control how times are found.
func (r *RunOptions) engine() scenario.Engine {
	e := scenario.Engine{Fidelity: r.Fidelity, Fold: cli.OrDefault(r.Fold, "auto"),
		Skip: cli.OrDefault(r.Skip, "auto"), Jitter: cli.OrDefault(r.Jitter, "drawn"),
		Launch: cli.OrDefault(r.Launch, "eager"), Processes: r.Processes,
		Threads:  cli.OrDefault(r.Test.Threads, 1),
		Blocking: r.Test.Blocking, CPUTime: r.Test.CPUTime != 0, NoProof: r.Test.Check == 0,
		Rivals: slices.Contains(strings.FieldsFunc(r.Test.Columns, func(c rune) bool {
			return c == ',' || c == '+'
		}), sweep.Regret) || strings.Contains(r.Test.Columns, "best")}
	if e.Launch == "" && r.Test.Graph > 0 {
		e.Launch = "graph"
	}
	if e.Launch == "graph" && e.Blocking == 3 { // as nccl-tests does
		e.Blocking = 0
	}
	return e
}

// saveSpec writes the Spec of a run as a scenario file.
func saveSpec(a *cli.App, name string, s scenario.Spec) error {
	s = s.WithEnv(a.Env)
	opt := a.Options(nil)
	f, err := opt.Create(name)
	if err != nil {
		return fail.Input(err)
	}
	_, err = f.Write(s.JSON())
	if err = f.Finish(err); err == nil {
		a.Wrote(name, "run it with simccl run --scenario "+name)
	}
	return err
}
