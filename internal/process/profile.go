package process

import (
	"fmt"
	"runtime/pprof"

	"github.com/simccl/simccl/internal/newfile"
)

// CPUProfile is where the process itself spends its CPU time, as a file of pprof.
type CPUProfile struct {
	Name string // of the file; empty: none
	file *newfile.File
}

// Start begins the profile.
func (c *CPUProfile) Start(p *Process) (err error) {
	if c.Name == "" {
		return nil
	}
	if c.file, err = newfile.Create(p.Path(c.Name)); err != nil {
		return fmt.Errorf("--cpuprofile: %w", err)
	}
	if err := pprof.StartCPUProfile(c.file); err != nil {
		return fmt.Errorf("--cpuprofile %s: %w", c.Name, c.file.Finish(err))
	}
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
		return fmt.Errorf("--cpuprofile %s: %w", c.Name, err)
	}
	p.Wrote(c.file.Name(), "go tool pprof shows it")
	return nil
}
