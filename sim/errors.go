package sim

import (
	"fmt"
	"strings"

	"github.com/simccl/simccl/sim/internal/route"
	"github.com/simccl/simccl/units"
)

// ConfigError is a Config that contradicts itself.
type ConfigError struct{ Field, Problem string }

func (e *ConfigError) Error() string { return fmt.Sprintf("simulator: %s: %s", e.Field, e.Problem) }

// RouteError is a connection for which the topology has no path: its fields are
// Node, From and To.
type RouteError = route.Error

// RetryError is a write that was never acknowledged: the completion that NCCL
// gets says IBV_WC_RETRY_EXC_ERR, and the communicator ends with
// ncclRemoteError (transport/net_ib.cc, ncclIbTest).
type RetryError struct {
	Src, Dst, Channel int // ranks
	SrcNet, DstNet    int // nets of their nodes
	Tries             int
	After             units.Time // from the first try to the last timeout
}

func (e *RetryError) Error() string {
	return fmt.Sprintf("NCCL ends with ncclRemoteError: a write of rank %d (net %d) to rank %d (net %d) on channel %d was sent %d times and never acknowledged; "+
		"the queue pair gave up after %.3g s (IBV_WC_RETRY_EXC_ERR; NCCL_IB_TIMEOUT, NCCL_IB_RETRY_CNT)",
		e.Src, e.SrcNet, e.Dst, e.DstNet, e.Channel, e.Tries, e.After.Micros()*1e-6)
}

// TimedOutError is a TCP connection over which nothing got through any more:
// the next write fails with ETIMEDOUT, and the communicator ends with
// ncclRemoteError (misc/socket.cc:45).
type TimedOutError struct {
	Src, Dst, Channel int // ranks
	SrcNet, DstNet    int // nets of their nodes
	After             units.Time
}

func (e *TimedOutError) Error() string {
	return fmt.Sprintf("NCCL ends with ncclRemoteError: nothing that rank %d (net %d) wrote to rank %d (net %d) on channel %d was acknowledged; "+
		"TCP gave the connection up after %.3g s (ETIMEDOUT; net.ipv4.tcp_retries2)",
		e.Src, e.SrcNet, e.Dst, e.DstNet, e.Channel, e.After.Micros()*1e-6)
}

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

// StuckError is an operation that never ends because a port through which the
// network would reduce passes nothing on: the plugin's test never says that the
// collective is done, and the proxy has no timeout (transport/coll_net.cc:942).
type StuckError struct{ Host, Net int }

func (e *StuckError) Error() string {
	return fmt.Sprintf("the operation hangs: nothing gets through net %d of node %d, and the network reduces only what all nodes have sent; "+
		"NCCL 2.28.9 has no timeout for that: a watchdog has to call ncclCommAbort", e.Net, e.Host)
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
