package scenario

import (
	"maps"
	"slices"

	"github.com/simccl/simccl/workload/gen"
)

// FormatVersion is the version of the scenario file that this package writes.
// Files of another version are refused.
const FormatVersion = 1

// Spec is one run, or with a Grid a family of runs. Its zero value is a sweep of
// no operation on the built-in machine; Workload.Op has to be set. JSON members
// that are absent have the meaning of the field's zero value.
type Spec struct {
	// Format is FormatVersion; 0 in a Go value means the same.
	Format int `json:"scenario"`
	// Name is for people; it does not enter the Digest.
	Name string `json:"name,omitempty"`

	Machine  Machine  `json:"machine,omitzero"`
	NCCL     NCCL     `json:"nccl,omitzero"`
	Network  Network  `json:"network,omitzero"`
	Workload Workload `json:"workload,omitzero"`
	Engine   Engine   `json:"engine,omitzero"`
	// Seed starts every random stream; 0 means 1, but where routes are hashed the median of
	// several (Draws).
	Seed    uint64  `json:"seed,omitempty"`
	Outputs Outputs `json:"outputs,omitzero"`

	// Grid lists axes, each a member of this Spec and the values it takes. The
	// points are all combinations, the last axis changing fastest.
	Grid []Axis `json:"grid,omitempty"`
}

// Machine says which computers there are.
type Machine struct {
	// Nodes lists kinds of nodes in the order of their ranks. Empty: two of the
	// built-in DGX H100.
	Nodes []Nodes `json:"nodes,omitempty"`
	// GPUs is how many of the lowest local ranks of each node take part; 0: all.
	GPUs int `json:"gpus,omitempty"`
	// Multicast is NVLink multicast: "auto" (also ""), "on" or "off". Auto is on
	// where every GPU is sm_90 or newer behind an NVSwitch.
	Multicast string `json:"multicast,omitempty"`
	// NVLinkDomain is how many consecutive nodes share one NVLink domain, as in
	// an NVL72; 0: what the topology says; 1: a node alone is a domain, with a
	// fabric as its neighbours have.
	NVLinkDomain int `json:"nvlinkDomain,omitempty"`
	// Class is the machine class, by name or by the path of a file (a name with a
	// dot or slash); empty: the class that fits the topology.
	Class string `json:"class,omitempty"`
	// Split divides the ranks into communicators, which do the same at the same time:
	// those of one colour, rank AND, OR, MOD or DIV a number, "MOD 8", are one
	// (nccl-tests' NCCL_TESTS_SPLIT). Sizes and bandwidths are those of rank 0's. "": none.
	Split string `json:"split,omitempty"`
}

// Nodes are equal nodes.
type Nodes struct {
	// Topo is a topology file; empty: the built-in DGX H100.
	Topo string `json:"topo,omitempty"`
	// Count is the number of nodes; 0: one, of the built-in machine two.
	Count int `json:"count,omitempty"`
}

// NCCL is the library whose decisions are taken.
type NCCL struct {
	// Version is the release whose rules decide, "2.28.9" or "torch==2.8"; empty: that
	// of SIMCCL_NCCL_VERSION, else rules.Default's.
	Version string `json:"version,omitempty"`
	// Env holds NCCL_* variables, and SIMCCL_* where they describe the machine.
	// They take precedence over Options.Settings.
	Env map[string]string `json:"env,omitempty"`
}

// Network joins the nodes.
type Network struct {
	// Fabric is a fabric file; empty: an ideal network of the NICs' speed.
	Fabric string `json:"fabric,omitempty"`
	// Hosts is a file that lists which hosts of the fabric the job has, in the order of its ranks (a
	// nodelist of Slurm, a host file of MPI, Kubernetes' nodes); empty: the first ones.
	Hosts string `json:"hosts,omitempty"`
	// Class is the network class, by name or by the path of a file (a name with a dot or
	// slash), with what its plugin sets where it is a name; empty: that of the machine's
	// name, or of its NICs, or else of InfiniBand.
	Class string `json:"class,omitempty"`
	// Model: "flow" (also ""), links are shared max-min; "packet", what hosts send
	// each other goes frame by frame; "hybrid", as packet where queues can form, else
	// as flow.
	Model string `json:"model,omitempty"`
	// CC is the congestion control of senders, with Model packet: "none",
	// "dcqcn:paper", "dcqcn:cx7", …; "": the fabric's.
	CC string `json:"cc,omitempty"`
	// Balance is how frames choose routes: "queue-pair", "flowlet" or "packet"; "": the fabric's.
	Balance string `json:"balance,omitempty"`
	// Faults are what is slow, lossy or down: "nic=node0/2:down".
	Faults []string `json:"faults,omitempty"`
}

