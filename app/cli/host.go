package cli

import (
	"fmt"

	"github.com/simccl/simccl/app/bench"
	"github.com/simccl/simccl/app/process"
)

// Host returns the machine that the program runs on.
func (a *App) Host() *bench.Host {
	return &bench.Host{
		Getenv: a.Getenv,
		Read:   func(name string) ([]byte, error) { return a.Read(name, process.MaxTopology) },
		Warn:   func(err error) { a.Warn("%v", err) },
		Note:   func(line string) { fmt.Fprintln(a.Notes(), "simccl: "+line) },
	}
}
