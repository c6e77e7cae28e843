package config

// ibBindings are the settings of verbs connections.
func (c *Config) ibBindings() []binding {
	p := &c.IB
	return []binding{
		{"NCCL_IB_HCA", &p.HCA},
		{"NCCL_IB_GID_INDEX", func(n int64) { p.GIDIndex, p.GIDSet = int(n), n >= 0 }},
		{"NCCL_IB_ADDR_FAMILY", func(s string) { p.IPv6 = s == "AF_INET6" }},
		{"NCCL_IB_QPS_PER_CONNECTION", func(n int64) { p.QPs = int(n) }},
		{"NCCL_IB_SPLIT_DATA_ON_QPS", &p.SplitData},
		{"NCCL_IB_AR_THRESHOLD", func(n int64) { p.ARThreshold = int(n) }},
		{"NCCL_IB_ADAPTIVE_ROUTING", func(n int64) { p.Adaptive, p.AdaptiveSet = n == 1, n != -2 }},
		{"NCCL_IB_USE_INLINE", &p.Inline},
		{"NCCL_IB_PCI_RELAXED_ORDERING", func(n int64) { p.Relaxed = n != 0 }},
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
