package main

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"

	"github.com/simccl/simccl/app/cli"
	"github.com/simccl/simccl/app/cli/flags"
	overlapcmd "github.com/simccl/simccl/app/cli/overlap"
	"github.com/simccl/simccl/internal/newfile"
	"github.com/simccl/simccl/real/measure"
	"github.com/simccl/simccl/sim/gpu"
	"github.com/simccl/simccl/study/calibrate"
	"github.com/spf13/cobra"
)

// calibrateFlags are the options of calibrate's commands.
type calibrateFlags struct {
	machine    cli.Machine // --topo, --multicast, --machine-class
	out        string
	name       string
	residuals  string
	holdout    int
	quantities []string
	within     float64
	ops        []string
	measure    measureFlags
	at         *calibrate.Lab // of points
}

func (c *calibrateFlags) registerMachine(cmd *cobra.Command, class string) {
	f := cmd.Flags()
	flags.Register(f, flags.In("",
		flags.Of(&c.machine.Topo, "topo", "", "", "topology `FILE` of one host (default DIR/topo.xml, else this machine)", "Topo"),
		flags.Of(&c.machine.Multicast, "multicast", "", "auto", "NVLink multicast: on, off, or auto: on where every GPU is "+
			"sm_90+ behind an NVSwitch", "machine.multicast", "Multicast"),
		flags.Of(&c.machine.Class, "machine-class", "", "", class, "machine.class")))
	f.StringVar(&c.residuals, "residuals", "", "write every point, measured and simulated, to `FILE`.csv")
}

func (c *calibrateFlags) registerFit(cmd *cobra.Command) {
	c.registerMachine(cmd, "where to start from: a `FILE` or a name (default by the topology)")
	f := cmd.Flags()
	f.StringVar(&c.out, "out", "machine-class.json", "`FILE` to write")
	f.StringVar(&c.name, "name", "", "name of the class (default the start's, with -calibrated)")
	f.IntVar(&c.holdout, "holdout", 2, "keep every `N`th size of an operation out of the fit, to judge it by")
	f.StringSliceVar(&c.quantities, "quantities", nil, "fit only these, by the `NAMES` of the file (default all that the data identify)")
}

func newCalibrate(a *app) *cobra.Command {
	var c calibrateFlags
	cmd := &cobra.Command{Use: "calibrate", Short: "Measure this machine and write its machine class",
		Long: `calibrate measures this machine with NCCL, in about three minutes, and fits the
physical quantities of the simulator (kernel gaps, flags, rates of copy loops,
link shares, caches) to what it measured. The file it writes is what
--machine-class of run and the other commands takes.

It starts one process a GPU for each of a list of settings (NCCL's own choices
twice, collectives beside compute, then algorithms, protocols and channels forced),
by CUDA graph replay.
fit does the second half alone, from tables that exist already; check reports how
well a class predicts measured times.`,
		Example: `  simccl calibrate --out h200.json
  simccl run all_reduce --topo topo.xml --machine-class ./h200.json
  simccl calibrate fit results/ --topo topo.xml --out h200.json
  simccl calibrate check results/ --machine-class ./h200.json --within 0.05`,
		Args: cli.Exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error { return c.all(a, cmd) }}
	c.registerFit(cmd)
	c.measure.register(cmd)
	cmd.AddCommand(newCalibrateFit(a), newCalibrateCheck(a), newCalibrateMeasure(a), newCalibrateSet(a))
	return cmd
}

func newCalibrateFit(a *app) *cobra.Command {
	var c calibrateFlags
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
		RunE: func(cmd *cobra.Command, args []string) error { return c.fit(a, cmd, a.Path(args[0])) }}
	c.registerFit(cmd)
	return cmd
}

func newCalibrateCheck(a *app) *cobra.Command {
	var c calibrateFlags
	cmd := &cobra.Command{Use: "check DIR", Short: "Compare measured times with what a machine class predicts",
		Long: `check simulates every operation that the files of DIR measured (as fit reads
them) and prints by how much the class misses, by operation and size. With
--within it exits 7 where an operation's mean error is above that.`,
		Example: `  simccl calibrate check later/ --topo topo.xml --machine-class ./h200.json --within 0.05`,
		Args:    cli.Exactly("DIR"),
		RunE:    func(cmd *cobra.Command, args []string) error { return c.check(a, cmd, a.Path(args[0])) }}
	c.registerMachine(cmd, "`FILE` or name of the class (default by the topology)")
	cmd.Flags().Float64Var(&c.within, "within", 0, "largest mean `ERROR` of an operation, 0.05 for 5 % (default: none is too large)")
	cmd.Flags().StringSliceVar(&c.ops, "ops", nil, "only these `OPERATIONS` (default all)")
	return cmd
}

