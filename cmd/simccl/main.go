// Command simccl reads NCCL's topo.xml and says what NCCL decides there, why,
// and how fast it runs. This package parses flags, calls the rooms and prints;
// it decides nothing.
package main

import (
	"context"
	"os"

	"github.com/simccl/simccl/app/cli"
	"github.com/simccl/simccl/app/process"
	"github.com/simccl/simccl/internal/interrupt"
	"github.com/spf13/cobra"
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
func start(args []string, a *app) int {
	a.Line = &process.Line{}
	return a.Line.Run(func(ctx context.Context) int { return run(ctx, args, a) }, a.Interrupted)
}

// app is a command's process, and what is asked of all commands.
type app struct {
	cli.App
}

// appOf is the app of a process.
func appOf(p process.Process) *app { return &app{cli.App{Process: p}} }

// run executes a command line and returns the exit status.
func run(ctx context.Context, args []string, a *app) int {
	a.Args, a.Ctx, a.Version, a.Named = args, ctx, version, a.AsFlags
	if a.Line == nil {
		a.Line = &process.Line{}
	}
	end := a.Guard()
	root := newRoot(a, a.named(args))
	root.SetArgs(args)
	root.SetOut(a.Out)
	root.SetErr(a.Err)
	profile := &process.CPUProfile{}
	profileFlag(a, root, profile)
	err := root.ExecuteContext(ctx)
	if lost := profile.Stop(&a.Process); err == nil {
		err = lost
	}
	err = end(err)
	if why := interrupt.Of(ctx); why != nil {
		a.Line.Say(func() { a.Interrupted(why) })
		return why.Status()
	}
	return a.report(err)
}

// profileFlag declares --cpuprofile on the root: every command has it. Users of
// simulated times look for --profile, so help does not list this one.
func profileFlag(a *app, root *cobra.Command, c *process.CPUProfile) {
	root.PersistentFlags().StringVar(&c.Name, "cpuprofile", "", "write a pprof CPU profile of simccl itself to `FILE` (.pb.gz)")
	_ = root.PersistentFlags().MarkHidden("cpuprofile")
	root.PersistentPreRunE = func(cmd *cobra.Command, _ []string) error {
		a.Given = cmd.Flags()
		return c.Start(&a.Process)
	}
}
