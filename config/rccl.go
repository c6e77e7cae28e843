package config

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/rules"
)

// rcclPrefix begins the variables that RCCL alone reads.
const rcclPrefix = "RCCL_"

// Reasons that several of RCCL's variables share.
const (
	buildOption = "it is of a build with an option that AMD's sources leave off"
	planless    = "plans of AMD's machines have its default alone"
	timesAlone  = "no decision depends on it, and times are those of its default"
	netOff      = "it is read only where send/recv of one host goes over the network, which is refused"
	noCopies    = "copy engines serve symmetric windows, of which machines of AMD have none here"
	ownRings    = "rings and trees of a user's are not modelled"

	oldSchedules = "MSCCL is of releases without rules here"
)

// Feature is a part of RCCL that is not modelled as a whole.
type Feature string

const (
	// WarpSpeed is a wavefront in place of a block of threads a channel.
	WarpSpeed Feature = "WarpSpeed"
	// GDA is AllToAll by NICs that kernels drive (rocSHMEM).
	GDA Feature = "GDA"
	// MSCCL is schedules from files of RCCL's, with MSCCL++.
	MSCCL Feature = "MSCCL"
)

// features say of which builds or releases a feature is, and what to write in place of a variable of it.
var features = map[Feature][2]string{
	WarpSpeed: {buildOption, ""},
	GDA: {"AllToAll by rocSHMEM is of a build with an option that AMD's sources leave off",
		"write RCCL_ROCSHMEM_ENABLE=0, by which RCCL sends and receives"},
	MSCCL: {"its schedules are of ROCm 6 and 7.0 to 7.2, whose releases have no rules here; builds of " +
		"2.28.3 leave it off, and 2.30.4 has none", "write RCCL_MSCCL_ENABLE=0 and RCCL_MSCCLPP_ENABLE=0"},
}

// featureOf is the feature that a variable belongs to, if it is refused for that.
func featureOf(name string) Feature {
	switch {
	case strings.HasPrefix(name, "RCCL_WARP_SPEED"):
		return WarpSpeed
	case strings.HasPrefix(name, "RCCL_ROCSHMEM"):
		return GDA
	case strings.HasPrefix(name, "RCCL_MSCCL"):
		return MSCCL
	}
	return ""
}

// UnmodelledError refuses a variable that would change what RCCL decides: of a feature, or alone.
type UnmodelledError struct {
	Feature Feature // "": none of them
	Why     string
	Write   string // instead; "": leave the variable unset
}

func (e *UnmodelledError) Error() string {
	what := "not modelled: "
	if e.Feature != "" {
		what = string(e.Feature) + " is not modelled: "
	}
	return what + e.Why + "; " + cmp.Or(e.Write, "leave it unset")
}

// refused are the variables of RCCL with a bearing on decisions or plans that is not modelled, with the value
// besides the default by which nothing changes. NCCL_RINGS is RCCL's too, but read under NCCL's prefix.
var refused = map[string]string{
	"NCCL_RINGS": "", "NCCL_RINGS_REMAP": "", "RCCL_TREES": "", "RCCL_ENABLE_INTRANET": "0",
	"RCCL_REDUCED_CU_ENABLE": "0", "RCCL_WARP_SPEED_FORCE_ENABLE": "0", "RCCL_WARP_SPEED_ENABLE": "0",
	"RCCL_ALL_TO_ALL_PIVOT_ENABLE": "0", "RCCL_PIVOT_ALLTOALL_ENABLE": "1", "RCCL_UNROLL_FACTOR": "-1",
	"RCCL_P2P_BATCH_ENABLE": "-1", "RCCL_P2P_BATCH_THRESHOLD": "65536", "RCCL_P2P_SHIFT_SIZE": "-1",
	"RCCL_P2P_NET_DISABLE": "1", "RCCL_PXN_OPT_QP_USAGE": "0", "RCCL_ROCSHMEM_ENABLE": "0",
	"RCCL_MSCCL_ENABLE": "0", "RCCL_MSCCL_FORCE_ENABLE": "0", "RCCL_MSCCLPP_ENABLE": "0",
	"RCCL_MSCCLPP_FORCE_ENABLE": "0",
}

