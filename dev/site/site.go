// Package site loads machines for tests and benchmarks, from topology files to a
// communicator, as every command does: through scenario.Load.
package site

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/simccl/simccl/config"
	"github.com/simccl/simccl/dev/golden"
	"github.com/simccl/simccl/scenario"
)

// files opens paths as they are.
type files struct{}

func (files) Open(name string) (fs.File, error) { return os.Open(name) }

// Files are the topologies of testdata/topos, and the machine class of the stories
// of the timing model (round.json, of round numbers), each by its own name.
func Files(t testing.TB) fs.FS {
	t.Helper()
	return examples{golden.Root(t, "testdata", "topos"), golden.Root(t, "sim", "testdata", "stories")}
}

// examples opens a name in the first of its folders that has it.
type examples []string

func (e examples) Open(name string) (fs.File, error) {
	for _, dir := range e {
		if f, err := os.Open(filepath.Join(dir, filepath.Base(name))); err == nil {
			return f, nil
		}
	}
	return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
}

// Plan prepares a scenario on Files, and plans its one operation.
func Plan(t testing.TB, text string) (*scenario.Running, scenario.Outcome) {
	t.Helper()
	spec, err := scenario.Parse([]byte(text), "scenario.json")
	if err != nil {
		t.Fatal(err)
	}
	r, err := scenario.Prepare(spec, scenario.Options{Files: Files(t), Settings: config.Sources{NoEnv: true}})
	if err != nil {
		t.Fatal(err)
	}
	o, err := r.Plan(r.Lines()[0].Operation, true)
	if err != nil {
		t.Fatal(err)
	}
	return r, o
}

// Options reads the files of this machine, and no environment.
func Options() scenario.Options {
	return scenario.Options{Files: files{}, Settings: config.Sources{NoEnv: true}}
}

// Open loads a machine under settings NAME=VALUE.
func Open(m scenario.Machine, env ...string) (*scenario.Site, error) {
	return OpenFor("", m, env...)
}

// OpenFor is Open by the rules of a release of NCCL; "" is the default's.
func OpenFor(version string, m scenario.Machine, env ...string) (*scenario.Site, error) {
	opt := Options()
	opt.Settings.Flags = env
	return scenario.Load(&scenario.Spec{Machine: m, NCCL: scenario.NCCL{Version: version}}, opt)
}

// Load is Open for tests.
func Load(t testing.TB, m scenario.Machine, env ...string) *scenario.Site {
	t.Helper()
	s, err := Open(m, env...)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// Nodes is a machine of equal nodes.
func Nodes(file string, count int) scenario.Machine {
	return scenario.Machine{Nodes: []scenario.Nodes{{Topo: file, Count: count}}}
}
