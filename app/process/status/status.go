// Package status maps types of errors to exit statuses. It neither makes nor prints errors.
package status

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
	OK             = 0
	Internal       = 1
	CUDA           = 2
	NCCL           = 3
	Timeout        = 4
	NotImplemented = 5
	Usage          = 6
	Check          = 7
	Input          = 8
	Absent         = 9
	LeftOver       = 75 // EX_TEMPFAIL of sysexits.h: schedulers run it again
)

// kinds maps errors of a command's inputs to exit statuses; faults those of hardware, its libraries and other
// ranks.
var (
	kinds = map[fail.Kind]int{fail.BadArgument: Usage, fail.BadInput: Input, fail.No: Check,
		fail.Absent: Absent, fail.NotBuilt: NotImplemented, fail.LeftOver: LeftOver}
	faults = map[real.Fault]int{real.Argument: Usage, real.Input: Input, real.Wrong: Check, real.Driver: CUDA,
		real.Peer: NCCL, real.Late: Timeout}
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
	{NotImplemented, []func(error) bool{
		is[*topo.SplitHostsError], is[*config.UnmodelledError],
		matches(exec.ErrNotImplemented),
		matches(plan.ErrUnsupported)}},
	{Absent, []func(error) bool{matches(exec.ErrUnsupported)}},
	{Timeout, []func(error) bool{matches(context.DeadlineExceeded), matches(context.Canceled)}},
	{NCCL, []func(error) bool{
		is[*sim.RetryError], is[*sim.TimedOutError], is[*net.OpError], real.PeerClosed}},
	{NCCL, []func(error) bool{func(err error) bool {
		var stall *sim.StallError
		return errors.As(err, &stall) && stall.GaveUp()
	}}},
	{Timeout, []func(error) bool{
		is[*sim.HangError], is[*sim.StuckError], is[*sim.StallError], is[*streams.DeadlockError]}},
	{Usage, []func(error) bool{
		is[*coll.UnknownNameError], is[*coll.MaskError], is[*config.Error], is[*tuning.NoChoiceError],
		is[*topo.MergeError], is[*session.SizeError], is[*fabric.LayoutError],
		is[*scenario.FieldError], func(err error) bool {
			var setting *sim.ConfigError
			return errors.As(err, &setting) && setting.Field == "Faults"
		}}},
	{Input, []func(error) bool{
		is[*scenario.InputError], is[topoxml.Errors], is[*topo.LibraryError], is[*sim.BufferError],
		is[*fabric.NoRouteError],
		is[*fabric.NoTreeError], is[*connect.NoNetError],
		matches(calibrate.ErrNoHoldout), matches(calibrate.ErrTooFew),
		is[*chrome.SyntaxError], matches(os.ErrNotExist), matches(os.ErrPermission),
		// a file named where none can be
		matches(syscall.EISDIR), matches(syscall.ENOTDIR), matches(syscall.EROFS),
		matches(syscall.ENAMETOOLONG)}},
}

// Of maps an error to its exit status. Errors without a type are bugs.
func Of(err error) int {
	var given *fail.Error
	var process *osexec.ExitError
	switch {
	case err == nil:
		return OK
	case errors.As(err, &given) && given.Kind == fail.AsOf:
		return Of(given.First)
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
	return Internal
}