// points is what fit and check begin with: the measured times, planned, and the
// class.
func (c *calibrateFlags) points(a *app, dir string) (points []calibrate.Point, class gpu.Class, err error) {
	if at, err := os.Stat(dir); err != nil {
		return nil, class, input(err)
	} else if !at.IsDir() {
		return nil, class, usage("%s: not a directory; write the one that holds the measured files", dir)
	}
	leftOut := func(line string) { fmt.Fprintf(a.Err, "simccl: left out: %s\n", line) }
	runs, err := calibrate.ReadAll(os.DirFS(dir), a.Env, leftOut, measure.TopologyFile, overlapcmd.FitFile) // read by themselves
	if err != nil {
		return nil, class, input(fmt.Errorf("%s: %w", dir, err))
	}
	lab, class, err := c.lab(a, dir)
	if err != nil {
		return nil, class, err
	}
	points, left, err := lab.Prepare(runs)
	for _, l := range left {
		leftOut(l)
	}
	if err != nil {
		return nil, class, input(err)
	}
	if !a.JSON {
		for _, r := range runs {
			fmt.Fprintf(a.Out, "# %s\n", r.Summary())
		}
	}
	return points, class, nil
}

// lab is the machine that the files of a directory were measured on.
func (c *calibrateFlags) lab(a *app, dir string) (*calibrate.Lab, gpu.Class, error) {
	m := c.machine
	if m.Topo == "" {
		file := filepath.Join(dir, measure.TopologyFile)
		if _, err := os.Stat(file); err == nil {
			m.Topo = file
		} else {
			text, err := a.thisHost().Topology()
			if err != nil {
				return nil, gpu.Class{}, fmt.Errorf("the machine of these times: no --topo, no %s, and %w", file, err)
			}
			m.Found = text
		}
	}
	spec, err := m.Spec(&a.App)
	if err != nil {
		return nil, gpu.Class{}, a.AsFlags(err)
	}
	lab, class, err := calibrate.NewLab(spec, a.Options(m.Found))
	c.at = lab
	return lab, class, a.AsFlags(err)
}

func (c *calibrateFlags) fit(a *app, cmd *cobra.Command, dir string) error {
	if c.holdout < 2 {
		return usage("--holdout %d: 2 keeps every second size out of the fit, 3 every third; a fit without any is worth nothing", c.holdout)
	}
	if err := c.writable(a); err != nil {
		return err
	}
	points, class, err := c.points(a, dir)
	if err != nil {
		return err
	}
	progress := a.Progress("rounds", fitRounds)
	res, err := calibrate.Fit(cmd.Context(), points, class, calibrate.Options{Holdout: c.holdout, Quantities: c.quantities, Rounds: fitRounds,
		Round: func(int, float64) { progress.Step() }})
	progress.End()
	if err != nil {
		if errors.Is(err, calibrate.ErrNoSuch) {
			return usage("--quantities: %v; a class file lists them", err)
		}
		return err
	}
	res.Describe(cmp.Or(c.name, calibrate.NameAfter(class.Name)), calibrate.Machine(points))
	beside, err := overlapcmd.Fit(cmd.Context(), &a.App, c.at, dir, &res.Class)
	if err == nil {
		err = newfile.Write(a.Path(c.out), res.Class.Format())
	}
	if err == nil {
		err = c.writeResiduals(a, res.Residuals)
	}
	if err != nil {
		return err
	}
	if a.JSON {
		return a.PrintJSON(res.Document())
	}
	fmt.Fprint(a.Out, res.Text(), beside)
	fmt.Fprintf(a.Out, "# written to %s: give it to --machine-class, with its path\n", c.out)
	return nil
}

// fitRounds bounds the search; it ends earlier where it gains nothing.
const fitRounds = 12

// writable fails before minutes are spent on what cannot be kept.
func (c *calibrateFlags) writable(a *app) error {
	if err := cli.Directory("--out", a.Path(c.out)); err != nil {
		return err
	}
	return cli.Directory("--residuals", a.Path(c.residuals))
}

// writeResiduals keeps the points where that is asked for.
func (c *calibrateFlags) writeResiduals(a *app, all []calibrate.Residual) error {
	if c.residuals == "" {
		return nil
	}
	return newfile.Write(a.Path(c.residuals), calibrate.CSV(all))
}

func (c *calibrateFlags) check(a *app, cmd *cobra.Command, dir string) error {
	if c.within < 0 || math.IsNaN(c.within) {
		return usage("--within %v: a share like 0.05; 0 lets all pass", c.within)
	}
	if err := c.writable(a); err != nil {
		return err
	}
	points, class, err := c.points(a, dir)
	if err != nil {
		return err
	}
	if points, err = calibrate.Only(points, c.ops); err != nil {
		return a.AsFlags(err)
	}
	res, err := calibrate.Check(cmd.Context(), points, &class)
	if err != nil {
		return err
	}
	if err := c.writeResiduals(a, res); err != nil {
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
	if c.within > 0 && worst.After.Mean > c.within {
		return failed("%s misses by %.1f %% on average, more than %.1f %%", worst.Op, 100*worst.After.Mean, 100*c.within)
	}
	return nil
}
