// Package cli contains what commands share: the flags that select a machine, rules for arguments, and flag
// names in errors; and the exit status of each kind of error. Packages below it contain the commands, by
// subject: a function with the command's name declares it, its Options hold its flags and arguments, and
// their Run executes it, so that tests and other programs need no command line.
//
// What it must not know: what a command computes.
package cli

import (
	"github.com/simccl/simccl/app/process"
	"github.com/spf13/pflag"
)

// App is the process of a command, with the flags of all commands.
type App struct {
	process.Process
	JSON bool // --json
	// Given are the flags of the command that runs; nil: there is none.
	Given *pflag.FlagSet
}
