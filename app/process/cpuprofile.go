package process

import (
	"fmt"
	"runtime/pprof"

	"github.com/simccl/simccl/internal/newfile"
)

// CPUProfile is a CPU profile of the process itself, a pprof file. A process has one at a time.
type CPUProfile struct {
	Name string // of the file; empty: none
	file *newfile.File
}

// Start starts the CPU profile; it does nothing without a name.
func (c *CPUProfile) Start(p *Process) error {
	if c.Name == "" {
		return nil
	}
	f, err := newfile.Create(p.Path(c.Name))
	if err != nil {
		return fmt.Errorf("--cpuprofile: write a CPU profile: %w", err)
	}
	if err := pprof.StartCPUProfile(f); err != nil {
		return fmt.Errorf("--cpuprofile: write the CPU profile %s: %w", c.Name, f.Finish(err))
	}
	c.file = f
	return nil
}

// Stop writes the profile: also of a command that failed, but not after a signal,
// which leaves no file.
func (c *CPUProfile) Stop(p *Process) error {
	if c.file == nil {
		return nil
	}
	pprof.StopCPUProfile()
	if err := c.file.Finish(nil); err != nil {
		return fmt.Errorf("write the CPU profile %s: %w", c.Name, err)
	}
	p.Wrote(c.file.Name(), "go tool pprof shows it")
	return nil
}
