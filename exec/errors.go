package exec

import (
	"errors"
	"fmt"

	"github.com/simccl/simccl/plan"
)

// Sentinel errors that UnsupportedError matches with errors.Is.
var (
	// ErrUnsupported: this build or this machine cannot do it (exit status 9
	// where hardware or a library is absent).
	ErrUnsupported = errors.New("unsupported")
	// ErrNotImplemented: simccl does not do it yet (exit status 5).
	ErrNotImplemented = errors.New("not implemented")
)

// UnsupportedError says what was asked for, what it needs, and what was found
// instead. It matches ErrUnsupported.
type UnsupportedError struct {
	Feature string // "InfiniBand verbs executor"
	Needs   string // "libibverbs.so.1"
	Found   string // "no such library"
}

func (e *UnsupportedError) Error() string {
	if e.Found == "" {
		return fmt.Sprintf("%s: needs %s", e.Feature, e.Needs)
	}
	return fmt.Sprintf("%s: needs %s: %s", e.Feature, e.Needs, e.Found)
}

// Is makes errors.Is(err, ErrUnsupported) hold.
func (e *UnsupportedError) Is(target error) bool { return target == ErrUnsupported }

// NotImplementedError names what simccl does not do yet. It matches
// ErrNotImplemented.
type NotImplementedError struct {
	Feature string
	Missing string // what would have to exist
}

func (e *NotImplementedError) Error() string {
	return fmt.Sprintf("%s: not available yet: %s", e.Feature, e.Missing)
}

// Is makes errors.Is(err, ErrNotImplemented) hold.
func (e *NotImplementedError) Is(target error) bool { return target == ErrNotImplemented }

// NeedsNoReducingNetwork refuses plans that leave reductions to the network
// (CollNet, NVLS between nodes): an executor that only moves bytes between ranks
// cannot perform in-network reductions. who names it in the error.
func NeedsNoReducingNetwork(p *plan.Plan, who string) error {
	if len(p.NetGroups()) == 0 {
		return nil
	}
	return &UnsupportedError{Feature: fmt.Sprintf("%v with %v on %s", p.Req.Func, p.Req.Algo, who),
		Needs: "a network that reduces",
		Found: "one that carries bytes; NCCL_COLLNET_ENABLE=0 leaves such plans out"}
}
