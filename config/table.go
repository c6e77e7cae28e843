package config

import "slices"

// Kind is the form of a variable's value.
type Kind uint8

// Kinds.
const (
	Number Kind = iota // strtoll, base 0
	Flag               // a Number of which only zero and not zero matter
	Text               // as it is
	Path               // a file's name
	Level              // a path kind, LOC … SYS, or an old digit 0 … 5
	List               // names per collective, NCCL_ALGO's grammar
)

var kindNames = [...]string{"number", "flag", "text", "file", "level", "list"}

// String names the kind as ENV.md does.
func (k Kind) String() string { return kindNames[k] }

// Var is one variable. Exactly one of the following holds: it is honoured
// (NoEffect and Unsupported are empty), it has no effect here, or it would have
// one in NCCL and is not supported.
type Var struct {
	Name        string // with its prefix: NCCL_ALGO
	Kind        Kind
	Default     string // as NCCL has it; "auto" where NCCL computes it
	Room        string // the room that takes it into account, or the part of NCCL
	Meaning     string
	Source      string // file:line of NCCL v2.28.9, below src/
	NoEffect    string // why nothing here depends on it
	Unsupported string // what of NCCL is missing here
}

// Honoured reports whether simccl takes the variable into account.
func (v *Var) Honoured() bool { return v.NoEffect == "" && v.missing() == "" }

// missing reports what of NCCL is not there: what the table says, or that no
// room has a setting for the variable.
func (v *Var) missing() string {
	if v.NoEffect == "" && v.Unsupported == "" && !bound[v.Name] {
		return "nothing here reads it yet"
	}
	return v.Unsupported
}

// bound are the variables that fill a field of some Params, and those that the
// commands look up themselves.
var bound = func() map[string]bool {
	m := map[string]bool{
		"NCCL_TOPO_FILE": true, "NCCL_TOPO_DUMP_FILE": true, "NCCL_GRAPH_FILE": true,
		"NCCL_GRAPH_DUMP_FILE": true,
		"NCCL_CONF_FILE":       true, "NCCL_COLLNET_ENABLE": true, "SIMCCL_COLLNET": true,
		"SIMCCL_SECRET":  true,
		"SIMCCL_LIBNCCL": true, "SIMCCL_NCCL_VERSION": true, "SIMCCL_PROFILER_PLUGIN": true,
		"SIMCCL_MEMORY":     true,
		"NCCL_TUNER_PLUGIN": true, "NCCL_TUNER_CONFIG_FILE": true,
	}
	for _, b := range new(Config).bindings() {
		m[b.name] = true
	}
	return m
}()

// Reasons that many variables share.
const (
	initTime  = "it changes how a communicator starts and how long that takes, and starting is not simulated"
	logging   = "it changes what NCCL prints; simccl prints its own"
	hostSide  = "it concerns the host's threads and memory; no decision and no modelled time depends on it"
	noReg     = "every rank is a process of its own"
	noSym     = "windows are taken to fit"
	noGIN     = "GPU-initiated networking is not simulated"
	noRAS     = "it concerns NCCL's monitor of running jobs"
	noPlugin  = "simccl loads no plugin; what a plugin would say is not known"
	realOnly  = "it names a device of a live machine; a simulated machine has the NICs that its file has"
	tryLimit  = "it bounds retries after failures, and the simulated network loses nothing"
	oneComm   = "it concerns communicators made from others; one communicator is simulated"
	notInTime = "the model of time does not take it into account"
)

// Vars lists every variable, sorted by part of NCCL.
func Vars() []Var { return slices.Clone(vars) }

