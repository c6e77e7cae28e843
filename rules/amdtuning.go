package rules

import (
	"strings"

	"github.com/simccl/simccl/coll"
)

// AMDTuning are the rules of the cost model and of the choice that only RCCL has; the zero value is NCCL's.
// Files are below src/ of RCCL 2.30.4.
type AMDTuning struct {
	// Costs are the tables by index; without any NCCL's figures and caps hold. Tables are the indices by
	// architecture, TablesFirm those that hold over a model's, TablesAINIC those of machines with AMD's NICs
	// (graph/tuning.cc:1155, 1185).
	Costs                           []CostTable
	Tables, TablesFirm, TablesAINIC []ArchCount

	// NoTreeAlone are architectures without Tree by Simple on one node, and AloneLL by how much LL of
	// Broadcast and Reduce is faster for them there (graph/tuning.cc:781, 813).
	NoTreeAlone []string
	AloneLL     float64
	// LL128Archs are the architectures with LL128, by default where the machine's model says so and up to PXB
	// and XGMI, and only where XGMI joins all (graph/tuning.cc:985, enqueue.cc:2347). LL128Asked: NCCL_PROTO
	// overrides the model and the paths.
	LL128Archs []string
	LL128Asked bool
	// PATOff: NCCL_PAT_ENABLE is 0 by default, and 1 is for one rank a node all the same. PATWindows are the
	// sizes between which it is taken without NCCL_ALGO, by the most nodes (enqueue.cc:2322); none for all.
	PATOff     bool
	PATWindows []SizeWindow

	// MostThreads are those of a block by architecture, of Simple and LL128; LL, and one node, have
	// LeastThreads (rccl_wrap.cc:799).
	MostThreads  []ArchCount
	LeastThreads int
	// SmallScatter is the share of a rank in bytes up to which ReduceScatter has LeastThreads.
	SmallScatter int64
	// CollNetGrain are bytes per thread of CollNet; 0 for NCCL's.
	CollNetGrain int64
	// RingRemains: where all algorithms that are on take longer than LongestUs, Ring by Simple runs.
	RingRemains bool

	// AloneLLMost are the largest shares of a rank in bytes that have LL on one node (rccl_wrap.cc:97).
	AloneLLMost []FuncWindow
	// LL128Stretch is by how much the table's largest LL128 AllReduce is larger beyond two nodes.
	LL128Stretch float64
	// AloneTree are the AllReduces of one node by Tree and LL (enqueue.cc:2600).
	AloneTree []FuncWindow
	// PivotRings: with so many rings for pivots an AllReduce up to PivotMost bytes is Tree by LL on at most
	// PivotChannels, else Ring by Simple (enqueue.cc:2504).
	PivotRings, PivotChannels int
	PivotMost                 int64
	// PATSteps: channels of PAT go by bytes (enqueue.cc:2460).
	PATSteps bool
	// OneRankNodes: nodes of one rank have their channels by the table too (rccl_wrap.cc:183).
	OneRankNodes bool
	// Pipelined are the architectures on which reductions of bfloat16 are pipelined (rccl_wrap.cc:307).
	Pipelined []string

	// Direct are the operations that go by send and receive to all, in place of the algorithm that the model
	// names (rccl_wrap.cc:517, 573).
	Direct []DirectRule
	// DirectAsked: RCCL_DIRECT_ALLGATHER_THRESHOLD is taken in place of their sizes; DDAAsked is the
	// architecture for which RCCL_DDA_THRESHOLD is.
	DirectAsked bool
	DDAAsked    string
	// Hierarchical are the largest AllGathers in bytes of all ranks that go over nodes and then within them,
	// by the least nodes, most first (rccl_wrap.cc:502).
	Hierarchical []SizeWindow
	// DDA are the operations by kernels that read the memory of all GPUs of a node, before all else
	// (collectives.cc:127-146, 440).
	DDA []DirectRule
}

// FactorSizes is how many sizes a table has factors for: powers of two from 64 B on, of which the last holds
// for all larger.
const FactorSizes = 27

// CostTable is one table of RCCL's cost model. GB/s and microseconds.
type CostTable struct {
	HWLat [NumHops]Cells
	// Share is the algorithm's of the graph's bandwidth, up to two nodes and of more.
	Share [2]Cells
	// TreeShare and RingShare are what is left of it at a size; Ring's holds between nodes.
	TreeShare, RingShare [coll.NumProtocols][FactorSizes]float32
	// Ranges are the shares of a rank that have LL and LL128 between nodes.
	Ranges [coll.NumCollFuncs][2]ProtoRange
	// Channels are the channels by the share of a rank between nodes.
	Channels [coll.NumCollFuncs][]ChannelWindow
}

// ProtoRange are the bytes of a rank that have a protocol: more than From, up to To. Grain are bytes per
// thread and rank for which a channel is used, 0 for the model's; Factor is not used.
type ProtoRange struct{ From, To, Factor, Grain int64 }

// ChannelWindow are the channels for the share of a rank: more than From bytes, up to To.
type ChannelWindow struct {
	From, To int64
	Channels int
}

// SizeWindow are sizes in bytes, From up to To, for a number of nodes; 0 nodes for all others.
type SizeWindow struct {
	Nodes    int
	From, To int64
}

// FuncWindow are sizes in bytes of an operation on an architecture, From up to To.
type FuncWindow struct {
	Arch     string
	Func     coll.Func
	From, To int64
}

// DirectRule are the sizes in bytes of all ranks, From up to To and of a node PerNode more, of an operation
// on an architecture.
type DirectRule struct {
	Arch     string
	Func     coll.Func
	From, To int64
	PerNode  int64
	// MinNodes and MaxNodes bound the nodes, 0 for any; RankMultiple is what divides the ranks; PXN has to be
	// on; NoAINIC: not with AMD's NICs.
	MinNodes, MaxNodes, RankMultiple int
	Ranks                            int // the number of them, 0 for any
	PXN, NoAINIC                     bool
}

