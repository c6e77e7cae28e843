package rules

import (
	"strings"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/units"
)

// Ruleset is the rules of one release. It is passed by pointer through the Params
// of every stage and must not be changed in between: two stages of one
// communicator have the same rules. A Ruleset comes from Default or For; a nil
// one is refused by every stage (Check).
type Ruleset struct {
	Release Release
	Library Library // whose Release it is
	Edition Edition

	// MaxChannels bounds the channels of a communicator (device.h:86).
	MaxChannels int

	Topo    Topo
	Search  Search
	Connect Connect
	Tuning  Tuning
	Plan    Plan
	Sym     Symmetric
	Log     Log
}

// Default returns the rules that hold where no release is asked for: the one
// place that decides which.
func Default() *Ruleset { return nccl2289() }

// For returns the rules of a release; "" is the default's. Errors are a
// *FormatError, or an *UnknownError with the releases that are known.
func For(text string) (*Ruleset, error) {
	if text == "" {
		return Default(), nil
	}
	if number, ok := strings.CutPrefix(text, RCCL.prefix()); ok {
		return forRCCL(number)
	}
	want, err := ParseRelease(text)
	if err != nil {
		return nil, err
	}
	for _, r := range table() {
		if r.Release == want {
			return r.rules(), nil
		}
	}
	return nil, &UnknownError{Release: want}
}

// entry is a release and what makes its rules.
type entry struct {
	Release
	rules func() *Ruleset
}

// table lists every known release, oldest first. No rules are made.
func table() [17]entry {
	return [...]entry{
		{Release{2, 21, 5}, nccl2215}, {Release{2, 22, 3}, nccl2223}, {Release{2, 23, 4}, nccl2234},
		{Release{2, 24, 3}, nccl2243},
		{Release{2, 25, 1}, nccl2251}, {Release{2, 26, 2}, nccl2262}, {Release{2, 26, 6}, nccl2266},
		{Release{2, 27, 3}, nccl2273},
		{Release{2, 27, 5}, nccl2275}, {Release{2, 27, 7}, nccl2277}, {Release{2, 28, 3}, nccl2283},
		{Release{2, 28, 7}, nccl2287},
		{Release{2, 28, 9}, nccl2289},
		{Release{2, 29, 2}, nccl2292}, {Release{2, 29, 7}, nccl2297}, {Release{2, 30, 3}, nccl2303},
		{Release{2, 30, 7}, nccl2307},
	}
}

// Known lists the releases that have rules, oldest first.
func Known() []Release {
	var out []Release
	for _, r := range table() {
		out = append(out, r.Release)
	}
	return out
}

// Version is the release as text that For reads: "2.28.9", "rccl-2.30.4". All that is
// printed of a version comes from here or from Name.
func (r *Ruleset) Version() string { return r.Library.prefix() + r.Release.String() }

// Name is the release with its library: "NCCL 2.28.9".
func (r *Ruleset) Name() string { return r.Library.String() + " " + r.Release.String() }

// Check returns an error where a stage was given no rules, or others than what
// it works on was made by. of are the rules of its inputs; nil ones, of inputs
// without a history, are passed over.
func (r *Ruleset) Check(stage string, of ...*Ruleset) error {
	if r == nil {
		return &MissingError{stage}
	}
	for _, o := range of {
		if o != nil && o != r && (o.Release != r.Release || o.Library != r.Library) {
			return &MixedError{Stage: stage, Want: r.Version(), Have: o.Version()}
		}
	}
	return nil
}

// Level is a kind of path as a limit, in the order of topo.PathKind.
type Level uint8

// Levels, best first; the numbers are those of topo.PathKind.
const (
	LOC Level = iota
	NVL
	NVB
	C2C
	PIX
	PXB
	P2C
	PXN
	PHB
	SYS
)

// SMRow is a figure for GPUs of at least a compute capability (90 for sm_90).
type SMRow struct {
	SM int
	BW units.GBps
}