// Workload is the operation and what it goes through, as nccl-tests does.
type Workload struct {
	// Op is the operation as nccl-tests calls it: "all_reduce".
	Op string `json:"op"`
	// Job is a file with a job of several operations (docs/JOBS.md), in place of all
	// else here; RunJob runs it.
	Job string `json:"job,omitempty"`
	// Train is the training of a model by name, made for the machine (docs/WORKLOADS.md), in place of all
	// else here; RunJob runs it.
	Train gen.Request `json:"train,omitzero"`
	// Sizes are in bytes, each "8", "1M", "1G" (binary): exactly these. Empty:
	// those of Range.
	Sizes []string `json:"sizes,omitempty"`
	Range Range    `json:"range,omitzero"`
	// Counts are what each rank sends each in an all_to_all_v, in elements: a row for each
	// sender, in place of sizes. Imbalance instead has the busiest receiver of each size get
	// so many times the mean of all, from 1 (also 0), equal parts, to the number of ranks.
	Counts    [][]int64 `json:"counts,omitempty"`
	Imbalance float64   `json:"imbalance,omitempty"`
	// Types, Reductions: "float", "sum"; empty for these. "all" is all of them.
	Types      []string `json:"types,omitempty"`
	Reductions []string `json:"reductions,omitempty"`
	// Root is the root rank; -1 takes each rank, one after the other.
	Root int `json:"root,omitempty"`
	// Group is how many operations each NCCL group has (nccl-tests' -m): they are launched
	// together, and times are of one of them; 0 means 1.
	Group int `json:"group,omitempty"`
	// Cycles is how often all sizes are run; 0 means 1.
	Cycles int `json:"cycles,omitempty"`
	// Buffers: "plain" (also ""), "registered" (ncclCommRegister), or "windows",
	// symmetric windows that all ranks registered together; allocated by ncclMemAlloc.
	Buffers string `json:"buffers,omitempty"`
	// CTAPolicy is the communicator's: 0 default, 1 efficiency, 2 no blocks.
	// NCCL_CTA_POLICY outranks it.
	CTAPolicy int `json:"ctaPolicy,omitempty"`
	// Unalign is by how many elements buffers begin later than aligned ones.
	Unalign int `json:"unalign,omitempty"`
	// Device is nccl-tests' device implementation (-D): 0, NCCL's collectives, or one of its
	// own kernels over symmetric windows, of DeviceBlocks blocks; 0 means 16.
	Device       int `json:"device,omitempty"`
	DeviceBlocks int `json:"deviceBlocks,omitempty"`
	// Kernel takes the place of NCCL's choice: of all_reduce "one-shot", "one-shot-push"
	// or "two-shot" (kernels over the memory of peers), "vllm" (its choice of these and NCCL) or "symmetric"
	// (NCCL's, over windows); of ep_dispatch and ep_combine "deepep" (also ""), "deepep-ll", "hybridep" or
	// "nccl".
	Kernel string `json:"kernel,omitempty"`
	// Serving is what ep_dispatch, ep_combine and kv_transfer move.
	Serving Serving `json:"serving,omitzero"`
}

// Range is a sweep of sizes that nccl-tests rounds to whole elements of all
// ranks. The zero value is 8 B to 1 GiB, doubling.
type Range struct {
	Min string `json:"min,omitempty"`
	Max string `json:"max,omitempty"`
	// Factor above 1 multiplies; else Step is added.
	Factor int64  `json:"factor,omitempty"`
	Step   string `json:"step,omitempty"`
}

