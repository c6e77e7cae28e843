// Package param holds what a user sets of a simulated network in addition to its
// topology: how sockets are split, how lost packets are repeated, and faults.
// Values only: sim/internal/host gives them their meaning. NCCL counterpart: the
// NCCL_SOCKET_* and NCCL_IB_* variables.
package param

import "github.com/simccl/simccl/units"

// Sockets are the settings of connections over TCP, which nets of NCCL's socket
// plugin have (topo.NetInfo.Sockets). The zero value is NCCL's defaults.
type Sockets struct {
	Threads   units.Opt[int] // NCCL_SOCKET_NTHREADS: helpers of each side; unset: by the NIC's vendor
	PerThread units.Opt[int] // NCCL_NSOCKS_PERTHREAD
	MinTask   units.Opt[int] // NCCL_SOCKET_MIN_TASKSIZE, bytes: 65536
	Inline    units.Opt[int] // NCCL_SOCKET_INLINE, bytes: 128. Only traces show it
}

// LeastTask is the least part of a message that a socket of its own gets.
func (s *Sockets) LeastTask() units.Bytes { return units.Bytes(max(1, s.MinTask.Or(1<<16))) }

// Header is a message's size on the control socket (net_socket.cc:405).
const Header = 4

// OnControl is how many bytes of a message of n go over the control socket, its
// size included: all of a small one (net_socket.cc:528).
func (s *Sockets) OnControl(n units.Bytes) units.Bytes {
	if n <= units.Bytes(s.Inline.Or(128)) {
		return Header + n
	}
	return Header
}

// Reliability is how a reliable connection (RC) repeats what is not
// acknowledged: go back to the first packet missing. The zero value is NCCL's.
type Reliability struct {
	// Timeout is the exponent of the wait for an acknowledgement, 4.096 us times
	// two to it (NCCL_IB_TIMEOUT): 20, that is 4.3 s. 0 waits for hours.
	Timeout units.Opt[int]
	// Retries is how often a queue pair repeats without getting further
	// (NCCL_IB_RETRY_CNT): 7.
	Retries units.Opt[int]
}

// Wait is how long a queue pair waits for an acknowledgement.
func (r *Reliability) Wait() units.Time {
	exponent := r.Timeout.Or(20)
	if exponent <= 0 {
		exponent = 31
	}
	return units.FromMicros(4.096) << min(exponent, 31)
}

// Fault is a defect of a rank, or of a port where Rank is -1.
type Fault struct {
	Rank int
	// Slow is by how much longer the rank's GPU takes for everything, or by how
	// much slower the port is; 1 for not at all.
	Slow float64
	// Host and Net name the port, and Later is what it adds to each message.
	Host, Net int
	// Port is which of a fused net's ports, counted from 1; 0: the net as a whole.
	Port  int
	Later units.Time
	// Loss is the share of packets that the port loses.
	Loss float64
	// Down: the rank's process has ended, or the port forwards nothing.
	Down bool
}

// Bounds of a Fault.
const (
	MaxSlow  = 1e6
	MaxLater = units.Time(1e12) // a second
)

// Either is the share that is lost at one of two places.
func Either(a, b float64) float64 { return 1 - float64((1-a)*(1-b)) }
