package config

import "github.com/simccl/simccl/units"

// ibBindings are the settings of verbs connections.
func (c *Config) ibBindings() []binding {
	p := &c.IB
	return []binding{
		{"NCCL_IB_HCA", &p.HCA},
		{"NCCL_IB_DISABLE", &p.Disabled},
		{"NCCL_IB_GID_INDEX", &p.GIDIndex},
		{"NCCL_IB_ADDR_FAMILY", func(s string) { p.IPv6 = s == "AF_INET6" }},
		{"NCCL_IB_ADDR_RANGE", &p.AddrRange},
		{"NCCL_IB_ROCE_VERSION_NUM", &p.RoCEVersion},
		{"NCCL_IB_ROUTABLE_FLID_GID_INDEX", &p.RoutableGID},
		{"NCCL_IB_QPS_PER_CONNECTION", &p.QPs},
		{"NCCL_IB_SPLIT_DATA_ON_QPS", &p.SplitData},
		{"NCCL_IB_AR_THRESHOLD", &p.ARThreshold},
		{"NCCL_IB_ADAPTIVE_ROUTING", func(n int64) {
			p.Adaptive = units.Opt[int]{Value: int(n), Set: n != -2}
		}},
		{"NCCL_IB_USE_INLINE", &p.Inline},
		{"NCCL_IB_PCI_RELAXED_ORDERING", &p.Relaxed},
		{"NCCL_IB_FIFO_TC", &p.FifoTC},
		{"NCCL_IB_ECE_ENABLE", func(n int64) { p.ECEOff = n == 0 }},
		{"NCCL_IB_RETURN_ASYNC_EVENTS", func(n int64) { p.IgnoreEvents = n == 0 }},
		{"NCCL_IB_MQP_RETRY_ALL", &p.RetryAll},
		{"NCCL_IB_MQP_RETRY_CNT", &p.Retries},
		{"NCCL_IB_MQP_RETRY_SLEEP_MSEC", &p.RetrySleep},
		{"NCCL_IB_MERGE_NICS", func(n int64) { p.NoFusion = n == 0 }},
		{"NCCL_IB_MERGE_VFS", func(n int64) { p.SplitVFs = n == 0 }},
		{"NCCL_IB_TIMEOUT", func(n int64) { p.Service.Timeout = uint8(n) }},
		{"NCCL_IB_RETRY_CNT", func(n int64) { p.Service.Retry = uint8(n) }},
		{"NCCL_IB_SL", func(n int64) { p.Service.SL = uint8(max(n, 0)) }},
		{"NCCL_IB_TC", func(n int64) { p.Service.TC = uint8(max(n, 0)) }},
		{"NCCL_IB_PKEY", func(n int64) { p.Service.PkeyIndex = uint16(n) }},
	}
}

// socketBindings are the settings of connections over sockets.
func (c *Config) socketBindings() []binding {
	p := &c.Socket
	return []binding{
		{"NCCL_SOCKET_IFNAME", &p.IfName},
		{"NCCL_SOCKET_FAMILY", &p.Family},
		{"NCCL_SOCKET_NTHREADS", &p.Threads},
		{"NCCL_NSOCKS_PERTHREAD", &p.SocksPerThread},
		{"NCCL_SOCKET_INLINE", &p.Inline},
		{"NCCL_SOCKET_MIN_TASKSIZE", &p.MinTask},
		{"NCCL_SOCKET_SNDBUF", &p.SndBuf},
		{"NCCL_SOCKET_RCVBUF", &p.RcvBuf},
	}
}
