package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/simccl/simccl/app/cli"
	"github.com/simccl/simccl/app/cli/place"
	"github.com/simccl/simccl/nccltests/options"
	"github.com/simccl/simccl/real/bench"
	"github.com/simccl/simccl/real/measure"
	"github.com/simccl/simccl/real/team"
	"github.com/simccl/simccl/units"
	"github.com/spf13/cobra"
)

// measureFlags are the options of measuring.
type measureFlags struct {
	gpus    int
	budget  time.Duration
	sets    []string
	try     []string
	data    string
	libnccl string
}

func (m *measureFlags) register(c *cobra.Command) {
	m.registerCommon(c)
	c.Flags().StringVar(&m.data, "data", "", "keep the measured times in `DIR` (default a new one next to the file)")
}

func (m *measureFlags) registerCommon(c *cobra.Command) {
	f := c.Flags()
	f.IntVarP(&m.gpus, "gpus", "g", 0, "use the first `K` GPUs (default all)")
	f.DurationVar(&m.budget, "budget", 170*time.Second, "begin no further setting after this `TIME`")
	f.StringSliceVar(&m.sets, "sets", nil, "measure only these settings, by `NAMES` (default all: "+strings.Join(measure.Names(), ", ")+")")
	f.StringVar(&m.libnccl, "libnccl", "", "`FILE` of NCCL (default $SIMCCL_LIBNCCL, else libnccl.so.2 of the loader)")
}

func newCalibrateMeasure(a *app) *cobra.Command {
	var m measureFlags
	c := &cobra.Command{Use: "measure DIR", Short: "Measure this machine for fit or check",
		Long: `measure does the first half of calibrate: it writes nccl-tests' JSON, one file a
setting and operation, and the machine's topology, to DIR. --try measures settings
that advise names.`,
		Example: "  simccl calibrate measure later/ --sets default && simccl calibrate check later/ --machine-class ./h200.json\n" +
			"  simccl calibrate measure tried/ --try NCCL_ALGO=Tree,NCCL_PROTO=LL128 --try NCCL_MIN_NCHANNELS=48",
		Args: cli.Exactly("DIR"),
		RunE: func(cmd *cobra.Command, args []string) error { return m.all(cmd.Context(), a, a.Path(args[0])) }}
	m.registerCommon(c)
	c.Flags().StringArrayVar(&m.try, "try", nil, "measure under `SETTINGS` too, NCCL_K=V[,NCCL_K=V], as advise tries it: all_reduce, all_gather and reduce_scatter at ten sizes from 8 B to 1 GiB; repeatable; without --sets these alone")
	return c
}

// all measures every set, each in processes of its own, one a GPU.
func (m *measureFlags) all(ctx context.Context, a *app, dir string) error {
	sets, err := measure.Pick(append(slices.Clone(m.sets), m.try...))
	if err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	p := measure.Plan{Sets: sets, GPUs: m.gpus, Budget: m.budget, Dir: dir,
		Topology: a.thisHost().Topology,
		Command: func(ctx context.Context, s *measure.Set, rank, ranks int, root string) *exec.Cmd {
			args := []string{"calibrate", "set", s.Name, dir, "--libnccl", m.libnccl, "--nranks", fmt.Sprint(ranks), "--root-address", root}
			for _, kv := range a.Env {
				args = append(args, "--env", kv)
			}
			c := exec.CommandContext(ctx, self, append(args, "--rank", fmt.Sprint(rank))...)
			c.Env = slices.Clone(a.Environ)
			return c
		},
		Measured: func(s *measure.Set, took time.Duration) {
			fmt.Fprintf(a.Err, "simccl: measured %s: %.1f s\n", s.Name, took.Seconds())
		},
		Left: func(s *measure.Set, spent time.Duration) {
			fmt.Fprintf(a.Err, "simccl: %s and what follows left out: %.0f s of %.0f are spent\n", s.Name, spent.Seconds(), m.budget.Seconds())
		}}
	return p.Run(ctx)
}

// newCalibrateSet is what measure starts: one process of a set.
func newCalibrateSet(a *app) *cobra.Command {
	var p place.Flags
	libnccl := ""
	c := &cobra.Command{Use: "set NAME DIR", Hidden: true, Short: "One process of calibrate measure", Args: cli.Exactly("NAME", "DIR"),
		RunE: func(cmd *cobra.Command, args []string) error {
			list, err := measure.Pick(args[:1])
			if err != nil {
				return err
			}
			at, err := p.Find(&a.App)
			if err != nil {
				return err
			}
			return measureSet(cmd.Context(), a, &list[0], at, libnccl, args[1])
		}}
	p.Register(c)
	c.Flags().StringVar(&libnccl, "libnccl", "", "")
	return c
}

// measureSet measures a set as one of its processes, each with one GPU.
func measureSet(ctx context.Context, a *app, s *measure.Set, at team.Place, libnccl, dir string) error {
	ask := &bench.Request{Backend: "nccl", Library: libnccl, Options: options.Options{Threads: 1, CTAPolicy: options.NoPolicy}}
	open := func(ctx context.Context, t *team.Team, buffer units.Bytes) (bench.Backend, error) {
		c := a.devices(ask, 1)
		c.Buffer = buffer
		return openDevices(ctx, &bench.Spec{}, t, c, nil)
	}
	return s.Rank(ctx, at, open, bench.NCCLVariables(a.Environ, a.Env), dir)
}

// all measures, then fits.
func (c *calibrateFlags) all(a *app, cmd *cobra.Command) error {
	if _, err := measure.Count(c.measure.gpus); err != nil { // before anything is written
		return err
	}
	if err := c.writable(a); err != nil {
		return err
	}
	dir := c.measure.data
	if dir == "" {
		var err error
		if dir, err = os.MkdirTemp(filepath.Dir(a.Path(c.out)), strings.TrimSuffix(filepath.Base(c.out), ".json")+"-times-"); err != nil {
			return input(err)
		}
	} else {
		dir = a.Path(dir)
	}
	if err := c.measure.all(cmd.Context(), a, dir); err != nil {
		return err
	}
	return c.fit(a, cmd, dir)
}
