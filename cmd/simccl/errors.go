package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	osexec "os/exec"
	"strings"
	"syscall"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/config"
	"github.com/simccl/simccl/exec"
	"github.com/simccl/simccl/internal/calibrate"
	"github.com/simccl/simccl/internal/connect"
	"github.com/simccl/simccl/internal/fail"
	"github.com/simccl/simccl/plan"
	"github.com/simccl/simccl/real"
	"github.com/simccl/simccl/scenario"
	"github.com/simccl/simccl/sim"
	"github.com/simccl/simccl/topo"
	"github.com/simccl/simccl/topo/fabric"
	topoxml "github.com/simccl/simccl/topo/xml"
	"github.com/simccl/simccl/trace/chrome"
	"github.com/simccl/simccl/tuning"
)

// Exit statuses: 0 to 7 mean what they mean in nccl-tests. A signal's is
// interrupt.Error.Status.
const (
	exitOK             = 0
	exitInternal       = 1
	exitCUDA           = 2
	exitNCCL           = 3
	exitTimeout        = 4
	exitNotImplemented = 5
	exitUsage          = 6
	exitCheck          = 7
	exitInput          = 8
	exitAbsent         = 9
)

// usage is an error of an option or argument.
func usage(format string, args ...any) error { return fail.Usage(format, args...) }

// input makes err an error of an input file; nil of nil.
func input(err error) error { return fail.Input(err) }

// failed is a check that was answered with no; what is wrong was printed.
func failed(format string, args ...any) error { return fail.Check(format, args...) }

// kinds and faults are the exit statuses of what a command was given, and of what
// hardware, its libraries and other ranks did.
var (
	kinds  = map[fail.Kind]int{fail.BadArgument: exitUsage, fail.BadInput: exitInput, fail.No: exitCheck, fail.Absent: exitAbsent, fail.NotBuilt: exitNotImplemented}
	faults = map[real.Fault]int{real.Argument: exitUsage, real.Input: exitInput, real.Wrong: exitCheck, real.Driver: exitCUDA,
		real.Peer: exitNCCL, real.Late: exitTimeout}
)

// is reports whether an error is of a type, of a value whether it matches that.
func is[T error](err error) bool {
	var e T
	return errors.As(err, &e)
}

func matches(target error) func(error) bool {
	return func(err error) bool { return errors.Is(err, target) }
}

// classes are the exit statuses of errors by their types and values; the first
// that fits counts.
var classes = []struct {
	status int
	of     []func(error) bool
}{
	{exitNotImplemented, []func(error) bool{is[*topo.SplitHostsError], matches(exec.ErrNotImplemented), matches(plan.ErrUnsupported)}},
	{exitAbsent, []func(error) bool{matches(exec.ErrUnsupported)}},
	{exitTimeout, []func(error) bool{matches(context.DeadlineExceeded), matches(context.Canceled)}},
	{exitNCCL, []func(error) bool{is[*sim.RetryError], is[*sim.TimedOutError], is[*net.OpError], real.PeerGone}},
	{exitTimeout, []func(error) bool{is[*sim.HangError], is[*sim.StuckError]}},
	{exitUsage, []func(error) bool{is[*coll.UnknownNameError], is[*coll.MaskError], is[*config.Error], is[*tuning.NoChoiceError], is[*topo.MergeError],
		is[*scenario.FieldError], func(err error) bool {
			var setting *sim.ConfigError
			return errors.As(err, &setting) && setting.Field == "Faults"
		}}},
	{exitInput, []func(error) bool{is[*scenario.InputError], is[topoxml.Errors], is[*fabric.NoRouteError], is[*fabric.NoTreeError], is[*connect.NoNetError],
		matches(calibrate.ErrNoHoldout), matches(calibrate.ErrTooFew),
		is[*chrome.SyntaxError], matches(os.ErrNotExist), matches(os.ErrPermission),
		matches(syscall.EISDIR), matches(syscall.ENOTDIR), matches(syscall.EROFS), matches(syscall.ENAMETOOLONG)}}, // a file named where none can be
}

// status maps an error to its exit status. Errors that nobody typed are ours.
func status(err error) int {
	var given *fail.Error
	var process *osexec.ExitError
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, &given) && given.Kind == fail.AsOf:
		return status(given.First)
	case given != nil:
		return kinds[given.Kind]
	case errors.As(err, &process) && process.ExitCode() > 0: // one of ours, of calibrate
		return process.ExitCode()
	case real.FaultOf(err) != real.Elsewhere:
		return faults[real.FaultOf(err)]
	}
	for _, c := range classes {
		for _, fits := range c.of {
			if fits(err) {
				return c.status
			}
		}
	}
	return exitInternal
}

// report prints an error, one line for each problem of a joined one, and
// returns the exit status.
func (a *app) report(err error) int {
	code := status(err)
	var given *fail.Error
	if err == nil || errors.As(err, &given) && given.Quiet {
		return code
	}
	for line := range strings.Lines(strings.TrimRight(err.Error(), "\n")) {
		fmt.Fprintf(a.err, "%s %s\n", a.paint(a.err).Red("simccl:"), strings.TrimRight(line, "\n"))
	}
	var file *fs.PathError
	if code == exitInternal && !errors.As(err, &file) { // a full disk is nobody's defect
		fmt.Fprintf(a.err, "simccl: this is a defect of simccl; please report it with the command line and the input\n")
	}
	return code
}
