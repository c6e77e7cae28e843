package bench

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/simccl/simccl/app/cli"
	"github.com/simccl/simccl/internal/fail"
	"github.com/simccl/simccl/internal/newfile"
	"github.com/simccl/simccl/study/calibrate"
	"github.com/spf13/cobra"
)

// FitOptions are the flags and arguments of fit.
type FitOptions struct {
	Times      Times
	Out        string   // the class
	Name       string   // of the class; empty: after the one that the fit starts from
	Holdout    int      // every Holdout-th size of an operation is held out
	Quantities []string // to be fitted; none: all that the data identify
}

func (o *FitOptions) register(cmd *cobra.Command) {
	o.Times.register(cmd, "where to start from: a `FILE` or a name (default by the topology)")
	f := cmd.Flags()
	f.StringVar(&o.Out, "out", "machine-class.json", "`FILE` to write")
	f.StringVar(&o.Name, "name", "", "name of the class (default the start's, with -calibrated)")
	f.IntVar(&o.Holdout, "holdout", 2, "keep every `N`th size of an operation out of the fit, to judge it by")
	f.StringSliceVar(&o.Quantities, "quantities", nil,
		"fit only these, by the `NAMES` of the file (default all that the data identify)")
}

func fitCommand(a *cli.App) *cobra.Command {
	var o FitOptions
	cmd := &cobra.Command{Use: "fit DIR", Short: "Fit a machine class to measured times",
		Long: `fit reads the tables of nccl-tests (.txt, .log, .out), the JSON of its -J and
those of simccl bench, simulates every measured operation under the settings it
was measured with, and moves the class's quantities until they agree. Every
second size is held out: the errors on those are what the class is worth.

Settings (NCCL_ALGO=… and the like) are taken from the file itself (JSON holds
the environment; comments may hold a command line), else from the file's name,
whose parts like Ring, Tree, LL, LL128, Simple, ch4 denote them; lines
PATTERN NCCL_NAME=VALUE … of DIR/settings.txt add to that, and --env holds where
none of them says otherwise. beside_busy, beside_traffic and beside_wait are fitted
to the table of overlap in DIR/overlap.txt. Say --multicast off, or NCCL_NVLS_ENABLE=0, where
NVLink multicast was off: files rarely say.`,
		Example: `  simccl calibrate fit results/ --topo topo.xml --out a100.json
  simccl calibrate fit results/ --topo topo.xml --holdout 3 --residuals points.csv`,
		Args: cli.Exactly("DIR"),
		RunE: cli.RunWithOne(a, &o, &o.Times.Dir)}
	o.register(cmd)
	return cmd
}

// fitRounds is the largest number of rounds of the search, which ends earlier if it makes no progress.
const fitRounds = 12

// writable checks that the outputs can be written, before minutes are spent on the fit.
func (o *FitOptions) writable(a *cli.App) error {
	if err := cli.Directory("--out", a.Path(o.Out)); err != nil {
		return err
	}
	return o.Times.writable(a)
}

// Run fits a machine class to the measurements in o.Times.Dir and writes it to o.Out.
func (o *FitOptions) Run(ctx context.Context, a *cli.App) error {
	return o.from(ctx, a, a.Path(o.Times.Dir))
}

// from fits a class to the times of a directory.
func (o *FitOptions) from(ctx context.Context, a *cli.App, dir string) error {
	if o.Holdout < 2 {
		return fail.Usage("--holdout %d: 2 keeps every second size out of the fit, 3 every third; a fit "+
			"without any is worth nothing", o.Holdout)
	}
	if err := o.writable(a); err != nil {
		return err
	}
	points, class, err := o.Times.points(a, dir)
	if err != nil {
		return err
	}
	progress := a.Progress("rounds", fitRounds)
	res, err := calibrate.Fit(ctx, points, class, calibrate.Options{
		Holdout: o.Holdout, Quantities: o.Quantities, Rounds: fitRounds,
		Round: func(int, float64) { progress.Step() }})
	progress.End()
	if err != nil {
		if errors.Is(err, calibrate.ErrNoSuch) {
			return fail.Usage("--quantities: %v; a class file lists them", err)
		}
		return err
	}
	res.Describe(cmp.Or(o.Name, calibrate.NameAfter(class.Name)), calibrate.Machine(points))
	beside, err := fitOverlap(ctx, a, o.Times.at, dir, &res.Class)
	if err == nil {
		err = newfile.Write(a.Path(o.Out), res.Class.Format())
	}
	if err == nil {
		err = o.Times.writeResiduals(a, res.Residuals)
	}
	if err != nil {
		return err
	}
	if a.JSON {
		return a.PrintJSON(res.Document())
	}
	fmt.Fprint(a.Out, res.Text(), beside)
	fmt.Fprintf(a.Out, "# written to %s: give it to --machine-class, with its path\n", o.Out)
	return nil
}