// Topo are the rules of building a topology.
type Topo struct {
	NVLinkBW []SMRow // rate of one NVLink, highest compute capability first
	// Bandwidth between the sockets of Intel machines, by CPU model (BDW, SKL,
	// SRP, ERP).
	IntelBDW, IntelSKL, IntelSRP, IntelERP float32

	// NewestSKL: processors of Intel after Skylake count as Skylake.
	NewestSKL bool

	MaxNodes int // nodes of one kind
	MaxLinks int // links of one node

	// P2PLevel is the worst path on which GPUs address each other's memory, and
	// P2PLevelAMD that on AMD machines of at most P2PAMDGPUs GPUs.
	P2PLevel, P2PLevelAMD Level
	P2PAMDGPUs            int
	// P2PLevelOther is it on machines that are neither ARM nor of Intel, AMD or
	// Zhaoxin.
	P2PLevelOther Level

	// C2CLinks: a C2C link has a kind of its own; else it counts as NVLink.
	C2CLinks bool
	// P2CPaths: GPU-C2C-CPU-NIC has a kind of its own.
	P2CPaths bool
	// PXNBeforeP2C: PXN is a better kind of path than P2C.
	PXNBeforeP2C bool
	// P2CFromPHB gives a path that kind where it was PHB and the GPU's to the CPU is
	// C2C, and no other.
	P2CFromPHB bool
	// P2CLocalOnly relabels paths as P2C only to the nets that a GPU would use.
	P2CLocalOnly bool

	PXNC2C bool // default of NCCL_PXN_C2C
	// PeersByC2C: with it NCCL_P2P_PXN_LEVEL=2 takes GPUs that reach the net over C2C too.
	PeersByC2C bool
	GDRC2C     bool // default of NCCL_NET_GDR_C2C
	// GDRLevel is the worst path for GPUDirect RDMA; GDRLevelC2C the same with
	// NCCL_NET_GDR_C2C on.
	GDRLevel, GDRLevelC2C Level
	// P2CAsC2C: NCCL_NET_GDR_C2C takes a P2C path for a C2C path.
	P2CAsC2C bool
	// PXNFrom: a GPU whose own path to a net is worse than this has it relayed also
	// where that brings no bandwidth.
	PXNFrom Level
	// PXNNeedsGDR: a GPU relays only to a net with which it has GPUDirect RDMA; in send/recv
	// too.
	PXNNeedsGDR bool

	FuseNICs   bool // near NICs become one virtual NIC
	WidenFused bool // the PCI link of a virtual NIC and that above it get the width of its ports
	// WidenPorts: so do the links of the ports and those between them and where they meet.
	WidenPorts bool
	// FuseOneCPU: NCCL fails where the ports of a virtual NIC are on different CPUs.
	FuseOneCPU bool
	// NetsByShare: of nets that are equally near a GPU begins with that of its number
	// among the GPUs that share them; else of its number on the host.
	NetsByShare bool
	// FusedDevice: a virtual NIC below a CPU gets a PCI device of its own.
	FusedDevice bool
	// FuseAlone: a port that is merged with no other becomes a virtual NIC of one port,
	// with a number after those of the ports.
	FuseAlone bool
	// FusedBelowCards: a virtual NIC gets a PCI device of its own below any PCI device, also
	// below a card, where NCCL reads no further; else below a switch alone.
	FusedBelowCards bool
	// Trims says what leaves the tree of a rank.
	Trims Trims
	// SelfLinks: a GPU has a LOC link to itself.
	SelfLinks bool
	// SignedIDs: a CPU without NUMA node, whose number is -1, takes one from the number
	// of its host in its id; else the id keeps both.
	SignedIDs bool
	// WholeHosts: each rank keeps all GPUs of its host in its tree, in the order of the
	// file; else its own GPU, and the trees of the ranks are joined in their order.
	WholeHosts bool
	// NICsByCard: the ports of a card are one NIC; else each has its own.
	NICsByCard bool
	// PCILinks: links between PCI switches beside the tree are read.
	PCILinks bool
	// FlattenSecond: after a Broadcom switch was made one, NCCL goes on with the second
	// PCI node; else it starts anew.
	FlattenSecond bool
	// GUIDFallback: a net without guid has its id for one; else its number.
	GUIDFallback bool
	// GUIDPrefixed: a guid that does not begin with "0x" is 0.
	GUIDPrefixed bool
	// TrimNets: a System that holds all ranks loses its nets.
	TrimNets bool
	// GINNodes: nets with gin="1" have a GIN node too.
	GINNodes bool
	// GINPorts: a port that a virtual NIC replaces stays for its GIN node.
	GINPorts bool
	// NetRails: nets have rails and planes, by which channels are matched.
	NetRails bool
	// DevNodes: a DEV node is between a GPU and its links.
	DevNodes bool
	// GPUParts: a GPU may be split in parts with devices of their own.
	GPUParts bool
	// NearestCPU: a GPU's CPU is, of the nearest ones, that in fewest hops; else of all.
	NearestCPU bool
	// PathsByKind: of two routes NCCL keeps that of the better kind, then the wider,
	// then the shorter; else the wider one of those that are not longer.
	PathsByKind bool

	AMDTopo
}

