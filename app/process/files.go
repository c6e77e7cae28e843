package process

import (
	"context"
	"errors"
	"io/fs"
	"os"

	"github.com/simccl/simccl/internal/bounded"
	"github.com/simccl/simccl/internal/fail"
	topoxml "github.com/simccl/simccl/topo/xml"
	"github.com/simccl/simccl/workload/inputs"
)

// Limits of inputs in bytes, far above the size of real ones.
const (
	MaxTopology = topoxml.MaxBytes // the parser's own
	MaxLog      = 256 << 20        // of NCCL, as it lies in a file
	MaxResults  = 64 << 20         // tables and JSON of nccl-tests, decision documents
	MaxSettings = 64 << 10         // configuration files and option lists
)

// ThisTopology is the name under which a Spec has the topology of this machine.
const ThisTopology = "this machine"

// Read reads the input file of a flag or argument, up to limit bytes. It ends when the command is
// interrupted, even while it waits for a pipe. Errors are of kind fail.BadInput, except for interruption.
func (p *Process) Read(name string, limit int64) ([]byte, error) {
	data, err := p.ReadFile(p.Path(name), limit)
	var large *bounded.TooLargeError
	switch {
	case errors.As(err, &large):
		large.Name = name
		return nil, fail.Input(err)
	case errors.Is(err, context.Canceled):
		return nil, err
	}
	return data, fail.Input(err)
}

// ReadAs reads an input file of one of the kinds, decompressed and without its envelope. A file of another
// known kind is refused with an error that names it.
func (p *Process) ReadAs(name string, limit int64, kinds ...inputs.Kind) ([]byte, error) {
	data, err := p.Read(name, limit)
	if err != nil {
		return nil, err
	}
	data, err = inputs.Take(data, name, limit, kinds...)
	return data, fail.Input(err)
}

// ReadFile reads a file at a path, up to limit bytes.
func (p *Process) ReadFile(path string, limit int64) ([]byte, error) {
	return bounded.ReadFile(p.Context(), path, limit, func() (fs.File, error) { return os.Open(path) })
}

// files are the input files of a command as scenarios read them: names are paths
// as a shell has them, and given contents take the place of files.
type files struct {
	process *Process
	given   map[string][]byte
}

// Open opens a file relative to the process's Dir; it implements fs.FS for scenarios.
func (f files) Open(name string) (fs.File, error) { return os.Open(f.process.Path(name)) }

// ReadLimited reads a file, or returns what was given in its place.
func (f files) ReadLimited(name string, limit int64) ([]byte, error) {
	if data := f.given[name]; data != nil {
		return data, nil
	}
	return f.process.Read(name, limit)
}
