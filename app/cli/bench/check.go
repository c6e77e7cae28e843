package bench

import (
	"context"
	"fmt"
	"math"

	"github.com/simccl/simccl/app/cli"
	"github.com/simccl/simccl/internal/fail"
	"github.com/simccl/simccl/sim/gpu"
	"github.com/simccl/simccl/study/calibrate"
	"github.com/spf13/cobra"
)

// CalibrateCheckOptions are the flags and arguments of check.
type CalibrateCheckOptions struct {
	Times  Times
	Within float64  // largest mean error of an operation; 0: none is too large
	Ops    []string // none: all
}

func checkClass(a *cli.App) *cobra.Command {
	var o CalibrateCheckOptions
	cmd := &cobra.Command{Use: "check DIR",
		Short: "Compare measured times with what a machine class predicts",
		Long: `check simulates every operation that the files of DIR measured (as fit reads
them) and prints by how much the class misses, by operation and size. With
--within it exits 7 where an operation's mean error is above that.`,
		Example: `  simccl calibrate check later/ --topo topo.xml --machine-class ./h200.json --within 0.05`,
		Args:    cli.Exactly("DIR"),
		RunE:    cli.RunWithOne(a, &o, &o.Times.Dir)}
	o.Times.register(cmd, "`FILE` or name of the class (default by the topology)")
	cmd.Flags().Float64Var(&o.Within, "within", 0,
		"largest mean `ERROR` of an operation, 0.05 for 5 % (default: none is too large)")
	cmd.Flags().StringSliceVar(&o.Ops, "ops", nil, "only these `OPERATIONS` (default all)")
	return cmd
}

// Run compares, and fails where an operation is further off than Within.
func (o *CalibrateCheckOptions) Run(ctx context.Context, a *cli.App) error {
	if o.Within < 0 || math.IsNaN(o.Within) {
		return fail.Usage("--within %v: a share like 0.05; 0 lets all pass", o.Within)
	}
	if err := o.Times.writable(a); err != nil {
		return err
	}
	points, class, err := o.Times.points(a, a.Path(o.Times.Dir))
	if err != nil {
		return err
	}
	if points, err = calibrate.Only(points, o.Ops); err != nil {
		return a.AsFlags(err)
	}
	res, err := calibrate.Check(ctx, points, &class)
	if err != nil {
		return err
	}
	if err := o.Times.writeResiduals(a, res); err != nil {
		return err
	}
	sums := calibrate.Summarise(res)
	if a.JSON {
		if err := a.PrintJSON(sums); err != nil {
			return err
		}
	} else {
		fmt.Fprintf(a.Out, "# %s\n%s", class.Summary(gpu.NoNetwork), calibrate.CheckText(res))
	}
	worst := calibrate.Worst(sums)
	if o.Within > 0 && worst.After.Mean > o.Within {
		return fail.Check("%s misses by %.1f %% on average, more than %.1f %%", worst.Op,
			100*worst.After.Mean, 100*o.Within)
	}
	return nil
}
