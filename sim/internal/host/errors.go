package host

import (
	"fmt"

	"github.com/simccl/simccl/units"
)

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
	return fmt.Sprintf("NCCL ends with ncclRemoteError: a write of rank %d (net %d) to rank %d (net %d) on "+
		"channel %d was sent %d times and never acknowledged; "+
		"the queue pair gave up after %.3g s (IBV_WC_RETRY_EXC_ERR; NCCL_IB_TIMEOUT, NCCL_IB_RETRY_CNT)",
		e.Src, e.SrcNet, e.Dst, e.DstNet, e.Channel, e.Tries, e.After.Micros()*1e-6)
}

// TimedOutError is a TCP connection on which the peer stopped acknowledging: the
// next write fails with ETIMEDOUT, and the communicator ends with
// ncclRemoteError (misc/socket.cc:45).
type TimedOutError struct {
	Src, Dst, Channel int // ranks
	SrcNet, DstNet    int // nets of their nodes
	After             units.Time
}

func (e *TimedOutError) Error() string {
	return fmt.Sprintf("NCCL ends with ncclRemoteError: nothing that rank %d (net %d) wrote to rank %d "+
		"(net %d) on channel %d was acknowledged; "+
		"TCP gave the connection up after %.3g s (ETIMEDOUT; net.ipv4.tcp_retries2)",
		e.Src, e.SrcNet, e.Dst, e.DstNet, e.Channel, e.After.Micros()*1e-6)
}

// StuckError is an operation that never ends because a port through which the
// network would reduce forwards nothing: the plugin's test never reports that
// the collective is done, and the proxy has no timeout
// (transport/coll_net.cc:942).
type StuckError struct{ Host, Net int }

func (e *StuckError) Error() string {
	return fmt.Sprintf("the operation hangs: nothing gets through net %d of node %d, and the network "+
		"reduces only what all nodes have sent; "+
		"NCCL has no timeout for that: a watchdog has to call ncclCommAbort", e.Net, e.Host)
}
