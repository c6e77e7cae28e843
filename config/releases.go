package config

import (
	"strings"

	"github.com/simccl/simccl/rules"
)

// In is the releases of NCCL that read a variable; open where all do that have
// rules or may get them (2.21.5 or later).
func (v *Var) In() rules.Span { return readIn(v.Name) }

// readIn is Var.In for any name: for one that no release has, the span is open.
// Since is the first tag whose source names the variable, of 2.21.5, 2.22.3,
// 2.23.4, 2.24.3, 2.25.1, 2.26.2, 2.26.6, 2.27.3, 2.27.5, 2.27.7, 2.28.3, 2.28.7,
// 2.28.9, 2.29.2, 2.29.7, 2.30.3 and 2.30.7.
func readIn(name string) rules.Span {
	switch strings.TrimPrefix(name, "NCCL_") {
	case "IB_FIFO_TC", "IB_ROUTABLE_FLID_GID_INDEX", "RUNTIME_CONNECT", "UNPACK_DOUBLE_NCHANNELS",
		"WORK_ARGS_BYTES",
		"WORK_FIFO_BYTES":
		return rules.Span{Since: rules.Release{Major: 2, Minor: 22, Patch: 3}}
	case "CONF_FILE", "CUMEM_HOST_ENABLE", "IB_ECE_ENABLE", "IB_RETURN_ASYNC_EVENTS", "MNNVL_CLIQUE_ID",
		"OOB_NET_ENABLE",
		"OOB_NET_IFNAME", "PAT_ENABLE", "PROFILER_PLUGIN", "UID_STAGGER_RATE", "UID_STAGGER_THRESHOLD":
		return rules.Span{Since: rules.Release{Major: 2, Minor: 23, Patch: 4}}
	case "IB_MQP_RETRY_ALL", "IB_MQP_RETRY_CNT", "IB_MQP_RETRY_SLEEP_MSEC", "IB_WARN_RAIL_LOCAL",
		"LEGACY_CUDA_REGISTER",
		"NET_FORCE_MERGE", "NET_MERGE_LEVEL", "NET_OPTIONAL_RECV_COMPLETION", "RAS_ADDR", "RAS_ENABLE",
		"RAS_TIMEOUT_FACTOR",
		"SOCKET_RETRY_CNT", "SOCKET_RETRY_SLEEP_MSEC":
		return rules.Span{Since: rules.Release{Major: 2, Minor: 24, Patch: 3}}
	case "MNNVL_UUID":
		return rules.Span{Since: rules.Release{Major: 2, Minor: 25, Patch: 1}}
	case "DEBUG_TIMESTAMP_FORMAT", "DEBUG_TIMESTAMP_LEVELS", "LAUNCH_ORDER_IMPLICIT", "LAUNCH_RACE_FATAL",
		"NET_GDR_C2C",
		"NET_PLUGIN_REF_COUNT":
		return rules.Span{Since: rules.Release{Major: 2, Minor: 26, Patch: 2}}
	case "COMM_SHRINK_SHARE_RESOURCES", "CTA_POLICY", "IB_DATA_DIRECT", "LL128_C2C",
		"NVLINK_UTIL_CENTRIC_SCHED_ENABLE",
		"PXN_C2C", "SOCKET_INLINE", "SOCKET_MIN_TASKSIZE", "SOCKET_RCVBUF", "SOCKET_SNDBUF", "SYM_CTAS",
		"SYM_KERNEL",
		"WIN_ENABLE", "WIN_STRIDE":
		return rules.Span{Since: rules.Release{Major: 2, Minor: 27, Patch: 3}}
	case "SHM_USE_CUDA_MEMCPY", "SHM_MEMCPY_MODE", "CREATE_THREAD_CONTEXT":
		return rules.Span{Until: rules.Release{Major: 2, Minor: 30, Patch: 7}}
	case "PROXY_PROFILE":
		return rules.Span{Until: rules.Release{Major: 2, Minor: 23, Patch: 4}}
	case "WORK_FIFO_DEPTH":
		return rules.Span{Until: rules.Release{Major: 2, Minor: 22, Patch: 3}}
	case "MNNVL_SCATTER_NETS_ENABLE":
		return rules.Span{Since: rules.Release{Major: 2, Minor: 27, Patch: 5}}
	case "NETDEVS_POLICY", "NVTX_DISABLE", "PROXY_CPUSET", "SET_CPU_STACK_SIZE", "SINGLE_PROC_MEM_REG_ENABLE":
		return rules.Span{Since: rules.Release{Major: 2, Minor: 28, Patch: 3}}
	case "ENV_PLUGIN", "GIN_ENABLE", "GIN_ERROR_QUERY_SEC", "GIN_GDAKI_NIC_HANDLER", "GIN_GDAKI_QP_DEPTH",
		"GIN_PROXY_QUEUE_SIZE", "GIN_TYPE", "MNNVL_RAIL_PER_HOST", "P2P_SCHEDULE_GROUP_SIZE":
		return rules.Span{Since: rules.Release{Major: 2, Minor: 28, Patch: 7}}
	case "GIN_COUNTER_POOL_SIZE", "GIN_NCONTEXTS", "GIN_SIGNAL_POOL_SIZE":
		return rules.Span{Since: rules.Release{Major: 2, Minor: 28, Patch: 7}, Until: rules.Release{Major: 2,
			Minor: 30, Patch: 3}}
	case "P2P_PER_CHANNEL_NET_BW", "SYM_CE_THRESHOLD":
		return rules.Span{Since: rules.Release{Major: 2, Minor: 29, Patch: 2}}
	case "SYM_GIN_KERNELS_ENABLE":
		return rules.Span{Since: rules.Release{Major: 2, Minor: 29, Patch: 7}}
	case "SYM_TMA_ENABLE":
		return rules.Span{Since: rules.Release{Major: 2, Minor: 30, Patch: 3}}
	}
	span, _ := laterIn(name)
	return span
}