// Engine says how times are found.
type Engine struct {
	// Fidelity: "alpha", NCCL's own formula; "step", an ideal network; "share", of a
	// job, each call simulated by itself and links shared by what it needs; "flow",
	// the network of Network.Fabric. "": flow with a fabric, else step.
	Fidelity string `json:"fidelity,omitempty"`
	// Fold: "auto" (also ""), "exact", "near" or "off".
	Fold string `json:"fold,omitempty"`
	// Skip: "auto" (also ""), periods of a steady state are counted, which gives
	// the same times, and with jitter a window of a large operation's iterations is
	// simulated, which gives nearly the same; "off", each is simulated.
	Skip string `json:"skip,omitempty"`
	// Jitter: "drawn" (also ""), of pieces and channels on up to sim.JitterRanks
	// ranks; "off": none, so that ranks fold and steady states recur at every size.
	Jitter string `json:"jitter,omitempty"`
	// Launch: "eager" (also ""), asynchronous launches; "graph", a replayed CUDA
	// graph, device time alone.
	Launch string `json:"launch,omitempty"`
	// Processes is the processes of a node, each with Threads threads that launch
	// for equal shares of the GPUs; both 0: a process a GPU.
	Processes int `json:"processes,omitempty"`
	Threads   int `json:"threads,omitempty"`
	// Blocking: 1, the host waits for each operation and then for its other threads; 2,
	// for the operation alone; 3, for the group, and the meeting of threads after it is
	// not timed; 0, it launches without a pause. Eager launches only.
	Blocking int `json:"blocking,omitempty"`
	// CPUTime reports the host's time to launch in place of the operation's. A host that
	// waits has both in one.
	CPUTime bool `json:"cpuTime,omitempty"`
	// NoProof leaves out the proof that each plan computes what it should.
	NoProof bool `json:"noProof,omitempty"`
	// Rivals simulates every algorithm and protocol that NCCL might have taken,
	// to compute what its choice costs.
	Rivals bool `json:"rivals,omitempty"`
}

// Outputs are files about one operation of the last size. Names go to
// Options.Outputs as they are.
type Outputs struct {
	// Trace is a Chrome trace (.json, .json.gz) or one of Perfetto's own format
	// (.pftrace, .pftrace.gz), Profile a pprof profile
	// (.pb.gz), Ops a list of point-to-point operations (.csv, .goal).
	Trace   string `json:"trace,omitempty"`
	Profile string `json:"profile,omitempty"`
	Ops     string `json:"ops,omitempty"`
	// Detail of the trace: "op", "channel", "step" (also "") or "packet".
	Detail string `json:"detail,omitempty"`
	// Style of the trace: "lanes" (also ""), or "nccl", the layout of NCCL's
	// profiler plugin.
	Style string `json:"style,omitempty"`
	// Ranks that the trace shows, "0-7,16" or "all"; empty: all, of more than 128 ranks one
	// for all that do the same at the same times.
	Ranks string `json:"ranks,omitempty"`
	// Deps adds arrows inside a rank, from what was received to the send that
	// waited for it.
	Deps bool `json:"deps,omitempty"`
	// MaxEvents bounds the events of the trace; 0: 20 million, -1: no bound.
	MaxEvents int64 `json:"maxEvents,omitempty"`
	// EventMask is NCCL_PROFILE_EVENT_MASK: which kinds of events; 0: all.
	EventMask uint32 `json:"eventMask,omitempty"`
}

// Axis is one dimension of a Grid.
type Axis struct {
	// Path is a member of the Spec: "machine.nodes[0].count", "nccl.env.NCCL_ALGO".
	Path string `json:"path"`
	// Values are JSON values of that member's type.
	Values []Value `json:"values"`
}

// Clone returns a Spec that shares nothing with s.
func (s Spec) Clone() Spec {
	s.Machine.Nodes = slices.Clone(s.Machine.Nodes)
	s.NCCL.Env = maps.Clone(s.NCCL.Env)
	s.Network.Faults = slices.Clone(s.Network.Faults)
	s.Workload.Sizes = slices.Clone(s.Workload.Sizes)
	s.Workload.Counts = slices.Clone(s.Workload.Counts)
	for i, row := range s.Workload.Counts {
		s.Workload.Counts[i] = slices.Clone(row)
	}
	s.Workload.Types = slices.Clone(s.Workload.Types)
	s.Workload.Reductions = slices.Clone(s.Workload.Reductions)
	s.Grid = slices.Clone(s.Grid)
	for i := range s.Grid {
		s.Grid[i].Values = slices.Clone(s.Grid[i].Values)
		for j, v := range s.Grid[i].Values {
			s.Grid[i].Values[j] = slices.Clone(v)
		}
	}
	return s
}