// NVLink is the rate of one NVLink of a GPU. The last row holds for all compute
// capabilities below it, a negative one included.
func (t *Topo) NVLink(sm int) units.GBps {
	i := 0
	for i < len(t.NVLinkBW)-1 && sm < t.NVLinkBW[i].SM {
		i++
	}
	return t.NVLinkBW[i].BW
}

// Rank is the place of a kind of path among those of the release, best first; of a
// place, it is the kind.
func (t *Topo) Rank(l Level) Level {
	if t.PXNBeforeP2C {
		switch l {
		case P2C:
			return PXN
		case PXN:
			return P2C
		}
	}
	return l
}

// Search are the rules of searching graphs.
type Search struct {
	Speeds []Speeds // highest compute capability first; the last has SM 0
	// MaxNVLSHeads bounds the channels of an NVLS graph.
	MaxNVLSHeads int
	// KindsOfSystem: the kinds of paths that are tried are listed from the best to the
	// worst in the system; else from NVL (between GPUs) and PIX (to nets) to SYS.
	KindsOfSystem bool
	// SYSBelowSM90: below sm_90 paths to nets are tried up to SYS in any case.
	SYSBelowSM90 bool
	// HeadsKeepBW: a net whose GPU heads an NVLS channel already loses the bandwidth of
	// the try for good, and a net without a GPU ends the search for a head.
	HeadsKeepBW bool
	// FirstNetHeads: a channel of NVLS is tried from one net, whose GPU may head several.
	FirstNetHeads bool
	// TwoIslands: two groups of GPUs joined by NVLink get two rings at least.
	TwoIslands bool
	// ScatterNets is the default of NCCL_MNNVL_SCATTER_NETS_ENABLE.
	ScatterNets bool
	// FirstGPUs says which GPUs a channel that comes from a net is tried with.
	FirstGPUs FirstGPUs
	// CapNets: NCCL_NETDEVS_POLICY=MAX bounds the nets that a channel is tried with, too.
	CapNets bool
	// CrossAny: NICs may cross in every pattern, and odd channels mirror the even ones
	// before them wherever they do; else in rings alone.
	CrossAny bool
	// OneCollNetGraph: CollNetDirect has the chain's graph, and the file of graphs and the
	// log have that once.
	OneCollNetGraph bool
	// CollNetDirectFile is the id of CollNetDirect's graph in files of graphs.
	CollNetDirectFile int
	// MaxCollNetHeads bounds the channels of a graph for CollNetDirect.
	MaxCollNetHeads int
	// GraphRanks: the file of graphs names ranks beside devices.
	GraphRanks bool
	// NoGraphNets: where nothing is found, the graph has the nets of the first and
	// the last GPU, or no speed and DIS between nodes where these have none; else
	// no nets, 0.1 GB/s and SYS.
	NoGraphNets bool

	AMDSearch
}

// FirstGPUs are the ways in which a search finds the first GPU from a net.
type FirstGPUs uint8

