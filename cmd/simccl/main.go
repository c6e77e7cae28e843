// Command simccl reads NCCL's topo.xml and says what NCCL decides there, why,
// and how fast it runs. This package starts the program; its commands are below app/cli.
package main

import (
	"context"
	"os"

	"github.com/simccl/simccl/app/cli"
	"github.com/simccl/simccl/app/cli/root"
	"github.com/simccl/simccl/app/process"
	"github.com/simccl/simccl/internal/interrupt"
)

// version, commit and date (of the commit) are set by the linker for releases.
var version, commit, date = "v0.1.0-dev", "", ""

func main() {
	process.KeepWithin()
	process.LateCollection()
	os.Exit(start(os.Args[1:], appOf(process.Process{Out: os.Stdout, Err: os.Stderr, Environ: os.Environ()})))
}

// start runs a command line until it ends or a signal ends it, and returns the
// exit status.
func start(args []string, a *cli.App) int {
	a.Line = &process.Line{}
	return a.Line.Run(func(ctx context.Context) int { return run(ctx, args, a) }, a.Interrupted)
}

func appOf(p process.Process) *cli.App {
	p.Version, p.Commit, p.Date = version, commit, date
	a := &cli.App{Process: p}
	a.Named = a.AsFlags
	return a
}

// run executes a command line and returns the exit status.
func run(ctx context.Context, args []string, a *cli.App) int {
	a.Args, a.Ctx = args, ctx
	if a.Line == nil {
		a.Line = &process.Line{}
	}
	end := a.Guard()
	err := end(root.Execute(ctx, a, args))
	if why := interrupt.Of(ctx); why != nil {
		a.Line.Say(func() { a.Interrupted(why) })
		return why.Status()
	}
	return report(a, err)
}
