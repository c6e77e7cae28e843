package bench

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/simccl/simccl/app/cli"
	"github.com/simccl/simccl/app/cli/flags"
	"github.com/simccl/simccl/internal/fail"
	"github.com/simccl/simccl/internal/newfile"
	"github.com/simccl/simccl/real/measure"
	"github.com/simccl/simccl/sim/gpu"
	"github.com/simccl/simccl/study/calibrate"
	"github.com/spf13/cobra"
)

// CalibrateOptions are the flags and arguments of calibrate: of the measurement and of the fit.
type CalibrateOptions struct {
	Measure MeasureOptions
	Fit     FitOptions
	Data    string // directory of the measured times; empty: a new one beside the class
}

// Calibrate returns `simccl calibrate`.
func Calibrate(a *cli.App) *cobra.Command {
	var o CalibrateOptions
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
		RunE: func(cmd *cobra.Command, _ []string) error { return o.Run(cmd.Context(), a) }}
	o.Fit.register(cmd)
	o.Measure.register(cmd)
	cmd.Flags().StringVar(&o.Data, "data", "",
		"keep the measured times in `DIR` (default a new one next to the file)")
	cmd.AddCommand(fitCommand(a), checkClass(a), measureCommand(a), measureSetCommand(a), computeCommand(a))
	return cmd
}

// Run measures, then fits.
func (o *CalibrateOptions) Run(ctx context.Context, a *cli.App) error {
	if _, err := measure.Count(o.Measure.GPUs); err != nil { // before anything is written
		return err
	}
	if err := o.Fit.writable(a); err != nil {
		return err
	}
	dir := o.Data
	if dir == "" {
		var err error
		name := strings.TrimSuffix(filepath.Base(o.Fit.Out), ".json") + "-times-"
		if dir, err = os.MkdirTemp(filepath.Dir(a.Path(o.Fit.Out)), name); err != nil {
			return fail.Input(err)
		}
	} else {
		dir = a.Path(dir)
	}
	if err := o.Measure.into(ctx, a, dir); err != nil {
		return err
	}
	return o.Fit.from(ctx, a, dir)
}

// Times are measured times and the machine on which they were measured.
type Times struct {
	Dir       string      // of the measured files
	Machine   cli.Machine // Topo, Multicast and Class
	Residuals string      // a file to be written: every point, measured and simulated

	at *calibrate.Lab // of points
}

// register declares the options; class is the help of --machine-class.
func (t *Times) register(cmd *cobra.Command, class string) {
	flags.Register(cmd.Flags(), flags.In("",
		flags.Of(&t.Machine.Topo, "topo", "", "",
			"topology `FILE` of one host (default DIR/topo.xml, else this machine)", "Topo"),
		flags.Of(&t.Machine.Multicast, "multicast", "", "auto",
			"NVLink multicast: on, off, or auto: on where every GPU is "+
				"sm_90+ behind an NVSwitch", "machine.multicast", "Multicast"),
		flags.Of(&t.Machine.Class, "machine-class", "", "", class, "machine.class"),
		flags.Of(&t.Residuals, "residuals", "", "",
			"write every point, measured and simulated, to `FILE`.csv")))
}

// points returns what fit and check start with: the measured times with their plans, and the class.
func (t *Times) points(a *cli.App, dir string) (points []calibrate.Point, class gpu.Class, err error) {
	if at, err := os.Stat(dir); err != nil {
		return nil, class, fail.Input(err)
	} else if !at.IsDir() {
		return nil, class, fail.Usage("%s: not a directory; write the one that holds the measured files", dir)
	}
	leftOut := func(line string) { fmt.Fprintf(a.Notes(), "simccl: left out: %s\n", line) }
	// read by themselves
	runs, err := calibrate.ReadAll(os.DirFS(dir), a.Env, leftOut, measure.TopologyFile, fitFile)
	if err != nil {
		return nil, class, fail.Input(fmt.Errorf("%s: %w", dir, err))
	}
	lab, class, err := t.lab(a, dir)
	if err != nil {
		return nil, class, err
	}
	points, left, err := lab.Prepare(runs)
	for _, l := range left {
		leftOut(l)
	}
	if err != nil {
		return nil, class, fail.Input(err)
	}
	if !a.JSON {
		for _, r := range runs {
			fmt.Fprintf(a.Out, "# %s\n", r.Summary())
		}
	}
	return points, class, nil
}

// lab returns the machine on which the files of a directory were measured.
func (t *Times) lab(a *cli.App, dir string) (*calibrate.Lab, gpu.Class, error) {
	m := t.Machine
	if m.Topo == "" {
		file := filepath.Join(dir, measure.TopologyFile)
		if _, err := os.Stat(file); err == nil {
			m.Topo = file
		} else {
			text, err := a.Host().Topology()
			if err != nil {
				return nil, gpu.Class{}, fmt.Errorf("the machine of these times: no --topo, no %s, and %w",
					file, err)
			}
			m.Found = text
		}
	}
	spec, err := m.Spec(a)
	if err != nil {
		return nil, gpu.Class{}, a.AsFlags(err)
	}
	lab, class, err := calibrate.NewLab(spec, a.Options(m.Found))
	t.at = lab
	return lab, class, a.AsFlags(err)
}

// writeResiduals writes the points to the file of --residuals, if it is given.
func (t *Times) writeResiduals(a *cli.App, all []calibrate.Residual) error {
	if t.Residuals == "" {
		return nil
	}
	return newfile.Write(a.Path(t.Residuals), calibrate.CSV(all))
}

// writable checks that the outputs can be written, before minutes are spent on measuring.
func (t *Times) writable(a *cli.App) error {
	return cli.Directory("--residuals", a.Path(t.Residuals))
}