// Ways: the GPU that owns the net and then the nearest; the nearest alone; those of
// the widest path in fewest hops, beginning with another one for each channel.
const (
	OwnerFirst FirstGPUs = iota
	NearestGPUs
	FewestHops
)

// Speeds are the speeds in GB/s that a search tries, fastest first, for machines
// whose lowest compute capability is at least SM: within a host and between
// hosts.
type Speeds struct {
	SM           int
	Intra, Inter []float32
}

// Connect are the rules of joining ranks.
type Connect struct {
	// SwapAnyCross: neighbouring channels of odd nodes are swapped where NICs may
	// cross at all; else only where the search alternates them (crossNic 2).
	SwapAnyCross bool
	// MixedCPUs: nodes with other processors than rank 0's make the
	// communicator's architecture or vendor "mixed"; else rank 0's hold.
	MixedCPUs bool
	// OwnTreePattern: the cost model takes rank 0's tree pattern, not the largest
	// of all ranks.
	OwnTreePattern bool

	// Channels are doubled between nodes of at least DoubleSM (exactly, with
	// DoubleExact), with rings faster than DoubleBW and fewer than DoubleBelow.
	DoubleSM    int
	DoubleExact bool
	DoubleBW    units.GBps
	DoubleBelow int

	// NVLS channels by compute capability: SM90 and older, SM100 and newer, and
	// the latter where all ranks share one NVLink domain.
	NVLSSM90, NVLSSM100, NVLSSM100OneDomain int64
	NVLSMinGPUs                             int
	// CollNetRanks is the most ranks of a node with CollNet; 0 for any number.
	CollNetRanks int
	// CollNetOfNVLS: the network that reduces is joined by the heads of NVLS where there
	// are any; else by those of CollNetDirect.
	CollNetOfNVLS bool
	// NVLSTune changes the channels and chunks of NVLS; nil for nothing.
	NVLSTune func(NVLSShape) NVLSTuned
	// NVLSRaises: a communicator has at least as many channels as NVLS. NVLSApart: other
	// algorithms do not use those that were added, though the plateau of Ring counts them.
	NVLSRaises, NVLSApart bool
	// AnyNVLink: a node counts as joined by NVLink where any two GPUs are; else where
	// all are. NVLinkOfAll: a communicator does where all of its nodes are; else where
	// rank 0's is.
	AnyNVLink, NVLinkOfAll bool

	Buffers [coll.NumProtocols]int64 // bytes
	// Chunks of send/recv: between nodes and over PCI, and over NVLink alone.
	P2PChunk, P2PNVLChunk int64
	// P2PHalves: in send/recv nodes take the distances 0, half of all, 1, -1, those next to
	// half and so on, ranks of a node a power of two or eights of places, and the channel
	// goes by the distances of the two ranks; else all go by rounds.
	P2PHalves bool
	// P2PReverseParts: the parts of a transfer are spread over the channels in
	// bit-reversed order, and rounds in order; else the reverse.
	P2PReverseParts bool
	// P2PChunkARM is by how much that between nodes is larger from sm_100 on with
	// ARM CPUs; 0 for not at all.
	P2PChunkARM int64
	NVLSChunk   int64
	P2PGroup    int64 // ranks of a node scheduled together in send/recv; 0: all of a node
	// P2PGroupAlone: so they are on one node, too, where else all are together.
	P2PGroupAlone bool

	// PeerChannels is how many channels send/recv to one peer uses over the
	// network. PeersAgree: the minimum over all ranks holds; else each node has
	// its own.
	PeerChannels func(Peer) int
	PeersAgree   bool
	// PeersByTurns: the nets that fill a GPU are those that it takes in turn, up to
	// its bandwidth to the CPU; else its nearest, up to its own link to a CPU.
	PeersByTurns bool
	// PeerBatch is how many ranks' send/recv share a channel at a time: between
	// nodes the channels a peer are halved while they times the batches of all
	// ranks are more than there are. 0: they are only bounded by that number.
	PeerBatch int
	// NVBPeers: a path by way of a GPU counts as NVLink for them.
	NVBPeers bool

	AMDConnect
}

