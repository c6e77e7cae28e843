// Command simccl reads NCCL's topo.xml and says what NCCL decides there, why,
// and how fast it runs. This package parses flags, calls the rooms and prints;
// it decides nothing.
package main

import (
	"context"
	"os"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/simccl/simccl/internal/cli"
	"github.com/simccl/simccl/internal/interrupt"
	"github.com/simccl/simccl/internal/process"
	"github.com/spf13/cobra"
)

// version, commit and date (of the commit) are set by the linker for releases.
var version, commit, date = "v0.1.0-dev", "", ""

func main() {
	lateCollection()
	os.Exit(start(os.Args[1:], appOf(process.Process{Out: os.Stdout, Err: os.Stderr, Environ: os.Environ()})))
}

// lateCollection lets the heap grow to 32 MB before it is collected for the first
// time, and from then on as Go does: short commands spend nothing on it (inspect
// of 16 DGX H100: a twentieth less CPU). GOGC of the environment stays as it is.
func lateCollection() {
	for _, kv := range os.Environ() {
		if strings.HasPrefix(kv, "GOGC=") {
			return
		}
	}
	usual := debug.SetGCPercent(800) // of Go's least heap of 4 MB
	runtime.SetFinalizer(new([1]*byte), func(*[1]*byte) { debug.SetGCPercent(usual) })
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
	a.Args, a.Ctx, a.Version, a.Named = args, ctx, version, cli.AsFlags
	if a.Line == nil {
		a.Line = &process.Line{}
	}
	end := a.Guard()
	root := newRoot(a)
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
	root.PersistentPreRunE = func(*cobra.Command, []string) error { return c.Start(&a.Process) }
}
