package sim

import (
	"fmt"
	"strings"

	"github.com/simccl/simccl/sim/internal/host"
	"github.com/simccl/simccl/sim/internal/route"
)

// ConfigError is a Config that contradicts itself.
type ConfigError struct{ Field, Problem string }

func (e *ConfigError) Error() string { return fmt.Sprintf("simulator: %s: %s", e.Field, e.Problem) }

// RouteError is a connection for which the topology has no path: its fields are
// Node, From and To.
type RouteError = route.Error

// RetryError is a write that was never acknowledged; its fields are Src, Dst,
// Channel, SrcNet, DstNet, Tries and After.
type RetryError = host.RetryError

// TimedOutError is a TCP connection on which the peer stopped acknowledging; its
// fields are Src, Dst, Channel, SrcNet, DstNet and After.
type TimedOutError = host.TimedOutError

// StuckError is an operation that waits forever for a port through which the
// network would reduce; its fields are Host and Net.
type StuckError = host.StuckError

// HangError is an operation that never ends because a rank is gone: kernels
// poll for what it would send, and NCCL 2.28.9 has no timeout for them.
type HangError struct {
	Gone    []int // ranks
	Waiting int   // ranks that wait forever
	First   int   // the lowest of them, -1 where none waits
}

func (e *HangError) Error() string {
	if e.Waiting == 0 {
		return fmt.Sprintf("%s gone and never ends; no other rank waits for it", ranks(e.Gone))
	}
	return fmt.Sprintf("the operation hangs: %s gone, and %d others wait for it forever, the first is rank %d; "+
		"NCCL 2.28.9 has no timeout for that: a watchdog has to call ncclCommAbort", ranks(e.Gone), e.Waiting, e.First)
}

// DeadlockError means that the plan stopped before its end: some op waits for
// data or room that never comes.
type DeadlockError struct {
	Waiting       int   // groups that wait
	Rank, Channel int32 // the first of them
	Seq           int32 // and the op it waits in
}

func (e *DeadlockError) Error() string {
	return fmt.Sprintf("simulator: the plan deadlocks: %d groups wait, the first is rank %d channel %d at op %d",
		e.Waiting, e.Rank, e.Channel, e.Seq)
}

// ranks is the subject of a sentence: rank 3 is, ranks 3, 4 are.
func ranks(list []int) string {
	if len(list) == 1 {
		return fmt.Sprintf("rank %d is", list[0])
	}
	return fmt.Sprintf("ranks %s are", strings.Join(strings.Fields(strings.Trim(fmt.Sprint(list), "[]")), ", "))
}
