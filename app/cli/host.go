package cli

import (
	"fmt"

	"github.com/simccl/simccl/app/bench/thishost"
	"github.com/simccl/simccl/app/process"
)

// Host is the machine that the program runs on.
func (a *App) Host() *thishost.Host {
	return &thishost.Host{
		Getenv: a.Getenv,
		Read:   func(name string) ([]byte, error) { return a.Read(name, process.MaxTopology) },
		Warn:   func(err error) { a.Warn("%v", err) },
		Note:   func(line string) { fmt.Fprintln(a.Err, "simccl: "+line) },
	}
}
