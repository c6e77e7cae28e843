package sim

import (
	"fmt"

	"github.com/simccl/simccl/sim/internal/engine"
	"github.com/simccl/simccl/sim/internal/host"
	"github.com/simccl/simccl/sim/internal/packets"
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

// StallError is messages of a network that is simulated frame by frame which never
// arrive; its fields are Stall, Names and Paused.
type StallError = packets.StallError

// BufferError is a switch of such a network whose memory is not more than what its ports
// keep for themselves; its fields are Switch, Ports, Bytes and Kept.
type BufferError = packets.BufferError

// HangError is an operation that never ends because a rank is down; its fields are
// Failed, Waiting and First.
type HangError = engine.HangError

// DeadlockError is a plan that stopped before its end; its fields are Waiting,
// Rank, Channel and Seq.
type DeadlockError = engine.DeadlockError
