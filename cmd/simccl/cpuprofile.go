package main

import (
	"fmt"
	"runtime/pprof"

	"github.com/simccl/simccl/internal/newfile"
	"github.com/spf13/cobra"
)

// cpuProfile is --cpuprofile: where this process itself spends its CPU time.
type cpuProfile struct {
	name string
	file *newfile.File
}

// flag declares the option on the root: every command has it. Users of
// simulated times look for --profile, so help does not list this one.
func (c *cpuProfile) flag(a *app, root *cobra.Command) {
	root.PersistentFlags().StringVar(&c.name, "cpuprofile", "", "write a pprof CPU profile of simccl itself to `FILE` (.pb.gz)")
	_ = root.PersistentFlags().MarkHidden("cpuprofile")
	root.PersistentPreRunE = func(*cobra.Command, []string) error { return c.start(a) }
}

// start begins the profile, once the flags are read.
func (c *cpuProfile) start(a *app) (err error) {
	if c.name == "" {
		return nil
	}
	if c.file, err = newfile.Create(a.path(c.name)); err != nil {
		return fmt.Errorf("--cpuprofile: %w", err)
	}
	if err := pprof.StartCPUProfile(c.file); err != nil {
		return fmt.Errorf("--cpuprofile %s: %w", c.name, c.file.Finish(err))
	}
	return nil
}

// stop writes the profile: also of a command that failed, but not after a signal,
// which leaves no file.
func (c *cpuProfile) stop(a *app) error {
	if c.file == nil {
		return nil
	}
	pprof.StopCPUProfile()
	if err := c.file.Finish(nil); err != nil {
		return fmt.Errorf("--cpuprofile %s: %w", c.name, err)
	}
	a.wrote(c.file.Name(), "go tool pprof shows it")
	return nil
}
