package jobs

import (
	"context"

	"github.com/simccl/simccl/app/cli"
	"github.com/simccl/simccl/scenario"
	"github.com/simccl/simccl/study/replay"
	"github.com/simccl/simccl/workload/load"
)

// ReplayScenario simulates the job of a scenario file, workload.job, and prints replay's report. placed adds
// positions in the file to errors about the Spec.
func ReplayScenario(ctx context.Context, a *cli.App, spec scenario.Spec, placed func(error) error) error {
	j, err := scenario.PrepareJob(spec, a.Options(nil))
	if err != nil {
		return placed(err)
	}
	job := &load.Job{Program: j.Program, Meta: load.MetaInfo{GPU: j.Program.GPU.Name}}
	r, res, err := replay.Run(ctx, job, j.Program, j.Machine, replay.Options{Fidelity: j.Options.Fidelity,
		Host: 1, Observe: j.Options.Observe})
	if err != nil {
		return placed(err)
	}
	r.On(j.Site, j.Scaled, j.Note)
	if spec.Outputs.Trace != "" {
		if err := j.Site.TraceJob(&spec, a.Options(nil), res); err != nil {
			return placed(err)
		}
		a.WroteOf(spec.Outputs.Trace, "a timeline, ", "open it in https://ui.perfetto.dev")
	}
	if a.JSON {
		return a.PrintJSON(r)
	}
	return r.WriteText(a.Out, true)
}
