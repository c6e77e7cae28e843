// Command simccl reads NCCL's topo.xml and says what NCCL decides there, why,
// and how fast it runs. This package parses flags, calls the rooms and prints;
// it decides nothing.
package main

import (
	"context"
	"os"

	"github.com/simccl/simccl/internal/interrupt"
	"github.com/simccl/simccl/internal/process"
)

// version is set by the linker for releases.
var version = "v0.1.0-dev"

func main() {
	os.Exit(start(os.Args[1:], &app{Process: process.Process{Out: os.Stdout, Err: os.Stderr, Environ: os.Environ()}}))
}

// start runs a command line until it ends or a signal ends it, and returns the
// exit status.
func start(args []string, a *app) int {
	a.Line = &process.Line{}
	return a.Line.Run(func(ctx context.Context) int { return run(ctx, args, a) }, a.Interrupted)
}

// app is a command's process, and what is asked of all commands.
type app struct {
	process.Process
	json bool // --json
}

// run executes a command line and returns the exit status.
func run(ctx context.Context, args []string, a *app) int {
	a.Args, a.Ctx, a.Version, a.Named = args, ctx, version, asFlags
	if a.Line == nil {
		a.Line = &process.Line{}
	}
	end := a.Guard()
	root := newRoot(a)
	root.SetArgs(args)
	root.SetOut(a.Out)
	root.SetErr(a.Err)
	err := end(root.ExecuteContext(ctx))
	if why := interrupt.Of(ctx); why != nil {
		a.Line.Say(func() { a.Interrupted(why) })
		return why.Status()
	}
	return a.report(err)
}
