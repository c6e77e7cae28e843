// Package netcfg holds the settings of network connections: NCCL's variables
// for verbs (NCCL_IB_*) and for sockets (NCCL_SOCKET_*) as typed values.
//
// Package config fills them; the transports under real/ take them. The values
// are here, apart from both, so that reading settings needs no hardware
// library. Package netcfg opens nothing and interprets nothing. NCCL
// counterpart: the NCCL_PARAM lists of transport/net_ib.cc and net_socket.cc.
package netcfg

import "github.com/simccl/simccl/units"

// IB is the NCCL_IB_* variables that change what a verbs connection sends; the
// zero value is NCCL's defaults.
type IB struct {
	HCA         string         // NCCL_IB_HCA
	GIDIndex    units.Opt[int] // NCCL_IB_GID_INDEX, for RoCE; -1: chosen by the next three
	IPv6        bool           // NCCL_IB_ADDR_FAMILY=AF_INET6
	AddrRange   string         // NCCL_IB_ADDR_RANGE: 10.0.0.0/8
	RoCEVersion units.Opt[int] // NCCL_IB_ROCE_VERSION_NUM; default 2
	RoutableGID units.Opt[int] // NCCL_IB_ROUTABLE_FLID_GID_INDEX, for InfiniBand; default 1
	QPs         units.Opt[int] // NCCL_IB_QPS_PER_CONNECTION, for each port; default 1
	SplitData   bool           // NCCL_IB_SPLIT_DATA_ON_QPS
	ARThreshold units.Opt[int] // NCCL_IB_AR_THRESHOLD, bytes; default 8192
	Adaptive    units.Opt[int] // NCCL_IB_ADAPTIVE_ROUTING; unset it is on for InfiniBand
	Inline      bool           // NCCL_IB_USE_INLINE: the clear-to-send is posted inline
	// NCCL_IB_PCI_RELAXED_ORDERING: 0 no, 1 yes, 2 where the library can; default 2
	Relaxed units.Opt[int]
	FifoTC  units.Opt[int] // NCCL_IB_FIFO_TC: traffic class of clear-to-sends; -1: the data's
	ECEOff  bool           // NCCL_IB_ECE_ENABLE=0
	Service *Service       // timeout, retries, SL, TC, pkey; nil for DefaultService

	IgnoreEvents bool           // NCCL_IB_RETURN_ASYNC_EVENTS=0
	RetryAll     bool           // NCCL_IB_MQP_RETRY_ALL
	Retries      units.Opt[int] // NCCL_IB_MQP_RETRY_CNT; default 34
	RetrySleep   units.Opt[int] // NCCL_IB_MQP_RETRY_SLEEP_MSEC; default 100

	Disabled bool   // NCCL_IB_DISABLE: there are no devices
	NoFusion bool   // NCCL_IB_MERGE_NICS=0
	SplitVFs bool   // NCCL_IB_MERGE_VFS=0
	Host     string // local address on which connections are set up
}

// QPsPerPort returns how many queue pairs a connection has on each port.
func (s *IB) QPsPerPort() int { return max(s.QPs.Or(1), 1) }

// Service is the settings of a connection's queue pairs: NCCL_IB_TIMEOUT,
// NCCL_IB_RETRY_CNT, NCCL_IB_SL, NCCL_IB_TC, NCCL_IB_PKEY. SL and TC are the
// sender's; the receiver takes them over.
type Service struct {
	Timeout, Retry, SL, TC uint8
	PkeyIndex              uint16
}

// DefaultService returns NCCL's (transport/net_ib.cc:124-129).
func DefaultService() Service { return Service{Timeout: 20, Retry: 7} }

// Socket is the variables that change what a connection over TCP sends; the
// zero value is NCCL's defaults.
type Socket struct {
	IfName         string         // NCCL_SOCKET_IFNAME
	Family         string         // NCCL_SOCKET_FAMILY: AF_INET, AF_INET6 or empty
	Threads        units.Opt[int] // NCCL_SOCKET_NTHREADS
	SocksPerThread units.Opt[int] // NCCL_NSOCKS_PERTHREAD
	Inline         units.Opt[int] // NCCL_SOCKET_INLINE, bytes; default 128
	MinTask        units.Opt[int] // NCCL_SOCKET_MIN_TASKSIZE, bytes; default 64 KiB
	SndBuf, RcvBuf units.Opt[int] // NCCL_SOCKET_SNDBUF, NCCL_SOCKET_RCVBUF
}