// amdTuning are those of all releases of RCCL that are known here.
func amdTuning() AMDTuning {
	new3 := []string{"gfx942", "gfx950"}
	return AMDTuning{Costs: rcclTables(),
		Tables:      []ArchCount{{"gfx942", 5}, {"gfx950", 6}, {"", 0}},
		TablesFirm:  []ArchCount{{"gfx950", 6}},
		TablesAINIC: []ArchCount{{"gfx942", 8}},
		NoTreeAlone: new3, AloneLL: 1.65, LL128Archs: []string{"gfx90a", "gfx942", "gfx950"},
		LL128Asked: true,
		PATOff:     true, PATWindows: []SizeWindow{{4, 512 << 10, 2 << 20}, {8, 32 << 10, 4 << 20},
			{0, 0, 32 << 20}},
		MostThreads: []ArchCount{{"", 256}}, LeastThreads: 256, SmallScatter: 512 << 10, CollNetGrain: 256,
		RingRemains: true, LL128Stretch: 3.8,
		AloneLLMost: []FuncWindow{{"gfx950", coll.AllGather, 0, 88448},
			{"gfx950", coll.ReduceScatter, 0, 131072}, {"gfx942", coll.ReduceScatter, 0, 352128}},
		AloneTree:  []FuncWindow{{"gfx950", coll.AllReduce, 64, 256 << 10}},
		PivotRings: 3, PivotChannels: 24, PivotMost: 2200008, PATSteps: true, Pipelined: []string{"gfx942"},
		Direct: []DirectRule{
			{Arch: "gfx942", Func: coll.AllGather, To: 4 << 20, RankMultiple: 8, NoAINIC: true},
			{Arch: "gfx950", Func: coll.AllGather, To: 8 << 20, MaxNodes: 1, RankMultiple: 8, NoAINIC: true},
			{Arch: "gfx950", Func: coll.AllGather, PerNode: 2 << 20, MinNodes: 2, MaxNodes: 63,
				RankMultiple: 8,
				NoAINIC:      true},
			{Arch: "gfx950", Func: coll.AllGather, To: 75497472, MinNodes: 64, RankMultiple: 8,
				NoAINIC: true},
			{Arch: "gfx950", Func: coll.ReduceScatter, From: 128 << 10, To: 2 << 20, MinNodes: 2, MaxNodes: 2,
				PXN: true},
			{Arch: "gfx950", Func: coll.ReduceScatter, To: 4 << 20, MinNodes: 4, MaxNodes: 4, PXN: true},
			{Arch: "gfx950", Func: coll.ReduceScatter, To: 8 << 20, MinNodes: 8, MaxNodes: 8, PXN: true},
			{Arch: "gfx950", Func: coll.ReduceScatter, To: 8 << 20, MinNodes: 16, MaxNodes: 16, PXN: true}},
		Hierarchical: []SizeWindow{{16, 0, 128 << 20}, {8, 0, 64 << 20}},
		DDA:          ddaRules(), DirectAsked: true, DDAAsked: "gfx950",
	}
}

// ddaRules are the windows of DDA: one node of eight (collectives.cc:246, 310, 440, 577).
func ddaRules() []DirectRule {
	var out []DirectRule
	for _, f := range []coll.Func{coll.AllReduce, coll.AllGather, coll.ReduceScatter, coll.AllToAll} {
		most := int64(8 << 20)
		if f == coll.AllToAll {
			most = 4 << 20
		}
		out = append(out, DirectRule{Arch: "gfx942", Func: f, To: most, MaxNodes: 1, Ranks: 8},
			DirectRule{Arch: "gfx950", Func: f, To: 64 << 20, MaxNodes: 1, Ranks: 8})
	}
	return out
}

// Has reports whether the rules have tables of RCCL's cost model.
func (t *AMDTuning) Has() bool { return len(t.Costs) > 0 }

// KnowsLL128 reports whether an architecture has LL128.
func (t *AMDTuning) KnowsLL128(arch string) bool { return anyArch(t.LL128Archs, arch) }

// AloneTreeOff reports whether an architecture has no Tree by Simple on one node.
func (t *AMDTuning) AloneTreeOff(arch string) bool { return anyArch(t.NoTreeAlone, arch) }

// PipelinedOn reports whether reductions of bfloat16 are pipelined.
func (t *AMDTuning) PipelinedOn(arch string) bool { return anyArch(t.Pipelined, arch) }

// Threads are the most threads of a block for an architecture and a protocol.
func (t *AMDTuning) Threads(arch string, p coll.Protocol) int {
	if n, ok := ofArch(t.MostThreads, arch); ok && p != coll.LL {
		return n
	}
	return t.LeastThreads
}

// PATWindow are the sizes for which PAT is taken on a number of nodes.
func (t *AMDTuning) PATWindow(nodes int) (SizeWindow, bool) {
	for _, w := range t.PATWindows {
		if w.Nodes == 0 || nodes <= w.Nodes {
			return w, true
		}
	}
	return SizeWindow{}, false
}

// In finds the window of an operation on an architecture that holds a size.
func In(list []FuncWindow, arch string, f coll.Func, size int64) (FuncWindow, bool) {
	for _, w := range list {
		if w.Func == f && strings.HasPrefix(arch, w.Arch) && size >= w.From && size <= w.To {
			return w, true
		}
	}
	return FuncWindow{}, false
}

func anyArch(list []string, arch string) bool {
	for _, a := range list {
		if strings.HasPrefix(arch, a) {
			return true
		}
	}
	return false
}