// rcclVars are the variables of RCCL 2.30.4 and 2.28.3 beside NCCL's.
var rcclVars = []Var{
	{"RCCL_MODEL_MATCHING_DISABLE", Flag, "0", "search/preset",
		"search every machine, also those that are known",
		"graph/search.cc:1161", "", ""},
	{"RCCL_MODEL_REVERSAL_DISABLE", Flag, "0", "search/preset", "rings of odd hosts go forwards too",
		"graph/rome_models.cc:1832", "", ""},
	{"RCCL_DISABLE_RAIL_TREES", Flag, "0", "search/preset", "no trees by rails", "graph/rome_models.cc:2656",
		"", ""},
	{"RCCL_DISABLE_NET_OVERRIDE", Flag, "0", "search/preset", "keep the paths to nets that a model changes",
		"graph/rome_models.cc:2473", "", ""},
	{"RCCL_LL128_FORCE_ENABLE", Flag, "0", "tuning", "LL128 on machines without a model that has it",
		"init.cc:1761", "",
		""},
	{"RCCL_CHANNEL_TUNING_ENABLE", Flag, "1", "tuning", "channels by the table's windows", "rccl_wrap.cc:175",
		"", ""},
	{"RCCL_THREADS_PER_BLOCK", Number, "-1", "tuning", "threads of a block", "rccl_wrap.cc:49", "", ""},
	{"RCCL_OVERRIDE_ALGO", Text, "", "tuning", "algorithm in place of the chosen one, where it is on",
		"rccl_wrap.cc:263", "", ""},
	{"RCCL_OVERRIDE_PROTO", Text, "", "tuning", "protocol in place of the chosen one, where it is on",
		"rccl_wrap.cc:236", "", ""},
	{"RCCL_AINIC_ROCE", Number, "-1", "tuning",
		"1: NICs of AMD have their own tables and no direct AllGather",
		"transport/net.cc:214", "", ""},
	{"RCCL_DDA_ENABLE", Flag, "1", "tuning", "kernels that read the memory of all GPUs (DDA)",
		"collectives.cc:126", "",
		""},
	{"RCCL_DDA_THRESHOLD", Number, "67108864", "tuning", "largest bytes of DDA on gfx950",
		"collectives.cc:127", "", ""},
	{"RCCL_DIRECT_ALLGATHER_DISABLE", Flag, "0", "tuning", "no direct AllGather", "rccl_wrap.cc:519", "", ""},
	{"RCCL_DIRECT_ALLGATHER_THRESHOLD", Number, "75497472", "tuning",
		"largest bytes of a direct AllGather; -1: none", "rccl_wrap.cc:536", "", ""},
	{"RCCL_DIRECT_REDUCE_SCATTER_DISABLE", Flag, "0", "tuning", "no direct ReduceScatter", "rccl_wrap.cc:579",
		"", ""},
	{"RCCL_DIRECT_REDUCE_SCATTER_THRESHOLD", Number, "8388608", "tuning",
		"largest bytes of a direct ReduceScatter",
		"rccl_wrap.cc:593", "RCCL compares it with -1 without sign, so that 8 MiB hold always", ""},
	{"RCCL_HIERARCHICAL_ALLGATHER", Flag, "1", "tuning",
		"AllGather over nodes and then within them, from 8 nodes on",
		"rccl_wrap.cc:500", "", ""},
	{"RCCL_DISABLE_REDUCE_COPY_PIPELINING", Flag, "0", "tuning", "no pipelined reductions",
		"rccl_wrap.cc:309", "", ""},
	{"RCCL_PIPELINE_ALL_DATA_TYPES", Flag, "0", "tuning", "pipelined reductions of all types",
		"rccl_wrap.cc:312", "",
		""},
	{"RCCL_TREES", Text, "", "search", "trees of a user's", "graph/search.cc:1146", "", ownRings},
	{"RCCL_ENABLE_INTRANET", Number, "-2", "topo", "use the network within a host", "graph/paths.cc:1081", "",
		"rings over the network within a host are not modelled"},
	{"RCCL_REDUCED_CU_ENABLE", Flag, "0", "tuning", "at most 48 channels (2.28.3)", "rccl_wrap.cc:54", "",
		"channels that a choice takes from the communicator are not modelled"},
	{"RCCL_WARP_SPEED_FORCE_ENABLE", Flag, "0", "tuning", "a wavefront a channel", "rccl_wrap.cc:53", "",
		buildOption},
	{"RCCL_WARP_SPEED_ENABLE", Flag, "0", "tuning", "a wavefront a channel (2.28.3)", "rccl_wrap.cc:49", "",
		buildOption},
	{"RCCL_WARP_SPEED_AUTO", Flag, "1", "tuning", "a wavefront a channel on gfx950", "rccl_wrap.cc:52",
		buildOption, ""},
	{"RCCL_WARP_SPEED_CU_COUNT", Number, "0", "tuning", "compute units of it", "rccl_wrap.cc:51", buildOption,
		""},
	{"RCCL_WARP_SPEED_AG_THRESHOLD", Number, "134217728", "tuning", "least bytes", "rccl_wrap.cc:54",
		buildOption, ""},
	{"RCCL_WARP_SPEED_AR_THRESHOLD", Number, "67108864", "tuning", "least bytes", "rccl_wrap.cc:56",
		buildOption, ""},
	{"RCCL_WARP_SPEED_RS_THRESHOLD", Number, "2147483648", "tuning", "least bytes", "rccl_wrap.cc:55",
		buildOption, ""},
	{"RCCL_ROCSHMEM_ENABLE", Flag, "0", "tuning", "AllToAll by rocSHMEM (GDA), 1 in a build with it",
		"init.cc", "", buildOption},
	{"RCCL_MSCCL_ENABLE", Flag, "0", "plan", "schedules of MSCCL, 1 in a build with them",
		"misc/msccl/msccl_lifecycle.cc", "", oldSchedules},
	{"RCCL_MSCCL_FORCE_ENABLE", Flag, "0", "plan", "schedules of MSCCL on any machine",
		"misc/msccl/msccl_lifecycle.cc", "", oldSchedules},
	{"RCCL_MSCCLPP_ENABLE", Flag, "0", "plan", "kernels of MSCCL++, 1 in a build with them", "init.cc", "",
		oldSchedules},
	{"RCCL_MSCCLPP_FORCE_ENABLE", Flag, "0", "plan", "kernels of MSCCL++ on any machine", "init.cc", "",
		oldSchedules},
	{"RCCL_MSCCLPP_THRESHOLD", Number, "1048576", "plan", "largest bytes of MSCCL++", "init.cc", oldSchedules,
		""},
	{"RCCL_ROCSHMEM_THRESHOLD", Number, "262144", "tuning", "largest bytes of it", "init.cc", buildOption,
		""},
	{"RCCL_SYM_MODEL", Number, "0", "tuning", "model of symmetric kernels", "sym_kernels.cc",
		"windows of AMD's machines are not modelled, and no choice is made for them", ""},
	{"RCCL_INIT_CHANNELS", Number, "-1", "connect", "channels of gfx1151", "init.cc:1591",
		"gfx1151 is not an architecture with rules here", ""},
	{"RCCL_UNROLL_FACTOR", Number, "-1", "plan", "unrolling: 0, 1, 2 for 1, 2, 4", "rccl_wrap.cc:841", "",
		planless},
	{"RCCL_P2P_BATCH_ENABLE", Number, "-1", "plan", "batches of send/recv", "enqueue.cc:1088", "", planless},
	{"RCCL_P2P_BATCH_THRESHOLD", Number, "65536", "plan", "largest bytes of a rank in them",
		"enqueue.cc:1118", "",
		planless},
	{"RCCL_P2P_SHIFT_SIZE", Number, "-1", "plan", "order of send/recv on channels", "rccl_wrap.cc:866", "",
		planless},
	{"RCCL_P2P_NET_DISABLE", Flag, "1", "plan", "send/recv of one host never over the network",
		"init.cc:1674", "",
		planless},
	{"RCCL_P2P_NET_THRESHOLD", Number, "131072", "plan", "least bytes of that", "enqueue.cc:1131", netOff,
		""},
	{"RCCL_INTRANET_THRESHOLD", Number, "8388608", "plan", "least bytes of the network within a host",
		"enqueue.cc:907", netOff, ""},
	{"RCCL_PIVOT_ALLTOALL_ENABLE", Flag, "1", "plan", "AllToAll by pivots", "init.cc:1758", "", planless},
	{"RCCL_ALL_TO_ALL_PIVOT_ENABLE", Flag, "0", "plan", "AllToAll by pivots", "collectives.cc:292", "",
		"AllToAll by pivots has no plan"},
	{"RCCL_GFX9_CHEAP_FENCE_OFF", Flag, "1", "plan", "fences of kernels", "init.cc:1706", timesAlone, ""},
	{"RCCL_CE_BATCH_ASYNC_ENABLE", Number, "-2", "plan", "batched copies", "ce_coll.cc:46", noCopies, ""},
	{"RCCL_CE_MULTI_STREAMS", Flag, "0", "plan", "copies on several streams", "ce_coll.cc:110", noCopies, ""},
	{"RCCL_PXN_OPT_QP_USAGE", Flag, "0", "net", "queue pairs of relays", "include/channel.h:30", "",
		planless},
	{"RCCL_IB_QPS_PER_P2P", Number, "0", "net", "queue pairs of send/recv",
		"transport/net_ib_cast/connect.cc:38", timesAlone, ""},
	{"RCCL_IB_SPLIT_DATA_THRESHOLD", Number, "128", "net", "least bytes that are split over queue pairs",
		"transport/net_ib/p2p.cc:163", timesAlone, ""},
	{"RCCL_IB_P2P_DISABLE_CTS", Flag, "1", "net", "clear to send of send/recv",
		"transport/net_ib_cast/connect.cc:66", timesAlone, ""},
	{"RCCL_CTS_OFFLOAD_ENABLED", Number, "-1", "net", "clear to send by the NIC",
		"transport/net_ib_cast/init.cc:510", timesAlone, ""},
	{"RCCL_NET_CONTIGUOUS_MEM", Flag, "0", "net", "buffers in one piece", "transport/net.cc:867", timesAlone,
		""},
	{"RCCL_NET_HDP_FLUSH", Flag, "0", "net", "flush by the host data path", "transport/net.cc:1973",
		timesAlone, ""},
	{"RCCL_GDR_FLUSH_GPU_MEM_NO_RELAXED_ORDERING", Flag, "1", "net", "ordering of flushes",
		"transport/net_ib_cast/connect.cc:1500", timesAlone, ""},
	{"RCCL_FORCE_ENABLE_DMABUF", Flag, "0", "net", "GPUDirect RDMA by DMA-BUF", "transport/net_ib.cc",
		"a file says which NICs have GPUDirect RDMA", ""},
	{"RCCL_FORCE_ENABLE_GDRDMA", Number, "-1", "net", "GPUDirect RDMA without its kernel module",
		"transport/net_ib.cc",
		"a file says which NICs have GPUDirect RDMA", ""},
	{"RCCL_RMA_USE_DMABUF", Flag, "0", "net", "one-sided transfers by DMA-BUF", "rma", noGIN, ""},
	{"RCCL_SOCKET_LINGER", Number, "-1", "socket", "how sockets close", "misc/socket.cc", hostSide, ""},
	{"RCCL_SOCKET_REUSEADDR", Flag, "0", "socket", "addresses used again", "misc/socket.cc", hostSide, ""},
	{"RCCL_STACK_SIZE_OVERRIDE", Number, "0", "init", "stack of kernels", "init.cc", hostSide, ""},
	{"RCCL_ENABLE_SIGNALHANDLER", Flag, "0", "init", "trace of a crash", "init.cc", logging, ""},
	{"RCCL_ENABLE_PROXY_TRACE", Flag, "0", "proxy", "record of the proxy", "proxy.cc", logging, ""},
	{"RCCL_INJECT_FAULTS", Number, "0", "init", "faults for tests", "init.cc:758", timesAlone, ""},
	{"RCCL_LOG_ROCTX", Flag, "0", "debug", "ranges for profilers", "nvtx", logging, ""},
	{"RCCL_LOG_LEVEL", Number, "0", "debug", "what is logged", "debug.cc", logging, ""},
	{"RCCL_LATENCY_PROFILER", Flag, "0", "debug", "times of the proxy", "proxy.cc", logging, ""},
	{"RCCL_OUTPUT_TREES", Flag, "0", "debug", "print trees for graphviz", "graph/connect.cc:1149", logging,
		""},
	{"RCCL_DUMP_ROME_MODEL_FILE", Path, "", "debug", "file to write the machine's model to",
		"graph/rome_models.cc",
		logging, ""},
	{"RCCL_REPLAY_FILE", Path, "", "debug", "file to record calls in", "misc/recorder.cc", logging, ""},
	{"RCCL_USE_AMD_SMI_LIB", Flag, "0", "init", "library that lists GPUs", "misc", realOnly, ""},
	{"RCCL_USE_ROCM_SMI_LIB", Flag, "0", "init", "library that lists GPUs", "misc", realOnly, ""},
}

