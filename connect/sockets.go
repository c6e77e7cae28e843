package connect

import "github.com/simccl/simccl/units"

// Limits of NCCL's socket plugin (net_socket.cc:132).
const (
	MaxSockets       = 64 // of a connection
	MaxSocketThreads = 16
)

// PCI vendors for whose NICs the socket plugin has numbers of its own
// (net_socket.cc:309).
const (
	VendorAWS    = 0x1d0f
	VendorGoogle = 0x1ae0
)

// SocketSplit reports over how many sockets a TCP connection's data goes, and how
// many helper threads of each side serve them: NCCL_NSOCKS_PERTHREAD times
// NCCL_SOCKET_NTHREADS, by the NIC's vendor where they are not set. 0 of both:
// the proxy thread itself serves one socket (net_socket.cc:289).
func SocketSplit(vendor uint16, threads, perThread units.Opt[int]) (sockets, helpers int) {
	t, s := 0, 1
	switch vendor {
	case VendorAWS:
		t, s = 2, 8
	case VendorGoogle:
		t, s = 4, 1
	}
	t, s = min(max(threads.Or(t), 0), MaxSocketThreads), max(perThread.Or(s), 0)
	if t*s > MaxSockets {
		s = MaxSockets / t
	}
	if t*s == 0 {
		return 0, 0
	}
	return t * s, t
}
