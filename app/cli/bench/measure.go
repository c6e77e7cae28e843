package bench

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/simccl/simccl/app/cli"
	"github.com/simccl/simccl/nccltests/options"
	realbench "github.com/simccl/simccl/real/bench"
	"github.com/simccl/simccl/real/measure"
	"github.com/simccl/simccl/real/team"
	"github.com/simccl/simccl/units"
	"github.com/spf13/cobra"
)

// MeasureOptions are the flags and arguments of measure.
type MeasureOptions struct {
	Dir     string        // for the measured tables
	GPUs    int           // use the first GPUs; 0: all
	Budget  time.Duration // no further set begins after it
	Sets    []string      // by name; none: all, or with Try none
	Try     []string      // sets of settings, NCCL_K=V[,NCCL_K=V]
	Library string        // libnccl; empty: as the loader finds it
}

// register declares the options that calibrate has, too.
func (m *MeasureOptions) register(c *cobra.Command) {
	f := c.Flags()
	f.IntVarP(&m.GPUs, "gpus", "g", 0, "use the first `K` GPUs (default all)")
	f.DurationVar(&m.Budget, "budget", 170*time.Second, "begin no further setting after this `TIME`")
	f.StringSliceVar(&m.Sets, "sets", nil, "measure only these settings, by `NAMES` (default all: "+
		strings.Join(measure.Names(), ", ")+")")
	f.StringVar(&m.Library, "libnccl", "",
		"`FILE` of NCCL (default $SIMCCL_LIBNCCL, else libnccl.so.2 of the loader)")
}

func measureCommand(a *cli.App) *cobra.Command {
	var m MeasureOptions
	c := &cobra.Command{Use: "measure DIR", Short: "Measure this machine for fit or check",
		Long: `measure does the first half of calibrate: it writes nccl-tests' JSON, one file a
setting and operation, and the machine's topology, to DIR. --try measures settings
that advise names.`,
		Example: "  simccl calibrate measure later/ --sets default && simccl calibrate check later/ " +
			"--machine-class ./h200.json\n" +
			"  simccl calibrate measure tried/ --try NCCL_ALGO=Tree,NCCL_PROTO=LL128 --try " +
			"NCCL_MIN_NCHANNELS=48",
		Args: cli.Exactly("DIR"),
		RunE: cli.RunWithOne(a, &m, &m.Dir)}
	m.register(c)
	c.Flags().StringArrayVar(&m.Try, "try", nil, "measure under `SETTINGS` too, one variable or several "+
		"with commas between, NCCL_K=V,NCCL_K=V, as advise names them: all_reduce, all_gather and "+
		"reduce_scatter at ten sizes from 8 B to 1 GiB; repeatable; without --sets these alone")
	return c
}

// Run measures every set, each in processes of its own, one a GPU.
func (m *MeasureOptions) Run(ctx context.Context, a *cli.App) error {
	return m.into(ctx, a, a.Path(m.Dir))
}

// into measures the selected sets, each in processes of its own, and writes one table per set into dir.
func (m *MeasureOptions) into(ctx context.Context, a *cli.App, dir string) error {
	sets, err := measure.Pick(append(slices.Clone(m.Sets), m.Try...))
	if err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	p := measure.Plan{Sets: sets, GPUs: m.GPUs, Budget: m.Budget, Dir: dir,
		Topology: a.Host().Topology,
		Command: func(ctx context.Context, s *measure.Set, rank, ranks int, root string) *exec.Cmd {
			args := []string{"calibrate", "set", s.Name, dir, "--libnccl", m.Library,
				"--nranks", fmt.Sprint(ranks), "--root-address", root}
			for _, kv := range a.Env {
				args = append(args, "--env", kv)
			}
			c := exec.CommandContext(ctx, self, append(args, "--rank", fmt.Sprint(rank))...)
			c.Env = slices.Clone(a.Environ)
			return c
		},
		Measured: func(s *measure.Set, took time.Duration) {
			fmt.Fprintf(a.Notes(), "simccl: measured %s: %.1f s\n", s.Name, took.Seconds())
		},
		Left: func(s *measure.Set, spent time.Duration) {
			fmt.Fprintf(a.Notes(), "simccl: %s and what follows left out: %.0f s of %.0f are spent\n", s.Name,
				spent.Seconds(), m.Budget.Seconds())
		}}
	return p.Run(ctx)
}

// SetOptions are the flags and arguments of set, which measure starts: one process of a set.
type SetOptions struct {
	Place   cli.PlaceFlags
	Name    string // of the set
	Dir     string
	LibNCCL string
}

func measureSetCommand(a *cli.App) *cobra.Command {
	var o SetOptions
	c := &cobra.Command{Use: "set NAME DIR", Hidden: true, Short: "One process of calibrate measure",
		Args: cli.Exactly("NAME", "DIR"),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.Name, o.Dir = args[0], args[1]
			return o.Run(cmd.Context(), a)
		}}
	o.Place.Register(c)
	c.Flags().StringVar(&o.LibNCCL, "libnccl", "", "")
	return c
}

// Run measures as this process of the set.
func (o *SetOptions) Run(ctx context.Context, a *cli.App) error {
	list, err := measure.Pick([]string{o.Name})
	if err != nil {
		return err
	}
	at, err := o.Place.Find(a)
	if err != nil {
		return err
	}
	return measureSet(ctx, a, &list[0], at, o.LibNCCL, o.Dir, realbench.OpenDevices)
}

// measureSet measures a set of settings as one of several processes, each with one GPU.
func measureSet(
	ctx context.Context, a *cli.App, s *measure.Set, at team.Place, libnccl, dir string, gpus Opener,
) error {
	ask := &realbench.Request{Backend: "nccl", Library: libnccl,
		Options: options.Options{Threads: 1, CTAPolicy: options.NoPolicy}}
	open := func(ctx context.Context, t *team.Team, buffer units.Bytes) (realbench.Backend, error) {
		c := Devices(a, ask, 1)
		c.Buffer = buffer
		return gpus(ctx, &realbench.Spec{}, t, c, nil)
	}
	return s.Rank(ctx, at, open, realbench.NCCLVariables(a.Environ, a.Env), dir)
}
