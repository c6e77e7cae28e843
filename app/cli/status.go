package cli

import (
	"context"
	"errors"
	"net"
	"os"
	osexec "os/exec"
	"syscall"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/config"
	"github.com/simccl/simccl/connect"
	"github.com/simccl/simccl/exec"
	"github.com/simccl/simccl/internal/fail"
	session "github.com/simccl/simccl/job"
	"github.com/simccl/simccl/job/streams"
	"github.com/simccl/simccl/plan"
	"github.com/simccl/simccl/real"
	"github.com/simccl/simccl/scenario"
	"github.com/simccl/simccl/sim"
	"github.com/simccl/simccl/study/calibrate"
	"github.com/simccl/simccl/topo"
	"github.com/simccl/simccl/topo/fabric"
	topoxml "github.com/simccl/simccl/topo/xml"
	"github.com/simccl/simccl/trace/chrome"
	"github.com/simccl/simccl/tuning"
)

// Exit statuses; 0 to 7 have their meaning in nccl-tests. The status of a signal is that of interrupt.Error.
const (
	StatusOK             = 0
	StatusInternal       = 1
	StatusCUDA           = 2
	StatusNCCL           = 3
	StatusTimeout        = 4
	StatusNotImplemented = 5
	StatusUsage          = 6
	StatusCheck          = 7
	StatusInput          = 8
	StatusAbsent         = 9
	StatusLeftOver       = 75 // EX_TEMPFAIL of sysexits.h: schedulers run it again
)

// statusOfKind maps errors of a command's inputs to exit statuses; faults those of hardware, its libraries
// and other ranks.
var (
	statusOfKind = map[fail.Kind]int{fail.BadArgument: StatusUsage, fail.BadInput: StatusInput,
		fail.No:     StatusCheck,
		fail.Absent: StatusAbsent, fail.NotBuilt: StatusNotImplemented, fail.LeftOver: StatusLeftOver}
	statusOfFault = map[real.Fault]int{real.Argument: StatusUsage, real.Input: StatusInput,
		real.Wrong: StatusCheck, real.Driver: StatusCUDA,
		real.Peer: StatusNCCL, real.Late: StatusTimeout}
)

// is reports whether an error is, or wraps, one of type T; matches tests for a value.
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
	{StatusNotImplemented, []func(error) bool{
		is[*topo.SplitHostsError], is[*config.UnmodelledError],
		matches(exec.ErrNotImplemented),
		matches(plan.ErrUnsupported)}},
	{StatusAbsent, []func(error) bool{matches(exec.ErrUnsupported)}},
	{StatusTimeout, []func(error) bool{matches(context.DeadlineExceeded), matches(context.Canceled)}},
	{StatusNCCL, []func(error) bool{
		is[*sim.RetryError], is[*sim.TimedOutError], is[*net.OpError], real.PeerClosed}},
	{StatusNCCL, []func(error) bool{func(err error) bool {
		var stall *sim.StallError
		return errors.As(err, &stall) && stall.GaveUp()
	}}},
	{StatusTimeout, []func(error) bool{
		is[*sim.HangError], is[*sim.StuckError], is[*sim.StallError], is[*streams.DeadlockError]}},
	{StatusUsage, []func(error) bool{
		is[*coll.UnknownNameError], is[*coll.MaskError], is[*config.Error], is[*tuning.NoChoiceError],
		is[*topo.MergeError], is[*session.SizeError], is[*fabric.LayoutError],
		is[*scenario.FieldError], func(err error) bool {
			var setting *sim.ConfigError
			return errors.As(err, &setting) && setting.Field == "Faults"
		}}},
	{StatusInput, []func(error) bool{
		is[*fail.FileError], is[*scenario.InputError], is[topoxml.Errors], is[*topo.LibraryError],
		is[*sim.BufferError], is[*fabric.NoRouteError], is[*fabric.NoTreeError], is[*connect.NoNetError],
		matches(calibrate.ErrNoHoldout), matches(calibrate.ErrTooFew),
		is[*chrome.SyntaxError], matches(os.ErrNotExist), matches(os.ErrPermission),
		// a file named where none can be
		matches(syscall.EISDIR), matches(syscall.ENOTDIR), matches(syscall.EROFS),
		matches(syscall.ENAMETOOLONG)}},
}

// ExitStatus maps an error to its exit status. Errors without a type are bugs.
func ExitStatus(err error) int {
	var given *fail.Error
	var process *osexec.ExitError
	switch {
	case err == nil:
		return StatusOK
	case errors.As(err, &given) && given.Kind == fail.AsOf:
		return ExitStatus(given.First)
	case given != nil:
		return statusOfKind[given.Kind]
	case errors.As(err, &process) && process.ExitCode() > 0: // one of ours, of calibrate
		return process.ExitCode()
	case real.FaultOf(err) != real.Elsewhere:
		return statusOfFault[real.FaultOf(err)]
	}
	for _, c := range classes {
		for _, fits := range c.of {
			if fits(err) {
				return c.status
			}
		}
	}
	return StatusInternal
}
