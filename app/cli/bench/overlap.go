package bench

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/simccl/simccl/app/cli"
	"github.com/simccl/simccl/app/process"
	"github.com/simccl/simccl/internal/fail"
	"github.com/simccl/simccl/job"
	"github.com/simccl/simccl/scenario"
	"github.com/simccl/simccl/sim/gpu"
	"github.com/simccl/simccl/study/calibrate"
	"github.com/simccl/simccl/study/overlap"
	"github.com/simccl/simccl/study/replay"
	"github.com/simccl/simccl/workload/inputs"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// OverlapOptions are the flags and arguments of overlap.
type OverlapOptions struct {
	File    string
	Machine cli.Machine

	given *pflag.FlagSet // of a command line; nil: multicast is off, as the tables were measured
}

// Overlap returns `simccl overlap`.
func Overlap(a *cli.App) *cobra.Command {
	var o OverlapOptions
	c := &cobra.Command{Use: "overlap FILE", Short: "Simulate a table of measured overlaps, row by row",
		Long: `overlap reads a table of collectives beside compute, two communicators at once,
sends and receives, groups and late ranks, as a PyTorch script measured them, and
simulates each row from the columns that say what was run. Without --topo the
machine is the built-in one of the table's GPUs, as many as it has ranks, without
NVLink multicast.`,
		Example: "  simccl overlap overlap.txt --json",
		Args:    cli.Exactly("FILE"),
		RunE:    cli.RunWithOne(a, &o, &o.File)}
	o.given = c.Flags()
	o.Machine.Register(c)
	o.Machine.RegisterClass(c)
	o.Machine.RegisterNetwork(c)
	return c
}

// Run simulates the rows of the table.
func (o *OverlapOptions) Run(ctx context.Context, a *cli.App) error {
	m := &o.Machine
	data, err := a.ReadAs(o.File, process.MaxSettings, inputs.Overlap)
	if err != nil {
		return err
	}
	t, err := overlap.Parse(string(data), o.File)
	if err != nil {
		return fail.Input(err)
	}
	if m.Topo == "" {
		var ok bool
		if m.Topo, ok = replay.Builtin(t.Device, t.World); !ok {
			m.Topo = "dgx-h100"
		}
		m.GPUs = cmp.Or(m.GPUs, t.World)
		fmt.Fprintf(a.Notes(), "%d GPUs of %s, for the table's %s\n", m.GPUs, m.Topo,
			cmp.Or(t.Device, "GPUs"))
	}
	if o.given == nil || !o.given.Changed("multicast") {
		m.Multicast = "off"
	}
	spec, err := m.Spec(a)
	if err != nil {
		return err
	}
	rows, err := t.Predict(ctx, overlapMachines(&spec, a.Options(nil)))
	var bad *overlap.Error
	if errors.As(err, &bad) {
		return fail.Input(err)
	}
	if err != nil {
		return err
	}
	if a.JSON {
		return a.PrintJSON(rows)
	}
	return printOverlaps(a, rows)
}

// overlapMachines loads the machine of each configuration of a communicator once.
func overlapMachines(spec *scenario.Spec, opt scenario.Options) overlap.Machines {
	known := map[string]*job.Machine{}
	return func(group string) (*job.Machine, error) {
		env := overlap.Settings(group)
		key := fmt.Sprint(env)
		if m := known[key]; m != nil {
			return m, nil
		}
		own := spec.Clone()
		if own.NCCL.Env == nil {
			own.NCCL.Env = map[string]string{}
		}
		for k, v := range env {
			own.NCCL.Env[k] = v
		}
		s, err := scenario.Load(&own, opt)
		if err != nil {
			return nil, err
		}
		opt.Warn = nil // the machine is the same for all
		known[key], err = s.Session(&own)
		return known[key], err
	}
}

// fitFile is the table of a directory of measured times that Fit is for.
const fitFile = overlap.FitFile

// fitOverlap fits the sharing quantities of a class to the overlap table in a directory of measured times,
// and returns the result as text; "" if there is no table.
func fitOverlap(ctx context.Context, a *cli.App, at *calibrate.Lab, dir string, class *gpu.Class) (string,
	error) {
	file := filepath.Join(dir, fitFile)
	if _, err := os.Stat(file); err != nil {
		return "", nil
	}
	data, err := a.ReadAs(file, process.MaxSettings, inputs.Overlap)
	if err != nil {
		return "", err
	}
	t, err := overlap.Parse(string(data), file)
	if err != nil {
		return "", fail.Input(err)
	}
	opt, spec := a.Options(nil), scenario.Spec{Machine: at.Machine}
	opt.Files, opt.Warn = at.Files, nil // the machine has been read before
	load := overlapMachines(&spec, opt)
	fitted, by, err := t.Fit(ctx, func(c *gpu.Class) overlap.Machines {
		return func(group string) (*job.Machine, error) {
			m, err := load(group)
			if err == nil {
				m.Sim.Class = c
			}
			return m, err
		}
	}, *class)
	if err != nil {
		return "", fail.Input(fmt.Errorf("%s: %w", file, err))
	}
	*class = fitted
	by.Describe(class)
	return by.Text(), nil
}

// printOverlaps prints each figure, and the mean error of each column.
func printOverlaps(a *cli.App, rows []overlap.Prediction) error {
	w := tabwriter.NewWriter(a.Out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "section\tcase\tfigure\tmeasured\tsimulated\terror")
	sum, count := map[string]float64{}, map[string]int{}
	for _, r := range rows {
		for _, k := range slices.Sorted(maps.Keys(r.Simulated)) {
			m, s := r.Measured[k], r.Simulated[k]
			off := "–"
			if m != 0 {
				off = fmt.Sprintf("%+.1f %%", 100*(s/m-1))
			}
			fmt.Fprintf(w, "%s\t%s\t%s\t%.3f\t%.3f\t%s\n", r.Section, r.Case, k, m, s, off)
			if key := r.Section + " " + k; m != 0 {
				sum[key], count[key] = sum[key]+math.Abs(s/m-1), count[key]+1
			}
		}
	}
	if err := w.Flush(); err != nil {
		return err
	}
	fmt.Fprintln(a.Out)
	for _, k := range slices.Sorted(maps.Keys(sum)) {
		fmt.Fprintf(w, "%s\tmean error %.1f %%\t%d rows\n", strings.Replace(k, " ", "\t", 1),
			100*sum[k]/float64(count[k]), count[k])
	}
	return w.Flush()
}