// table are the variables that the release reads.
func (c *Config) table() []Var {
	if c.Rules.Library != rules.RCCL {
		return vars
	}
	return append(vars[:len(vars):len(vars)], rcclVars...)
}

// readBy reports whether a release reads the variable.
func (v *Var) readBy(r *rules.Ruleset) bool {
	if strings.HasPrefix(v.Name, rcclPrefix) {
		return r.Library == rules.RCCL
	}
	return v.In().Holds(r.Release)
}

// misnamed is the error of RCCL_OVERRIDE_ALGO or RCCL_OVERRIDE_PROTO with a word that names nothing, which no
// choice would follow.
func misnamed(name, text string) error {
	var known []string
	switch name {
	case "RCCL_OVERRIDE_ALGO":
		for _, a := range coll.Algorithms() {
			known = append(known, a.String())
		}
	case "RCCL_OVERRIDE_PROTO":
		for _, p := range coll.Protocols() {
			known = append(known, p.String())
		}
	}
	if len(known) == 0 || text == "" || slices.ContainsFunc(known, func(k string) bool {
		return strings.EqualFold(k, text)
	}) {
		return nil
	}
	return fmt.Errorf("%q is not known; write one of %s", text, strings.Join(known, ", "))
}

// harmless reports whether a variable of RCCL has the value by which nothing changes that is not modelled.
func harmless(name, text string) bool {
	same, ok := refused[name]
	return ok && text != "" && text == same
}

