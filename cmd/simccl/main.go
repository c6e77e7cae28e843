// Command simccl reads NCCL's topo.xml and says what NCCL decides there, why,
// and how fast it runs. This package parses flags, calls the rooms and prints;
// it decides nothing.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync/atomic"

	"github.com/simccl/simccl/internal/interrupt"
	"github.com/simccl/simccl/internal/terminal"
)

// version is set by the linker for releases.
var version = "v0.1.0-dev"

func main() {
	os.Exit(start(os.Args[1:], &app{out: os.Stdout, err: os.Stderr, environ: os.Environ()}))
}

// start runs a command line until it ends or a signal ends it, and returns the
// exit status.
func start(args []string, a *app) int {
	a.last = &lastLine{}
	return a.last.Run(func(ctx context.Context) int { return run(ctx, args, a) }, a.sayInterrupted)
}

// lastLine is shared by the command that ends by itself and the one who cuts it
// off: one of them names the signal, in place of a progress line.
type lastLine struct {
	interrupt.Command
	showing atomic.Pointer[terminal.Progress]
}

// sayInterrupted prints the one line about a signal.
func (a *app) sayInterrupted(why *interrupt.Error) {
	if p := a.last.showing.Load(); p != nil {
		p.End()
	}
	fmt.Fprintf(a.err, "%s %v\n", a.paint(a.err).Red("simccl:"), why)
}

// app is what a command may touch of the process.
type app struct {
	out, err io.Writer
	environ  []string
	args     []string
	mark     string // with which out and err know our own colours
	dir      string // file names of options are relative to it; empty: as they are
	ctx      context.Context
	last     *lastLine

	env   []string // --env
	noEnv bool     // --no-env
	json  bool     // --json
}

// run executes a command line and returns the exit status.
func run(ctx context.Context, args []string, a *app) int {
	a.args, a.ctx = args, ctx
	if a.last == nil {
		a.last = &lastLine{}
	}
	flush := a.guard()
	out := &output{Writer: a.out}
	a.out = out
	root := newRoot(a)
	root.SetArgs(args)
	root.SetOut(a.out)
	root.SetErr(a.err)
	var own cpuProfile
	own.flag(a, root)
	err := root.ExecuteContext(ctx)
	profiled := own.stop(a)
	flush()
	if why := interrupt.Of(ctx); why != nil {
		a.last.Say(func() { a.sayInterrupted(why) })
		return why.Status()
	}
	if err == nil {
		err = profiled
	}
	if out.err != nil && !errors.Is(err, out.err) {
		err = errors.Join(err, out.err) // most prints ignore write errors; report the first one here
	}
	return a.report(err)
}

// output remembers that something could not be written.
type output struct {
	io.Writer
	err error
}

// Unwrap returns the writer below.
func (o *output) Unwrap() io.Writer { return o.Writer }

func (o *output) Write(p []byte) (int, error) {
	n, err := o.Writer.Write(p)
	if err != nil && o.err == nil {
		o.err = err
	}
	return n, err
}

// path resolves a file name of an option.
func (a *app) path(name string) string {
	if a.dir == "" || filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(a.dir, name)
}
