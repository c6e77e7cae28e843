package tuning

import (
	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/rules"
	"github.com/simccl/simccl/search"
	"github.com/simccl/simccl/topo"
)

// CPU kinds that the model distinguishes, NCCL's numbers (graph.h:56-63).
const (
	archX86     topo.CPUArch   = 1
	archPower   topo.CPUArch   = 2
	vendorIntel topo.CPUVendor = 1
	vendorAMD   topo.CPUVendor = 2
	vendorMixed topo.CPUVendor = 4
)

// Input is what the model must know of a communicator, after all ranks agreed
// (init.cc:1170-1207).
type Input struct {
	NRanks, NNodes int
	// MaxLocalRanks is the most ranks of any NCCL node; LocalRanks those of
	// the node of rank 0.
	MaxLocalRanks, LocalRanks int

	// Graphs are the final graphs: the minimum over all ranks. A nil graph
	// counts as one without channels.
	Graphs search.Set
	// TreePattern is the numerically largest tree pattern of any node
	// (comm->maxTreePattern).
	TreePattern search.Pattern

	Channels     int // comm->nChannels, after doubling and the user's bounds
	NVLSChannels int // comm->nvlsChannels
	// Raised is the number of channels with those for NVLS alone; 0 where there are none.
	Raised int

	MinSM, MaxSM int // lowest and highest compute capability, 90 for sm_90
	CPUArch      topo.CPUArch
	CPUVendor    topo.CPUVendor
	NVSwitch     bool // at least one NVSwitch in rank 0's topology

	// NVLS is set where NVLink multicast is there and was set up
	// (comm->nvlsSupport); NVLSOff says why not, for people.
	NVLS    bool
	NVLSOff Reason
	CollNet CollNet

	// NetOffload is set where a net plugin gives device-side networking
	// (comm->netDeviceType is not HOST).
	NetOffload bool

	AMD AMD // of RCCL alone
}

// CollNet is what an in-network reduction plugin offers; the zero value is
// none.
type CollNet struct {
	Enabled       bool // comm->config.collnetEnable after all checks
	Heads         int  // GPUs of a node that reach the network (collNetHeadsNum)
	DirectHeads   int  // those of CollNetDirect (collnetDirect.nHeads); 0: as many
	AllGather     bool // the plugin has iallgather
	ReduceScatter bool // the plugin has ireducescatter
	// Reduces reports whether the network can reduce (collNetSupportMatrix);
	// nil means it can reduce everything.
	Reduces func(coll.RedOp, coll.DataType) bool
	// ChainHeadless: a chain begins at a rank without a connection to the network.
	ChainHeadless bool
	// Off says why it is not enabled, for people.
	Off Reason
}

// SHARPReduces reports what NVIDIA's plugin for InfiniBand can reduce
// (ncclSharpReduceSupport of nccl-rdma-sharp-plugins, with switches that know 8
// and 16 bit types).
func SHARPReduces(op coll.RedOp, t coll.DataType) bool {
	return (op == coll.Sum || op == coll.Min || op == coll.Max) && t != coll.Float8e4m3 &&
		t != coll.Float8e5m2
}

// Reason says why something is off: the rule, the setting that would change it
// (empty where none does), and where NCCL has the rule.
type Reason struct {
	Rule    string      `json:"rule"`
	Setting string      `json:"setting,omitempty"`
	At      rules.Place `json:"-"`
	// Source is where the release of the model has it, as WhyOff fills in; "" where
	// the release has no line for it.
	Source string `json:"source,omitempty"`
}

// String is the reason as one line.
func (r Reason) String() string {
	s := r.Rule
	if r.Setting != "" {
		s += "; " + r.Setting
	}
	return s
}

var noGraph search.Graph

// graph returns the graph that NCCL uses for an algorithm (init.cc:854);
// one without channels where it was not searched.
func (in *Input) graph(a coll.Algorithm) *search.Graph {
	id := search.TreeID // Tree and PAT
	switch a {
	case coll.Ring:
		id = search.RingID
	case coll.CollNetDirect:
		id = search.CollNetDirectID
	case coll.CollNetChain:
		id = search.CollNetChainID
	case coll.NVLS, coll.NVLSTree:
		id = search.NVLSID
	}
	if g := in.Graphs[id]; g != nil {
		return g
	}
	return &noGraph
}
