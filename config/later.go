package config

import (
	"slices"
	"strings"

	"github.com/simccl/simccl/rules"
)

// later are variables of releases after 2.28.9 that simccl does not model, without
// their prefix, by the first tag that reads them (of 2.29.2, 2.29.3, 2.29.7, 2.30.3,
// 2.30.4 and 2.30.7) and the first that does not any more.
var later = []struct {
	span  rules.Span
	names string
}{
	{rules.Span{Since: rules.Release{Major: 2, Minor: 29, Patch: 2}},
		"ALLGATHERV_ENABLE ENABLE_VERSION_CHECK IPC_USE_ABSTRACT_SOCKET MULTI_SEGMENT_REGISTER NUM_RMA_CTX " +
			"P2P_EPOCH_ENABLE " +
			"RMA_PROXY_DUMP_SIGNAL RMA_PROXY_QUEUE_SIZE SOCKET_POLL_TIMEOUT_MSEC SYM_NOWIN_ENABLE"},
	{rules.Span{Since: rules.Release{Major: 2, Minor: 29, Patch: 7}, Until: rules.Release{Major: 2, Minor: 30,
		Patch: 3}},
		"GIN_EXCLUSIVE_CONTEXTS"},
	{rules.Span{Since: rules.Release{Major: 2, Minor: 29, Patch: 7}},
		"CHECK_MODE DISABLE_MEM_MANAGER GDAKI_USE_RELIABLE_DB GIN_NCONNECTIONS GIN_PLUGIN " +
			"GIN_PLUGIN_REF_COUNT IB_DEVICE_PCI_ORDER " +
			"IB_PREPOST_RECEIVE_WORK_REQUESTS IB_RECEIVER_SIDE_MATCHING_SCHEME IB_RESILIENCY_PORT_FAILOVER " +
			"IB_RESILIENCY_PORT_FAILOVER_MAX_ATTEMPTS IB_RESILIENCY_PORT_FAILOVER_PROBE_DELAY " +
			"LSA_TEAM_SIZE NO_CACHE"},
	{rules.Span{Since: rules.Release{Major: 2, Minor: 30, Patch: 3}},
		"ELASTIC_BUFFER_REGISTER GIN_GDAKI_MAX_DEST_RD_ATOMIC GIN_GDAKI_MAX_QP_RD_ATOMIC IBVERBS_LIB " +
			"IB_OOO_RQ " +
			"IB_RESILIENCY_PORT_RECOVERY IB_RESILIENCY_PORT_RECOVERY_ACK_TIMEOUT " +
			"IB_RESILIENCY_PORT_RECOVERY_ALIVE_MSG_BATCH_INTERVAL " +
			"IB_RESILIENCY_PORT_RECOVERY_ALIVE_MSG_BATCH_SIZE " +
			"IB_RESILIENCY_PORT_RECOVERY_ALIVE_MSG_SEQUENCE_SIZE " +
			"IB_RESILIENCY_PORT_RECOVERY_ALIVE_MSG_TIMEOUT IB_RESILIENCY_PORT_RECOVERY_ATTEMPTS_MAX " +
			"IB_RESILIENCY_PORT_RECOVERY_START_DELAY " +
			"IGNORE_COLLNET_MISMATCH IGNORE_NET_MISMATCH MNNVL_CROSS_CLIQUE MULTI_RANK_GPU_ENABLE " +
			"P2P_MAX_PEERS PARAM_DUMP_ALL"},
	{rules.Span{Since: rules.Release{Major: 2, Minor: 30, Patch: 4}},
		"SYM_REUSE_SYSMEM_HANDLES"},
	{rules.Span{Since: rules.Release{Major: 2, Minor: 30, Patch: 7}},
		"DEV_API_JIT GIN_CONNECTION_RAIL GIN_IB_TC GRAPH_STREAM_ORDERING IB_QUERY_PORT_SPEED " +
			"IB_SUBNET_AWARE_ROUTING " +
			"IB_SUBNET_PREFIX_LEN MLOPART_RDMA_ENABLE NET_GDR_MLOPART NET_MERGE_POLICY RMA_DISABLE " +
			"RMA_PLUGIN RMA_PLUGIN_REF_COUNT " +
			"SHADOW_MEMPOOL_MAX_SIZE SOCKET_MAGIC SYM_RS_GIN_CHUNK_SIZE TOPO_SPLIT_MLOPART"},
}

// notModelled is what is said of such a variable where the release reads it.
const notModelled = "is not supported: simccl does not model it"

// laterIn is readIn for variables without a row in the table; ok is false for a name that
// no release has.
func laterIn(name string) (span rules.Span, ok bool) {
	short := strings.TrimPrefix(name, "NCCL_")
	for _, l := range later {
		if short != name && slices.Contains(strings.Fields(l.names), short) {
			return l.span, true
		}
	}
	return rules.Span{}, false
}