// refuse is the error of a variable that would change what RCCL decides in a way that is not modelled.
func refuse(r *rules.Ruleset, name string, v Value) error {
	if _, ok := refused[name]; r.Library != rules.RCCL || !ok || v.Text == "" || harmless(name, v.Text) {
		return nil
	}
	why := ownRings
	if row := byName[name]; row != nil {
		if why = row.Unsupported; v.Text == row.Default {
			return nil
		}
	}
	e := &UnmodelledError{Feature: featureOf(name), Why: why}
	if of, ok := features[e.Feature]; ok {
		e.Why, e.Write = of[0], of[1]
	}
	return &Error{Var: name, Text: v.Text, Origin: v.Origin, Err: e}
}

// rcclBindings fill what RCCL's variables change.
func (c *Config) rcclBindings() []binding {
	t, p := &c.Tuning.AMD, &c.Preset
	return []binding{
		{"RCCL_MODEL_MATCHING_DISABLE", func(n int64) { p.Off = n != 0 }},
		{"RCCL_MODEL_REVERSAL_DISABLE", func(n int64) { p.Forwards = n != 0 }},
		{"RCCL_DISABLE_RAIL_TREES", func(n int64) { p.NoRails = n != 0 }},
		{"RCCL_DISABLE_NET_OVERRIDE", func(n int64) { p.OwnNets = n != 0 }},
		{"RCCL_LL128_FORCE_ENABLE", func(n int64) { t.LL128 = n != 0 }},
		{"RCCL_CHANNEL_TUNING_ENABLE", func(n int64) { t.NoWindows = n == 0 }},
		{"RCCL_THREADS_PER_BLOCK", &t.Threads},
		{"RCCL_OVERRIDE_ALGO", &t.Algo}, {"RCCL_OVERRIDE_PROTO", &t.Proto},
		{"RCCL_AINIC_ROCE", &t.AINIC},
		{"RCCL_DDA_ENABLE", func(n int64) { t.NoDDA = n == 0 }},
		{"RCCL_DDA_THRESHOLD", &t.DDAMost},
		{"RCCL_DIRECT_ALLGATHER_DISABLE", func(n int64) { t.NoDirectGather = n != 0 }},
		{"RCCL_DIRECT_ALLGATHER_THRESHOLD", &t.DirectGatherMost},
		{"RCCL_DIRECT_REDUCE_SCATTER_DISABLE", func(n int64) { t.NoDirectScatter = n != 0 }},
		{"RCCL_HIERARCHICAL_ALLGATHER", func(n int64) { t.NoHierarchy = n != 1 }},
		{"RCCL_DISABLE_REDUCE_COPY_PIPELINING", func(n int64) { t.NoPipeline = n != 0 }},
		{"RCCL_PIPELINE_ALL_DATA_TYPES", func(n int64) { t.PipelineAll = n != 0 }},
		{"NCCL_LOCAL_REGISTER", func(n int64) { // 0 by RCCL's default (rccl_wrap.cc:526, not in 2.28.3)
			t.NoDirectGather = t.NoDirectGather || n != 0 && c.Rules.Tuning.DirectAsked
		}},
		{"NCCL_MIN_NCHANNELS", &t.MinChannels}, {"NCCL_MAX_NCHANNELS", &t.MaxChannels},
	}
}
