// Package cli holds what commands share: the options that name a machine, the
// rules of their arguments, and the names of options in errors. The packages
// below it each hold one command or group of commands: Command declares it, its Options are
// what the flags and arguments say, and Options.Run does what they ask for, so that a test or
// another program needs no command line.
//
// What it must not know: what a command computes.
package cli

import (
	"github.com/simccl/simccl/app/process"
	"github.com/spf13/pflag"
)

// App is a command's process, and what is asked of all commands.
type App struct {
	process.Process
	JSON bool // --json
	// Given are the flags of the command that runs; nil: there is none.
	Given *pflag.FlagSet
}
