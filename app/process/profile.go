package process

import (
	"fmt"
)

// CPUProfile is a CPU profile of the process itself, a pprof file.
type CPUProfile struct {
	Name string // of the file; empty: none
	own  cpuProfile
}

// Start starts the CPU profile; it does nothing without a name.
func (c *CPUProfile) Start(p *Process) error {
	if c.Name == "" {
		return nil
	}
	if err := c.own.Start(p.Path(c.Name)); err != nil {
		return fmt.Errorf("--cpuprofile: %w", err)
	}
	return nil
}

// Stop writes the profile: also of a command that failed, but not after a signal,
// which leaves no file.
func (c *CPUProfile) Stop(p *Process) error {
	name, err := c.own.Stop()
	if name != "" {
		p.Wrote(name, "go tool pprof shows it")
	}
	return err
}
