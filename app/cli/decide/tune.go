package decide

import (
	"context"
	"fmt"

	"github.com/simccl/simccl/app/cli"
	"github.com/simccl/simccl/study/decision"
	"github.com/spf13/cobra"
)

// TuneOptions are the flags and arguments of tune.
type TuneOptions struct{ Machine cli.Machine }

// Tune returns `simccl tune`.
func Tune(a *cli.App) *cobra.Command {
	var o TuneOptions
	c := &cobra.Command{Use: "tune", Short: "Print NCCL's cost table",
		Long: `tune prints latency (us) and bandwidth (GB/s) of every collective, algorithm and
protocol as NCCL's cost model has them; bandwidth 0 is off, and explain says
why.`,
		Example: "  simccl tune\n  simccl tune --topo topo.xml --nodes 4 --json",
		Args:    cli.Exactly(),
		RunE:    func(cmd *cobra.Command, _ []string) error { return o.Run(cmd.Context(), a) }}
	o.Machine.Register(c)
	return c
}

// Run prints the table.
func (o *TuneOptions) Run(_ context.Context, a *cli.App) error {
	x, err := o.Machine.Load(a)
	if err != nil {
		return err
	}
	if a.JSON {
		return a.PrintJSON(decision.Costs(x.Comm.Model))
	}
	_, err = fmt.Fprint(a.Out, decision.CostText(x.Comm.Model))
	return err
}