// vars is the table.
var vars = []Var{
	// What machine NCCL believes it has.
	{"NCCL_TOPO_FILE", Path, "", "topo", "topology file to read before looking at the machine",
		"graph/topo.cc:1421", "", ""},
	{"NCCL_TOPO_DUMP_FILE", Path, "", "cmd", "file to write the fused topology to", "init.cc:976", "", ""},
	{"NCCL_TOPO_DUMP_FILE_RANK", Number, "0", "cmd", "rank that writes the topology", "graph/topo.cc:715",
		"all ranks of a node see the same fused topology here", ""},
	{"NCCL_HOSTID", Text, "hostname", "topo", "name of the host in place of its own: splits or joins hosts",
		"misc/utils.cc:87", "simulated hosts are distinguished by --nodes and by host_hash in the file", ""},
	{"NCCL_IGNORE_CPU_AFFINITY", Flag, "0", "init", "bind threads by the GPU's CPUs alone",
		"graph/topo.cc:1726", hostSide, ""},
	{"NCCL_IB_HCA", Text, "all", "topo", "InfiniBand devices to use: [^][=]name[:port],…; from NCCL " +
		"2.30.7 on name:port:rail:plane",
		"transport/net_ib.cc:701", "", ""},
	{"NCCL_IB_DISABLE", Flag, "0", "topo", "use no InfiniBand or RoCE: nets by sockets",
		"transport/net_ib.cc:507", "", ""},
	{"NCCL_IB_MERGE_NICS", Flag, "1", "topo", "fuse the ports of a card into one net",
		"transport/net_ib.cc:509", "", ""},
	{"NCCL_IB_MERGE_VFS", Flag, "1", "real", "take the functions of a card for ports of one device (bench " +
		"over verbs or sockets; no part of simulated times)", "transport/net_ib.cc:508", "", ""},
	{"NCCL_NET_FORCE_MERGE", Text, "", "topo", "nets to fuse by name: a,b;c,d", "graph/topo.cc:1400", "", ""},
	{"NCCL_NET_MERGE_LEVEL", Level, "PORT", "topo",
		"farthest path between nets that are fused; LOC fuses none", "graph/topo.cc:1401", "", ""},
	{"NCCL_IB_DATA_DIRECT", Number, "1", "topo", "use a ConnectX-8's direct PCI function",
		"transport/net_ib.cc:136", "",
		"data-direct functions are live hardware that a topology file does not show"},
	{"NCCL_NETDEVS_POLICY", Text, "AUTO", "topo", "nets a GPU uses: AUTO, ALL or MAX:n", "graph/topo.cc:1602",
		"", ""},
	{"NCCL_NET", Text, "auto", "topo", "network to use by name: IB, Socket or a plugin's", "init.cc:1706", "",
		""},
	{"NCCL_NET_PLUGIN", Text, "", "topo", "library of a net plugin", "plugin/net.cc:289", noPlugin, ""},
	{"NCCL_SOCKET_IFNAME", Text, "auto", "real", "interfaces for sockets and for the start: [^][=]name,… " +
		"(bench over verbs or sockets; no part of simulated times)", "misc/socket.cc:361", "", ""},
	{"NCCL_SOCKET_FAMILY", Text, "any", "real",
		"AF_INET or AF_INET6 (bench over verbs or sockets; no part of simulated times)", "misc/socket.cc:116",
		"", ""},
	{"NCCL_MNNVL_ENABLE", Number, "2", "topo",
		"NVLink domains over several hosts: 0 no, 1 yes, 2 where there are", "init.cc:740", "", ""},
	{"NCCL_MNNVL_UUID", Number, "-1", "topo", "id of the NVLink domain in place of the machine's",
		"init.cc:612", "", "a file's host_hash and --mnnvl say which hosts share a domain"},
	{"NCCL_MNNVL_CLIQUE_ID", Number, "-1", "topo", "part of the NVLink domain in place of the machine's",
		"init.cc:613", "", "a file's host_hash and --mnnvl say which hosts share a domain"},
	{"NCCL_MNNVL_RAIL_PER_HOST", Flag, "0", "search",
		"identify the rails of a multi-host domain by PCI address", "graph/search.cc:557", "", ""},
	{"NCCL_MNNVL_SCATTER_NETS_ENABLE", Flag, "1", "search", "try nets by GPU first in a multi-host domain",
		"graph/search.cc:507", "", ""},
	{"NCCL_WIN_ENABLE", Flag, "1", "init", "allow symmetric windows", "init.cc:58", "", ""},
	{"NCCL_CUMEM_ENABLE", Number, "auto", "topo",
		"allocate by the driver's virtual memory; 0 ends NVLink domains at the host", "misc/cudawrap.cc:15",
		"", ""},
	{"NCCL_CUMEM_HOST_ENABLE", Number, "-1", "init", "the same for host memory", "misc/cudawrap.cc:16",
		hostSide, ""},

	// Paths.
	{"NCCL_P2P_LEVEL", Level, "auto", "topo", "farthest path between GPUs that communicate directly",
		"graph/paths.cc:221", "", ""},
	{"NCCL_P2P_DISABLE", Number, "0", "topo", "1: no direct communication between GPUs", "graph/paths.cc:221",
		"", ""},
	{"NCCL_IGNORE_DISABLED_P2P", Number, "0", "topo", "use P2P although NVML says that it is disabled",
		"graph/paths.cc:255", "NVML is taken to report every pair as accessible", ""},
	{"NCCL_P2P_DIRECT_DISABLE", Flag, "0", "p2p", "no direct pointers within a process",
		"transport/p2p.cc:309", "every rank is a process of its own", ""},
	{"NCCL_P2P_READ_ENABLE", Number, "auto", "p2p", "receivers read instead of senders writing",
		"transport/p2p.cc:308", "", notInTime},
	{"NCCL_P2P_USE_CUDA_MEMCPY", Flag, "0", "topo",
		"copy between GPUs by copy engine, which takes away relays over NVLink", "transport/p2p.cc:115", "",
		""},
	{"NCCL_SHM_DISABLE", Flag, "0", "topo", "no host shared memory between GPUs", "transport/shm.cc:65", "",
		""},
	{"NCCL_SHM_LOCALITY", Number, "2", "shm", "buffer local to 1 the sender, 2 the receiver",
		"transport/shm.cc:70", "", notInTime},
	{"NCCL_SHM_USE_CUDA_MEMCPY", Flag, "0", "shm", "copy through shared memory by copy engine",
		"transport/shm.cc:66", "", notInTime},
	{"NCCL_SHM_MEMCPY_MODE", Number, "1", "shm", "side that copies: 1 sender, 2 receiver, 3 both",
		"transport/shm.cc:67", "", notInTime},
	{"NCCL_NET_DISABLE_INTRA", Number, "0", "topo", "1: never use the network inside a host",
		"graph/paths.cc:533", "", ""},
	{"NCCL_NET_GDR_LEVEL", Level, "PXB", "topo", "farthest path between GPU and NIC for GPUDirect RDMA",
		"graph/paths.cc:418", "", ""},
	{"NCCL_NET_GDR_READ", Number, "auto", "topo", "NICs also read GPU memory directly", "graph/paths.cc:411",
		"", ""},
	{"NCCL_NET_GDR_C2C", Flag, "1", "topo", "GPUDirect RDMA through a CPU with C2C", "graph/paths.cc:416", "",
		""},
	{"NCCL_DMABUF_ENABLE", Flag, "1", "init", "register memory by dma-buf", "init.cc:352",
		"the file says where GPUDirect RDMA works", ""},
	{"NCCL_NET_FORCE_FLUSH", Flag, "0", "topo", "flush received data on sm_90 and later too",
		"graph/paths.cc:508", "", ""},
	{"NCCL_GDR_FLUSH_DISABLE", Flag, "0", "net", "never flush received data", "transport/net_ib.cc:1659", "",
		notInTime},
	{"NCCL_NVB_DISABLE", Flag, "0", "topo", "no relay of NVLink traffic by another GPU", "graph/paths.cc:34",
		"", ""},
	{"NCCL_NVB_PRECONNECT", Flag, "1", "init", "connect relays at the start", "init.cc:736", initTime, ""},
	{"NCCL_PXN_DISABLE", Flag, "0", "topo", "no use of another GPU's NIC", "graph/paths.cc:592", "", ""},
	{"NCCL_PXN_C2C", Flag, "1", "topo", "use another GPU's NIC over C2C as well", "graph/paths.cc:639", "",
		""},
	{"NCCL_P2P_PXN_LEVEL", Number, "2", "connect",
		"send/recv over another GPU's NIC: 0 never, 1 where far, 2 always", "graph/search.cc:1274", "", ""},
	{"NCCL_LEGACY_CUDA_REGISTER", Flag, "0", "p2p", "share memory by the older CUDA calls",
		"transport/p2p.cc:95", initTime, ""},

	// Search and channels.
	{"NCCL_CROSS_NIC", Number, "2", "search", "rings may change NIC: 0 no, 1 yes, 2 where it is better",
		"graph/search.cc:15", "", ""},
	{"NCCL_GRAPH_FILE", Path, "", "search", "graphs to take instead of searching", "graph/search.cc:1021", "",
		""},
	{"NCCL_GRAPH_DUMP_FILE", Path, "", "cmd", "file to write the graphs to", "graph/search.cc:1231", "", ""},
	{"NCCL_GRAPH_DUMP_FILE_RANK", Number, "0", "cmd", "rank that writes the graphs", "init.cc:734",
		"rank 0's graphs are written", ""},
	{"NCCL_MIN_NRINGS", Number, "auto", "connect", "older name of NCCL_MIN_NCHANNELS", "graph/connect.cc:322",
		"", ""},
	{"NCCL_MAX_NRINGS", Number, "auto", "connect", "older name of NCCL_MAX_NCHANNELS", "graph/connect.cc:323",
		"", ""},
	{"NCCL_MIN_NCHANNELS", Number, "auto", "connect", "fewest channels; repeats them", "graph/connect.cc:325",
		"", ""},
	{"NCCL_MAX_NCHANNELS", Number, "auto", "connect", "most channels", "graph/connect.cc:326", "", ""},
	{"NCCL_MIN_CTAS", Number, "auto", "connect", "fewest channels, by the communicator's configuration",
		"init.cc:1416", "", ""},
	{"NCCL_MAX_CTAS", Number, "auto", "connect", "most channels, by the communicator's configuration",
		"init.cc:1415", "", ""},
	{"NCCL_CTA_POLICY", Number, "0", "tuning", "1: fewer blocks where buffers are registered, 2: none",
		"init.cc:60", "", ""},
	{"NCCL_UNPACK_DOUBLE_NCHANNELS", Flag, "1", "connect", "double the channels for NICs that unpack",
		"graph/connect.cc:372", noPlugin, ""},
	{"NCCL_COLLNET_ENABLE", Number, "0", "comm", "1: use reductions in the network", "init.cc:1734", "", ""},
	{"NCCL_COLLNET_NODE_THRESHOLD", Number, "2", "comm", "fewest nodes for reductions in the network",
		"init.cc:735", "", ""},
	{"NCCL_NVLS_ENABLE", Number, "2", "comm", "NVLink multicast: 0 no, 1 yes, 2 where it is there",
		"transport/nvls.cc:152", "", ""},
	{"NCCL_NVLS_NCHANNELS", Number, "auto", "connect", "channels of NVLS", "init.cc:61", "", ""},
	{"NCCL_NVLS_CHUNKSIZE", Number, "131072", "connect", "bytes of an NVLS chunk", "transport/nvls.cc:153",
		"", ""},
	{"NCCL_NVLSTREE_MAX_CHUNKSIZE", Number, "auto", "plan", "most bytes of an NVLSTree chunk",
		"enqueue.cc:1977", "", ""},
	{"NCCL_MIN_P2P_NCHANNELS", Number, "1", "connect", "fewest channels of send/recv", "graph/paths.cc:856",
		"", ""},
	{"NCCL_MAX_P2P_NCHANNELS", Number, "64", "connect", "most channels of send/recv", "graph/paths.cc:857",
		"", ""},
	{"NCCL_NCHANNELS_PER_NET_PEER", Number, "auto", "connect",
		"channels of send/recv to a rank on another node", "init.cc:1419", "", ""},
	{"NCCL_P2P_SCHEDULE_GROUP_SIZE", Number, "8", "plan", "peers in one round of an all-to-all",
		"init.cc:766", "", ""},
	{"NCCL_WORK_ARGS_BYTES", Number, "auto", "connect",
		"most bytes of kernel arguments, which bound the channels", "init.cc:349", "", ""},
	{"NCCL_WORK_FIFO_BYTES", Number, "1048576", "plan", "bytes of the queue of work descriptions",
		"init.cc:348", "one collective at a time never fills it", ""},
	{"NCCL_RUNTIME_CONNECT", Flag, "1", "init", "connect an algorithm at its first use", "init.cc:57",
		initTime, ""},
	{"NCCL_COMM_SPLIT_SHARE_RESOURCES", Number, "auto", "init",
		"a split communicator shares its parent's buffers", "init.cc:1448", oneComm, ""},
	{"NCCL_COMM_SHRINK_SHARE_RESOURCES", Number, "auto", "init",
		"a shrunk communicator shares its parent's buffers", "init.cc:1449", oneComm, ""},
	{"NCCL_SYM_KERNEL", Text, "auto", "tuning", "symmetric kernel to use", "sym_kernels.cc:85", "", ""},
	{"NCCL_SYM_CTAS", Number, "0", "tuning", "blocks of symmetric kernels", "sym_kernels.cc:104", "", ""},
	{"NCCL_SYM_TMA_ENABLE", Flag, "0", "tuning", "allow symmetric kernels of the tensor memory accelerator",
		"sym_kernels.cc:134", "", ""},
	{"NCCL_SYM_GIN_KERNELS_ENABLE", Flag, "1", "tuning",
		"allow symmetric kernels between nodes over networking that GPUs initiate", "sym_kernels.cc:128 of v2.29.7",
		"", ""},
	{"NCCL_SYM_CE_THRESHOLD", Number, "8388608", "tuning",
		"elements from which an AllGather over windows goes by copy engines on sm_100", "enqueue.cc:31", "",
		""},

	// Tuning.
	{"NCCL_ALGO", List, "all", "tuning", "algorithms to use: ring,tree;allreduce:^tree",
		"graph/tuning.cc:424", "", ""},
	{"NCCL_PROTO", List, "all, LL128 where safe", "tuning", "protocols to use: ^LL128;allreduce:LL128",
		"graph/tuning.cc:419", "", ""},
	{"NCCL_PAT_ENABLE", Number, "2", "tuning", "PAT: 0 no, 1 yes, 2 with one rank a node",
		"graph/tuning.cc:201", "", ""},
	{"NCCL_NET_OVERHEAD", Number, "auto", "tuning",
		"ns of host time per network step; 2000 on AMD, else 1000", "graph/tuning.cc:212", "", ""},
	{"NCCL_LL128_C2C", Flag, "1", "tuning", "LL128 over C2C and PXN", "graph/tuning.cc:221", "", ""},
	{"NCCL_NTHREADS", Number, "auto", "tuning", "threads of a block with LL and Simple", "graph/tuning.cc:13",
		"", ""},
	{"NCCL_LL128_NTHREADS", Number, "auto", "tuning", "threads of a block with LL128", "graph/tuning.cc:14",
		"", ""},
	{"NCCL_THREAD_THRESHOLDS", Text, "8 8 64 8*ranks 8 64", "tuning",
		"bytes per thread before channels and threads are dropped: Tree LL LL128 Simple, Ring the same",
		"graph/tuning.cc:552", "", ""},
	{"NCCL_BUFFSIZE", Number, "4194304", "connect", "bytes of a Simple buffer", "init.cc:700", "", ""},
	{"NCCL_LL_BUFFSIZE", Number, "524288", "connect", "bytes of an LL buffer", "init.cc:701", "", ""},
	{"NCCL_LL128_BUFFSIZE", Number, "4915200", "connect", "bytes of an LL128 buffer", "init.cc:702", "", ""},
	{"NCCL_CHUNK_SIZE", Number, "0", "plan", "bytes of a send/recv chunk in place of the computed",
		"enqueue.cc:780", "", ""},
	{"NCCL_P2P_NET_CHUNKSIZE", Number, "131072", "connect", "bytes of a send/recv chunk between nodes",
		"init.cc:704", "", ""},
	{"NCCL_P2P_PCI_CHUNKSIZE", Number, "131072", "connect", "bytes of a send/recv chunk over PCI",
		"init.cc:705", "", ""},
	{"NCCL_P2P_NVL_CHUNKSIZE", Number, "524288", "connect", "bytes of a send/recv chunk over NVLink",
		"init.cc:706", "", ""},
	{"NCCL_P2P_LL_THRESHOLD", Number, "16384", "plan", "most bytes of a send/recv by LL", "enqueue.cc:779",
		"", ""},
	{"NCCL_ALLOC_P2P_NET_LL_BUFFERS", Flag, "0", "plan", "allow LL for send/recv between nodes",
		"init.cc:737", "", ""},
	{"NCCL_CGA_CLUSTER_SIZE", Number, "auto", "plan", "blocks of a cluster", "init.cc:1413", "", notInTime},
	{"NCCL_NVLINK_UTIL_CENTRIC_SCHED_ENABLE", Number, "0", "enqueue",
		"let the GPU place blocks by NVLink use", "init.cc:1420", "", notInTime},
	{"NCCL_LOCAL_REGISTER", Flag, "1", "register", "register user buffers on request",
		"register/register.cc:15", "", ""},
	{"NCCL_GRAPH_REGISTER", Flag, "1", "register", "register buffers of CUDA graphs", "enqueue.cc:258", "",
		""},
	{"NCCL_SINGLE_PROC_MEM_REG_ENABLE", Flag, "0", "register", "register buffers within one process",
		"group.cc:464", noReg, ""},
	{"NCCL_TUNER_PLUGIN", Text, "", "tuning", "library that changes the cost table; of example and " +
		"…/libnccl-tuner-example.so, NCCL's example, the file is read, other plugins are not known",
		"plugin/tuner.cc:56", "", ""},
	{"NCCL_TUNER_CONFIG_FILE", Path, "", "tuning",
		"choices of the example tuner plugin, CSV; with NCCL_TUNER_PLUGIN=example",
		"ext-tuner/example/plugin.c", "", ""},
	{"NCCL_LAUNCH_MODE", Text, "PARALLEL", "enqueue", "GROUP: launch the GPUs of a process together",
		"init.cc:1361", "every rank is a process of its own", ""},
	{"NCCL_MEM_SYNC_DOMAIN", Number, "1", "enqueue", "memory domain of kernels", "enqueue.cc:1562", "",
		notInTime},
	{"NCCL_L1_SHARED_MEMORY_CARVEOUT", Number, "0", "enqueue", "share of L1 kept as shared memory",
		"enqueue.cc:25", "", notInTime},
	{"NCCL_SET_STACK_SIZE", Flag, "0", "init", "set the kernels' stack size at the start", "init.cc:1412",
		initTime, ""},

	// Transport.
	{"NCCL_IB_QPS_PER_CONNECTION", Number, "1", "real",
		"queue pairs of a connection (bench over verbs or sockets; run, from 1 to 128)",
		"transport/net_ib.cc:1215", "", ""},
	{"NCCL_IB_SPLIT_DATA_ON_QPS", Flag, "0", "real",
		"split each message over the queue pairs (bench over verbs or sockets; run)",
		"transport/net_ib.cc:2062", "", ""},
	{"NCCL_IB_AR_THRESHOLD", Number, "8192", "real", "bytes from which data and notice are two writes " +
		"under adaptive routing (bench over verbs or sockets; no part of simulated times)",
		"transport/net_ib.cc:130", "", ""},
	{"NCCL_IB_ADAPTIVE_ROUTING", Number, "auto", "real", "packets may overtake: on for InfiniBand, off for " +
		"RoCE (bench over verbs or sockets; no part of simulated times)", "transport/net_ib.cc:132", "", ""},
	{"NCCL_IB_TC", Number, "-1", "real",
		"traffic class (bench over verbs or sockets; no part of simulated times)", "transport/net_ib.cc:129",
		"", ""},
	{"NCCL_IB_FIFO_TC", Number, "-1", "real",
		"traffic class of clear-to-send messages (bench over verbs or sockets; no part of simulated times)",
		"transport/net_ib.cc:133", "", ""},
	{"NCCL_IB_SL", Number, "-1", "real",
		"service level (bench over verbs or sockets; no part of simulated times)", "transport/net_ib.cc:128",
		"", ""},
	{"NCCL_IB_TIMEOUT", Number, "20", "real",
		"4.096 us times two to this, before a retry (bench over verbs or sockets, and simulated loss)",
		"transport/net_ib.cc:124", "", ""},
	{"NCCL_IB_RETRY_CNT", Number, "7", "real",
		"retries of a message (bench over verbs or sockets, and simulated loss)", "transport/net_ib.cc:125",
		"", ""},
	{"NCCL_IB_PCI_RELAXED_ORDERING", Number, "2", "real", "PCI writes may overtake: 0 no, 1 yes, 2 where " +
		"it works (bench over verbs or sockets; no part of simulated times)", "transport/net_ib.cc:131", "",
		""},
	{"NCCL_IB_USE_INLINE", Flag, "0", "real",
		"clear-to-send messages inline (bench over verbs or sockets; no part of simulated times)",
		"transport/net_ib.cc:127", "", ""},
	{"NCCL_IB_ECE_ENABLE", Flag, "1", "real",
		"negotiate the NICs' extensions (bench over verbs or sockets; no part of simulated times)",
		"transport/net_ib.cc:135", "", ""},
	{"NCCL_IB_GID_INDEX", Number, "-1", "real",
		"address of a RoCE port (bench over verbs or sockets; no part of simulated times)",
		"transport/net_ib.cc:121", "", ""},
	{"NCCL_IB_ROCE_VERSION_NUM", Number, "2", "real",
		"RoCE version of the address (bench over verbs or sockets; no part of simulated times)",
		"transport/net_ib.cc:123", "", ""},
	{"NCCL_IB_ADDR_FAMILY", Text, "AF_INET", "real",
		"family of the address (bench over verbs or sockets; no part of simulated times)",
		"transport/net_ib.cc:269", "", ""},
	{"NCCL_IB_ADDR_RANGE", Text, "::/0", "real",
		"range of the address (bench over verbs or sockets; no part of simulated times)",
		"transport/net_ib.cc:291", "", ""},
	{"NCCL_IB_PKEY", Number, "0", "real",
		"partition key (bench over verbs or sockets; no part of simulated times)", "transport/net_ib.cc:126",
		"", ""},
	{"NCCL_IB_ROUTABLE_FLID_GID_INDEX", Number, "1", "real",
		"address for routed InfiniBand (bench over verbs or sockets; no part of simulated times)",
		"transport/net_ib.cc:122", "", ""},
	{"NCCL_IB_MQP_RETRY_ALL", Flag, "0", "real", "retry any failure of changing a queue pair (bench over " +
		"verbs or sockets; no part of simulated times)", "misc/ibvwrap.cc:96", "", ""},
	{"NCCL_IB_MQP_RETRY_CNT", Number, "34", "real",
		"how often (bench over verbs or sockets; no part of simulated times)", "misc/ibvwrap.cc:97", "", ""},
	{"NCCL_IB_MQP_RETRY_SLEEP_MSEC", Number, "100", "real",
		"ms in between (bench over verbs or sockets; no part of simulated times)", "misc/ibvwrap.cc:98", "",
		""},
	{"NCCL_IB_RETURN_ASYNC_EVENTS", Flag, "1", "real",
		"report a NIC's asynchronous events (bench over verbs or sockets; no part of simulated times)",
		"transport/net_ib.cc:134", "", ""},
	{"NCCL_IB_WARN_RAIL_LOCAL", Flag, "0", "real", "warn where peers are on different rails",
		"transport/net_ib.cc:1615", logging, ""},
	{"NCCL_NET_SHARED_BUFFERS", Number, "auto", "plan",
		"send/recv of a NIC share buffers, which leaves no LL between nodes", "transport/net.cc:163", "", ""},
	{"NCCL_NET_SHARED_COMMS", Flag, "1", "sim", "GPUs that use another's NIC share its connections",
		"transport/net.cc:164", "", notInTime},
	{"NCCL_NET_OPTIONAL_RECV_COMPLETION", Flag, "1", "sim", "LL and LL128 receives need no completion",
		"transport/net.cc:178", "", notInTime},
	{"NCCL_NSOCKS_PERTHREAD", Number, "auto", "real",
		"sockets of a helper thread (simulated times and bench over sockets)", "transport/net_socket.cc:140",
		"", ""},
	{"NCCL_SOCKET_NTHREADS", Number, "auto", "real",
		"helper threads of a socket connection (simulated times and bench over sockets)",
		"transport/net_socket.cc:141", "", ""},
	{"NCCL_SOCKET_MIN_TASKSIZE", Number, "65536", "real",
		"bytes from which a message is split over sockets (simulated times and bench over sockets)",
		"transport/net_socket.cc:139", "", ""},
	{"NCCL_SOCKET_INLINE", Number, "128", "real",
		"bytes sent along with a socket message's header (bench over sockets; simulated traces show it)",
		"transport/net_socket.cc:138", "", ""},
	{"NCCL_SOCKET_RCVBUF", Number, "-1", "real",
		"bytes of a socket's receive buffer (bench over verbs or sockets; no part of simulated times)",
		"misc/socket.cc:464", "", ""},
	{"NCCL_SOCKET_SNDBUF", Number, "-1", "real",
		"bytes of a socket's send buffer (bench over verbs or sockets; no part of simulated times)",
		"misc/socket.cc:465", "", ""},
	{"NCCL_PROGRESS_APPENDOP_FREQ", Number, "8", "sim", "how often the proxy takes new operations",
		"proxy.cc:904", "", notInTime},
	{"NCCL_PROXY_APPEND_BATCH_SIZE", Number, "16", "sim", "operations it takes at once", "proxy.cc:778", "",
		notInTime},
	{"NCCL_PROXY_CPUSET", Text, "", "proxy", "CPUs of the proxy threads", "proxy.cc:909", hostSide, ""},
	{"NCCL_GDRCOPY_ENABLE", Flag, "0", "sim", "the host writes GPU memory through GDRCopy", "init.cc:69", "",
		notInTime},
	{"NCCL_GDRCOPY_SYNC_ENABLE", Flag, "1", "sim", "for flags", "transport/net.cc:328", "", notInTime},
	{"NCCL_GDRCOPY_FLUSH_ENABLE", Flag, "0", "sim", "for flushing", "transport/net.cc:330", "", notInTime},
	{"NCCL_GDRCOPY_FIFO_ENABLE", Flag, "1", "sim", "for the queue of work", "init.cc:346", "", notInTime},
	{"NCCL_CONNECT_ROUND_MAX_PEERS", Number, "128", "init", "peers connected at once", "transport.cc:70",
		initTime, ""},
	{"NCCL_UID_STAGGER_RATE", Number, "7000", "init", "ranks per second that may call the first",
		"bootstrap.cc:627", initTime, ""},
	{"NCCL_UID_STAGGER_THRESHOLD", Number, "256", "init", "ranks from which they are staggered",
		"bootstrap.cc:628", initTime, ""},

	// The rest.
	{"NCCL_CHECK_POINTERS", Flag, "0", "init", "check that buffers are GPU memory", "init.cc:55", hostSide,
		""},
	{"NCCL_COMM_BLOCKING", Number, "auto", "init", "calls wait until they are done", "init.cc:56", initTime,
		""},
	{"NCCL_CREATE_THREAD_CONTEXT", Flag, "0", "proxy", "proxy threads have their own CUDA context",
		"proxy.cc:866", hostSide, ""},
	{"NCCL_GIN_COUNTER_POOL_SIZE", Number, "65536", "gin", "counters", "gin/gin_host.cc:18", noGIN, ""},
	{"NCCL_GIN_ENABLE", Flag, "1", "gin", "allow GPU-initiated networking", "gin/gin_host.cc:15", "", ""},
	{"NCCL_GIN_ERROR_QUERY_SEC", Number, "10", "gin", "seconds between polls for errors",
		"transport/gdaki/gin_host_gdaki.cc:54", noGIN, ""},
	{"NCCL_GIN_GDAKI_NIC_HANDLER", Number, "0", "gin", "who rings the NIC",
		"transport/gdaki/gin_host_gdaki.cc:52", noGIN, ""},
	{"NCCL_GIN_GDAKI_QP_DEPTH", Number, "128", "gin", "depth of a queue pair",
		"transport/gdaki/gin_host_gdaki.cc:53", noGIN, ""},
	{"NCCL_GIN_NCONTEXTS", Number, "4", "gin", "contexts", "gin/gin_host.cc:56", noGIN, ""},
	{"NCCL_GIN_PROXY_QUEUE_SIZE", Number, "-1", "gin", "queue of the proxy", "gin/gin_host_proxy.cc:17",
		noGIN, ""},
	{"NCCL_GIN_SIGNAL_POOL_SIZE", Number, "65536", "gin", "signals", "gin/gin_host.cc:17", noGIN, ""},
	{"NCCL_GIN_TYPE", Number, "-1", "gin", "kind", "gin/gin_host.cc:16", noGIN, ""},
	{"NCCL_GRAPH_HELPER_DISABLE", Flag, "0", "enqueue", "no helper thread for CUDA graphs", "init.cc:344",
		hostSide, ""},
	{"NCCL_GRAPH_MIXING_SUPPORT", Flag, "1", "enqueue", "CUDA graphs beside plain launches",
		"misc/strongstream.cc:157", hostSide, ""},
	{"NCCL_GROUP_CUDA_STREAM", Flag, "1", "init", "streams of a group are ordered by events", "init.cc:53",
		hostSide, ""},
	{"NCCL_LAUNCH_ORDER_IMPLICIT", Flag, "0", "enqueue",
		"launches of different communicators keep their order", "enqueue.cc:1396", oneComm, ""},
	{"NCCL_LAUNCH_RACE_FATAL", Flag, "1", "enqueue", "a race of launches is an error",
		"misc/strongstream.cc:158", oneComm, ""},
	{"NCCL_NET_PLUGIN_REF_COUNT", Flag, "0", "init", "unload a net plugin when unused", "plugin/net.cc:37",
		noPlugin, ""},
	{"NCCL_NVTX_DISABLE", Flag, "0", "init", "no NVTX marks", "init_nvtx.cc:19", logging, ""},
	{"NCCL_OOB_NET_ENABLE", Flag, "0", "init", "start over the network plugin", "bootstrap.cc:91", initTime,
		""},
	{"NCCL_OOB_NET_IFNAME", Text, "", "init", "interfaces for it", "bootstrap.cc:502", initTime, ""},
	{"NCCL_PROXY_DUMP_SIGNAL", Number, "-1", "proxy", "signal that makes a proxy print its state",
		"proxy.cc:903", logging, ""},
	{"NCCL_RAS_ENABLE", Flag, "1", "ras", "monitor", "bootstrap.cc:630", noRAS, ""},
	{"NCCL_RAS_ADDR", Text, "localhost:28028", "ras", "its address", "ras/client_support.cc:168", noRAS, ""},
	{"NCCL_RAS_TIMEOUT_FACTOR", Number, "1", "ras", "multiplier of the RAS timeouts", "ras/ras.cc:77", noRAS,
		""},
	{"NCCL_REPORT_CONNECT_PROGRESS", Flag, "0", "init", "print the progress of connecting", "transport.cc:71",
		logging, ""},
	{"NCCL_SET_CPU_STACK_SIZE", Flag, "1", "init", "stack of NCCL's threads", "init.cc:62", hostSide, ""},
	{"NCCL_SET_THREAD_NAME", Flag, "0", "init", "name NCCL's threads", "debug.cc:417", logging, ""},
	{"NCCL_SOCKET_RETRY_CNT", Number, "34", "init", "tries to connect", "misc/socket.cc:17", initTime, ""},
	{"NCCL_SOCKET_RETRY_SLEEP_MSEC", Number, "100", "init", "ms in between", "misc/socket.cc:18", initTime,
		""},
	{"NCCL_WIN_STRIDE", Number, "-1", "init", "address space of symmetric windows", "dev_runtime.cc:14",
		noSym, ""},
	{"NCCL_COMM_ID", Text, "", "init", "address of the first rank", "bootstrap.cc:97", initTime, ""},
	{"NCCL_CONF_FILE", Path, "~/.nccl.conf", "config",
		"file that sets what is not set, before /etc/nccl.conf", "misc/param.cc:56", "", ""},
	{"NCCL_ENV_PLUGIN", Text, "", "config", "library that answers for the environment", "plugin/env.cc:40",
		noPlugin, ""},
	{"NCCL_PROFILER_PLUGIN", Text, "", "profiler", "library that gets NCCL's events", "plugin/profiler.cc:54",
		noPlugin, ""},
	{"NCCL_PROFILE_EVENT_MASK", Number, "0", "profiler", "events of the example profiler",
		"ext-profiler/example/plugin.cc:67", noPlugin, ""},
	{"NCCL_PROFILE_DUMP_FILE", Path, "", "profiler", "file of the example profiler",
		"ext-profiler/example/plugin.cc:180", noPlugin, ""},
	{"NCCL_DEBUG", Text, "", "debug", "VERSION, WARN, INFO, ABORT or TRACE", "debug.cc:46", logging, ""},
	{"NCCL_DEBUG_SUBSYS", Text, "INIT,BOOTSTRAP,ENV", "debug", "subjects to print: [^]INIT,COLL,P2P,…",
		"debug.cc:69", logging, ""},
	{"NCCL_DEBUG_FILE", Path, "stdout", "debug", "file to print to; %h host, %p process", "debug.cc:220",
		logging, ""},
	{"NCCL_DEBUG_TIMESTAMP_FORMAT", Text, "", "debug", "form of the time before a line", "debug.cc:171",
		logging, ""},
	{"NCCL_DEBUG_TIMESTAMP_LEVELS", Text, "WARN", "debug", "lines that have it", "debug.cc:135", logging, ""},
	{"NCCL_WARN_ENABLE_DEBUG_INFO", Flag, "0", "debug", "print INFO after the first WARN", "debug.cc:125",
		logging, ""},
	// Of later releases than the default's; their sources are of those.
	{"NCCL_P2P_PER_CHANNEL_NET_BW", Number, "14", "connect",
		"GB/s of a net's bandwidth for which send/recv gets a channel", "graph/paths.cc:832 of v2.29.7", "",
		""},
	// Ours.
	{"SIMCCL_COLLNET", Flag, "0", "comm", "1: suppose NVIDIA's net plugin and switches that reduce (SHARP; " +
		"NCCL_COLLNET_ENABLE=1 then uses them)", "-", "", ""},
	{"SIMCCL_GIN", Flag, "0", "comm", "1: suppose nets that GPUs drive (GIN; NCCL 2.29.2 and later then take " +
		"other kernels for symmetric windows between nodes)", "-", "", ""},
	{"SIMCCL_NCCL_VERSION", Text, "2.28.9", "rules",
		"the release of NCCL whose rules decide, as --nccl-version", "-", "", ""},
	{"SIMCCL_NET_RAIL", Number, "-1", "topo", "rail and plane that another net plugin reports of nets for " +
		"which neither the file nor NCCL_IB_HCA gives one, from NCCL 2.30.7 on; -1: none, as NCCL's own IB " +
		"and socket plugins do", "-", "", ""},
	{"SIMCCL_LIBNCCL", Path, "", "real", "NCCL's library, where the loader does not find libnccl.so.2", "-",
		"", ""},
	{"SIMCCL_PROFILER_PLUGIN", Path, "", "real",
		"our profiler plugin for bench --trace, where it does not lie beside simccl", "-", "", ""},
	{"SIMCCL_SECRET", Text, "", "real",
		"secret that the processes of a bench share; without it a key of this user's", "-", "", ""},
	{"SIMCCL_MEMORY", Text, "1G", "process",
		"memory that jobs and recordings may take while they are read, as 4G", "-", "", ""},
	{"CUDA_LAUNCH_BLOCKING", Flag, "0", "enqueue", "launches wait for the kernel", "misc/cudawrap.cc:263",
		"launches are asynchronous in the model", ""},
}