// Classes are the rows of the bandwidth caps: below sm_80, sm_80, sm_90, sm_100.
const Classes = 4

// Class is the row for a lowest compute capability.
func Class(sm int) int {
	switch {
	case sm >= 100:
		return 3
	case sm >= 90:
		return 2
	case sm >= 80:
		return 1
	}
	return 0
}

// Hops between ranks, rows of Tuning.HWLat.
const (
	HopNVLink = iota
	HopPCI
	HopNet
	NumHops
)

// Caps are bandwidth limits in GB/s by Class and by 1, 2 or more nodes.
type Caps [Classes][3]float64

// Cells are figures by algorithm and protocol.
type Cells [coll.NumAlgorithms][coll.NumProtocols]float64

// Tuning are the rules of the cost model. GB/s and microseconds.
type Tuning struct {
	BaseLat Cells
	HWLat   [NumHops]Cells

	LLMax        Caps
	RingLL128Max Caps // per channel
	TreeLL128Max Caps // per channel
	TreeMax      Caps // per channel
	NVLSTreeMax  Caps // per channel
	NVLSEff      [Classes]float32

	// TreeCorrection is a tree's share of its bandwidth by log2(bytes / 64), for an
	// AllReduce by Tree up to the one before last.
	TreeCorrection [coll.NumProtocols][24]float32
	// NVLSTreeSM is the lowest compute capability from which NVLSTree has it too, in
	// full, with x86 CPUs; 0 for none.
	NVLSTreeSM int
	// CorrectAllTrees: it holds for every collective, else for AllReduce.
	CorrectAllTrees bool
	// CorrectLeast: below 64 bytes the first share holds; else none.
	CorrectLeast bool

	// RingLL128 is LL128's share of a ring's bandwidth; RingLL128Sparse with less
	// than two ranks a node.
	RingLL128, RingLL128Sparse float64
	// NetLatOfTree: with one rank a node, a network hop of any algorithm takes
	// what one of a tree does.
	NetLatOfTree bool
	// NetRoundTrip: a ring AllReduce passes the network 2 times for each node,
	// else 2 times for each but one.
	NetRoundTrip bool
	// LLMixedAsAMD: between nodes, LL on mixed CPUs has AMD's row.
	LLMixedAsAMD bool

	// LL128SMs are the compute capabilities with LL128 by default; empty for all
	// from LL128MinSM on.
	LL128SMs   []int
	LL128MinSM int
	// LL128AlsoPXN: from sm_90 on LL128 goes over PXN between nodes with NCCL_LL128_C2C=0
	// too, though not over P2C; else no further than PXB.
	LL128AlsoPXN bool
	// LL128MixedSM is the lowest compute capability from which GPUs of different
	// ones have LL128 by default; 0 for none.
	LL128MixedSM int

	// LongestUs is the time in microseconds from which an algorithm is not taken.
	LongestUs float32

	// TreeThreads: a tree has the threads that the size asks for, with Simple four warps
	// more; else all.
	TreeThreads bool

	// ListsOfAll: NCCL_ALGO and NCCL_PROTO are one list for all operations, of which
	// unknown names are passed over; where nothing is left, Ring runs with the
	// bandwidth that it had.
	ListsOfAll bool
	// KeepAllRings: that Ring has protocols too that NCCL_PROTO leaves out or that are
	// not safe.
	KeepAllRings bool

	PAT    bool // there is a PAT algorithm
	PATSM  int  // lowest compute capability for it
	PATEff float64

	// NVLSLeast is the least channels of a graph for NVLS and NVLSTree.
	NVLSLeast int
	// NVLSRatio is their algorithm's share of the bus bandwidth; 0: ranks by steps,
	// as for Ring.
	NVLSRatio float32
	// NVLSRatioAll: it holds for AllGather and ReduceScatter too, else for AllReduce.
	NVLSRatioAll bool
	// CollNetGather is the bus bandwidth of CollNetDirect AllGather and ReduceScatter
	// for so many ranks a node and speeds of the graph; nets says that there are several nodes.
	CollNetGather func(perNode, intra, inter float32, nets bool) float32
	// CollNetMean: these need a head for each rank of a node on average; else of the
	// largest node.
	CollNetMean bool
	// CollNetChainRanks is the most ranks of a node with CollNetChain; 0 for any number.
	CollNetChainRanks int
	// CollNetChainHeads: CollNetChain is off where a chain begins at a rank that is no
	// head of the network's.
	CollNetChainHeads bool
	// NVLSBandwidth is the bus bandwidth per channel of NVLS and NVLSTree.
	NVLSBandwidth func(t *Tuning, in NVLS) float32
	// NVLSGathersInter: NVLS AllGather and ReduceScatter exist between nodes.
	NVLSGathersInter bool
	// NVLSNoAllGather: an AllGather, which counts bytes, is taken for a reduction of bytes,
	// which NVLS does not do.
	NVLSNoAllGather bool
	// NVLSGatherRanks is the most local ranks for them; NVLSFewest: NVLS between
	// nodes has no more channels than the rings.
	NVLSGatherRanks int
	NVLSFewest      bool

	AMDTuning
}

