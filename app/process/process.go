// Package process represents the process of a command: its streams, files, environment and context, and what
// a scenario takes from them (Options). It does not know what the command does.
package process

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"sync/atomic"

	"github.com/simccl/simccl/config"
	"github.com/simccl/simccl/internal/interrupt"
	"github.com/simccl/simccl/internal/newfile"
	"github.com/simccl/simccl/internal/terminal"
	"github.com/simccl/simccl/scenario"
	"github.com/simccl/simccl/study/anyhost"
	"github.com/simccl/simccl/trace/chrome"
	"github.com/simccl/simccl/trace/file"
)

// Process is a command's access to its process: streams, environment, files. The zero value has no streams,
// and no environment.
type Process struct {
	Out, Err io.Writer
	Environ  []string // NAME=VALUE
	Env      []string // settings that outrank it
	NoEnv    bool     // Environ and NCCL's configuration files are not read
	Quiet    bool     // Notes are not printed
	Dir      string   // file names are relative to it; empty: as they are
	Ctx      context.Context
	Line     *Line
	Args     []string // of the command line, without the program
	Version  string   // of the program, in what it writes
	Commit   string   // that the program was built from, and its date (RFC 3339), where a
	Date     string   // release says so
	// Named, if not nil, gives errors the names of flags in place of members.
	Named func(error) error

	mark string // with which Out and Err know our own colours
}

// Line is shared by the command and the interrupt handler that ends it: one of them prints the signal,
// replacing a progress line.
type Line struct {
	interrupt.Command
	showing atomic.Pointer[terminal.Progress]
}

// Context returns the command's context, which the first interrupt cancels.
func (p *Process) Context() context.Context {
	if p.Ctx == nil {
		return context.Background()
	}
	return p.Ctx
}

// Cancelled returns nil, or the error of the cancelled context; long loops poll it.
func (p *Process) Cancelled() error { return p.Context().Err() }

// Path returns the path of a file name given in an option, relative to Dir.
func (p *Process) Path(name string) string {
	if p.Dir == "" || filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(p.Dir, name)
}

// Config reads the settings and prints warnings about them.
func (p *Process) Config() (*config.Config, error) {
	return scenario.Settings(p.sources(), p.warnOf, p.Cancelled)
}

func (p *Process) sources() config.Sources {
	// The names of NCCL's configuration files are not relative to Dir.
	s := config.Sources{Flags: p.Env, Environ: p.Environ, NoEnv: p.NoEnv, ReadFile: func(name string) ([]byte,
		error) {
		return p.ReadFile(name, MaxSettings)
	}}
	if home, err := os.UserHomeDir(); err == nil {
		s.Home = home
	}
	return s
}

// Getenv returns the value in Env, else in the environment.
func (p *Process) Getenv(name string) (string, bool) { return p.sources().Getenv(name) }

// Options returns the environment of a Spec: this process's files, variables and standard error. found is the
// topology of this machine, which is read under the name ThisTopology; nil: no file has that name.
func (p *Process) Options(found []byte) scenario.Options {
	return scenario.Options{Files: files{process: p, given: map[string][]byte{ThisTopology: found}},
		Settings: p.sources(), Program: p.Version,
		Warn: p.warnOf, Cancelled: p.Cancelled, Convert: convert, Scratch: func(near string) (chrome.Spool,
			error) {
			return file.Scratch(filepath.Dir(p.Path(near)))
		},
		Create: func(name string) (scenario.File, error) {
			f, err := newfile.Create(p.Path(name))
			if err != nil {
				return nil, err
			}
			return f, nil
		}}
}

// convert converts another description of a machine to NCCL's topology file.
func convert(data []byte, name string) (*scenario.Converted, error) {
	h, err := anyhost.Read(data, name, anyhost.Given{})
	if err != nil {
		return nil, err
	}
	return &scenario.Converted{XML: h.XML(), Name: h.Label, Notes: h.Notes}, nil
}

// OptionsWith returns Options in which the file with a name has the given content.
func (p *Process) OptionsWith(name string, data []byte) scenario.Options {
	o := p.Options(nil)
	o.Files = files{process: p, given: map[string][]byte{name: data}}
	return o
}
