package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"strings"
	"syscall"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/config"
	"github.com/simccl/simccl/exec"
	"github.com/simccl/simccl/internal/connect"
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
// signalError.status.
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

// statusError gives an error its exit status; quiet ones were reported already.
type statusError struct {
	code  int
	quiet bool
	err   error
}

func (e *statusError) Error() string { return e.err.Error() }
func (e *statusError) Unwrap() error { return e.err }

// Local says to the other ranks of a bench that they cannot know more of it.
func (e *statusError) Local() {}

func usage(format string, args ...any) error {
	return &statusError{code: exitUsage, err: fmt.Errorf(format, args...)}
}

func input(err error) error {
	if err == nil {
		return nil
	}
	return &statusError{code: exitInput, err: err}
}

// failed is a check that was answered with no; what is wrong was printed.
func failed(format string, args ...any) error {
	return &statusError{code: exitCheck, err: fmt.Errorf(format, args...)}
}

func notYet(feature, missing string) error {
	return &exec.NotImplementedError{Feature: feature, Missing: missing}
}

// status maps an error to its exit status. Errors without a type are bugs.
func status(err error) int {
	var s *statusError
	var name *coll.UnknownNameError
	var mask *coll.MaskError
	var syntax *chrome.SyntaxError
	var setting *sim.ConfigError
	var remote *sim.RetryError
	var timedOut *sim.TimedOutError
	var hangs *sim.HangError
	var stuck *sim.StuckError
	var refused *net.OpError
	var noNet *connect.NoNetError
	var split *topo.SplitHostsError
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, &s):
		return s.code
	case real.FaultOf(err) != real.Elsewhere:
		return faults[real.FaultOf(err)]
	case errors.As(err, &split), errors.Is(err, exec.ErrNotImplemented), errors.Is(err, plan.ErrUnsupported):
		return exitNotImplemented
	case errors.Is(err, exec.ErrUnsupported):
		return exitAbsent
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return exitTimeout
	case errors.As(err, &remote), errors.As(err, &timedOut), errors.As(err, &refused), real.PeerClosed(err):
		return exitNCCL
	case errors.As(err, &hangs), errors.As(err, &stuck):
		return exitTimeout
	case errors.As(err, &name), errors.As(err, &mask), isUsage(err), errors.As(err, &setting) && setting.Field == "Faults":
		return exitUsage
	case isInput(err), errors.As(err, &noNet), errors.As(err, &syntax), errors.Is(err, os.ErrNotExist), errors.Is(err, os.ErrPermission), misplaced(err):
		return exitInput
	}
	return exitInternal
}

// isUsage reports a setting or choice that a user has to change.
func isUsage(err error) bool {
	var set *config.Error
	var none *tuning.NoChoiceError
	var merge *topo.MergeError
	var member *scenario.FieldError
	return errors.As(err, &set) || errors.As(err, &none) || errors.As(err, &merge) || errors.As(err, &member)
}

// isInput reports an input of which nothing can be made.
func isInput(err error) bool {
	var file *scenario.InputError
	var graphs topoxml.Errors
	var parted *fabric.NoRouteError
	var apart *fabric.NoTreeError
	return errors.As(err, &file) || errors.As(err, &graphs) || errors.As(err, &parted) || errors.As(err, &apart)
}

// faults are the exit statuses of what hardware, its libraries and other ranks
// did.
var faults = map[real.Fault]int{real.Argument: exitUsage, real.Input: exitInput, real.Wrong: exitCheck, real.Driver: exitCUDA,
	real.Peer: exitNCCL, real.Late: exitTimeout}

// misplaced reports that a file was named where none can be.
func misplaced(err error) bool {
	for _, no := range []error{syscall.EISDIR, syscall.ENOTDIR, syscall.EROFS, syscall.ENAMETOOLONG} {
		if errors.Is(err, no) {
			return true
		}
	}
	return false
}

// report prints an error, one line for each problem of a joined one, and
// returns the exit status.
func (a *app) report(err error) int {
	code := status(err)
	var s *statusError
	if err == nil || errors.As(err, &s) && s.quiet {
		return code
	}
	for line := range strings.Lines(strings.TrimRight(err.Error(), "\n")) {
		fmt.Fprintf(a.err, "%s %s\n", a.paint(a.err).Red("simccl:"), strings.TrimRight(line, "\n"))
	}
	var file *fs.PathError
	if code == exitInternal && !errors.As(err, &file) { // an I/O failure is not a bug in simccl
		fmt.Fprintf(a.err, "simccl: this is a defect of simccl; please report it with the command line and the input\n")
	}
	return code
}