// NVLS is what the bandwidth of NVLS depends on.
type NVLS struct {
	Intra, Inter float32 // GB/s of the graph
	Channels     int     // of the graph
	PerNode      float32 // ranks of a node
	Nodes        int
	Class, Scale int // row and column of the caps
	Tree         bool
	AllReduce    bool
}

// Plan are the rules of splitting an operation over channels and chunks.
type Plan struct {
	// MinTraffic is the least traffic for which a further channel is used.
	// RoundShare: a channel's share is rounded up to 16 bytes, else raised to
	// MinTraffic.
	MinTraffic int64
	RoundShare bool
	// SmallCells: an operation is divided by cells of 16 bytes; else by cells of
	// MinTraffic.
	SmallCells bool
	// EvenBytes: every channel of the cost model gets the same bytes, and the chunks
	// are those of the whole operation, in no whole
	// grains but at the end of an AllReduce: there in what the threads move at a time.
	EvenBytes bool
	// NVLSGrain is what the chunks of the last iteration of an NVLS AllReduce on one
	// node are rounded up to, in bytes; with EvenBytes they are as those of Ring.
	NVLSGrain int64
	// LLByParts: the size up to which send/recv has LL goes by the channels of the
	// transfer; else by those that a peer may have.
	LLByParts bool
	// P2PPieces: a send and a receive are pieces of whole least parts (half a step between
	// nodes, an eighth on one), each with a protocol, a chunk and a place in a batch of
	// its own; else the two of a round share all of these.
	P2PPieces bool
	// BatchByRound: a batch of send/recv has rounds of one group of eight.
	BatchByRound bool
	// EpochBatches: a batch of send/recv has works of one sweep over the rounds.
	// RoundsResume: a further kernel of a group goes on at the round where the one
	// before was full; else at the first.
	EpochBatches, RoundsResume bool
	// NVLSRegistered is how many channels NVLS has over registered buffers, before
	// NCCL_MIN_CTAS and NCCL_MAX_CTAS.
	NVLSRegistered func(NVLSRegistration) int
	// RegistersP2P: peers of a node store into registered buffers in Ring, Tree and send/recv,
	// too; else NVLS and the network that reduces alone use such.
	RegistersP2P bool
	// GathersCaptured: registered buffers of a gather and a scatter are used in a CUDA graph
	// alone.
	GathersCaptured bool
	// BroadcastsJoin: broadcasts of several roots in a group become one operation.
	BroadcastsJoin bool
	// LLTraffic is how many bytes of traffic an LL byte counts for.
	LLTraffic int64

	// SlowNVLS is the bandwidth of NVLS AllReduce in GB/s below which its chunks
	// between nodes are at most SlowNVLSChunk bytes.
	SlowNVLS      float32
	SlowNVLSChunk int64
	// NVLSTreeChunk is the largest NVLSTree chunk from NVLSTreeNodes nodes on.
	NVLSTreeChunk int64
	NVLSTreeNodes int

	AMDPlan
}
