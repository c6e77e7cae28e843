package process

import (
	"fmt"
	"runtime/pprof"

	"github.com/simccl/simccl/internal/newfile"
)

// cpuProfile is a profile in the making. Until Start it is none.
type cpuProfile struct{ file *newfile.File }

// Start begins a profile that will be at path. A process has one at a time.
func (p *cpuProfile) Start(path string) error {
	f, err := newfile.Create(path)
	if err != nil {
		return fmt.Errorf("write a CPU profile: %w", err)
	}
	if err := pprof.StartCPUProfile(f); err != nil {
		return fmt.Errorf("write the CPU profile %s: %w", path, f.Finish(err))
	}
	p.file = f
	return nil
}

// Stop writes the file and returns its name, "" where Start was not called or
// failed.
func (p *cpuProfile) Stop() (name string, err error) {
	if p.file == nil {
		return "", nil
	}
	pprof.StopCPUProfile()
	f := p.file
	p.file = nil
	if err := f.Finish(nil); err != nil {
		return "", fmt.Errorf("write the CPU profile %s: %w", f.Name(), err)
	}
	return f.Name(), nil
}
