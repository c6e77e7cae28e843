package rules

import (
	"cmp"
	"strings"
)

// AMDConnect are the rules of joining ranks that only RCCL has; the zero value is NCCL's. Files are below
// src/ of RCCL 2.30.4.
type AMDConnect struct {
	// Copies are the rules of how many times searched channels are used, of which the last that fits holds
	// (init.cc:1688-1756); without any they are used twice.
	Copies []CopyRule
	// MostCUs are the architectures whose channels are bounded by their compute units, of others MostOld;
	// several nodes and presets with NICs have MostBetween at most (graph/connect.cc:1173).
	MostCUs              []string
	MostOld, MostBetween int
	// MinChannels is the default of NCCL_MIN_NCHANNELS (graph/connect.cc:838).
	MinChannels int64
	// KeepRings: on one node trees do not bound the rings (init.cc:1990).
	KeepRings bool
	// HalfTrees: with more searched channels the first half has the first tree and the second the second
	// (graph/connect.cc:599).
	HalfTrees []ArchCount
	// OneRankChannels are those of a communicator of one rank; 0: as others.
	OneRankChannels int

	// PeerLinks are channels of send/recv by link of XGMI (graph/paths.cc:1121). AMDPeers: they are bounded
	// by processor and kind of machine (graph/paths.cc:1199); PeersFit: to what there are, and between nodes
	// until batches of all ranks fit (graph/paths.cc:1236).
	PeerLinks          []ArchCount
	AMDPeers, PeersFit bool
	// WideLL128 is an architecture whose LL128 buffer is twice as large; empty for none.
	WideLL128 string
	// NetChunks are the chunks of send/recv between nodes, of which the last that fits holds
	// (rccl_wrap.cc:636).
	NetChunks []ChunkRule
	// P2PNet: send/recv of one host goes over the network where GPUDirect RDMA reaches all on a machine of
	// two or four sockets (init.cc:1674).
	P2PNet bool
	// Units are the compute units of architectures, whatever a file says.
	Units []ArchCount
}

// CopyRule is a number of uses of a searched channel, for what its fields say; zero fields hold for all.
type CopyRule struct {
	Arch string // first letters
	// Alone: no ranks are elsewhere; Between: some are.
	Alone, Between bool
	XGMI           bool // XGMI joins all GPUs, over one other at most
	Chordal        bool
	APU            bool // GPU and processor share their memory
	Ranks          int
	// N is the number; 0: the one so far, at least Spread by the searched channels. With N, too.
	N, Spread int
}

// AMDPlan are the rules of kernels that only RCCL has; the zero value is NCCL's.
type AMDPlan struct {
	// Lanes are the threads of a warp; 0 for 32.
	Lanes int
	// LL128Words are the words of 8 bytes of an LL128 line, the last a flag; 0 for 16
	// (include/device.h:162 of 2.28.3).
	LL128Words int
	// KeepShare: the share of a channel is rounded and then raised to MinTraffic (enqueue.cc:800).
	KeepShare bool
	// AllWork: no group spares a warp for the flag (device/prims_simple.h:655).
	AllWork bool
	// TreePasses: Tree by Simple reduces all that a rank has before it broadcasts (device/all_reduce.h:317),
	// in chunks that go by the depth of the trees (enqueue.cc:2731).
	TreePasses bool
	// ChainHalves: chunks of Broadcast and Reduce by Simple are smaller the fewer there are
	// (enqueue.cc:2741).
	ChainHalves bool
	// P2PThreads are those of a send/recv kernel; 0 for 640. P2PBatch are the transfers of a batch, 0 for
	// 8; beyond two nodes BatchArchs have so many and others one (enqueue.cc:1087, include/device.h:538).
	P2PThreads, P2PBatch int
	BatchArchs           []string
	// PartsInTurn: up to two nodes the parts of a round's transfers begin on round times parts
	// (include/device.h:376).
	PartsInTurn bool
	// HubChannels: on one node a rank that only sends or only receives has all channels of a peer
	// (enqueue.cc:1180).
	HubChannels bool
	// P2PLLMost is NCCL_P2P_LL_THRESHOLD's default; 0 for 16384.
	P2PLLMost int64
	// StepChunks are the architectures of OneSlices whose chunks are one step, too (collectives.cc:429).
	StepChunks []string
	// Unrolls are how often loops are unrolled, on one node and on several (rccl_wrap.cc:841).
	Unrolls []UnrollRule
	// OneSlices are the architectures with one slice a step on one node (init.cc:1716).
	OneSlices []string
}

// UnrollRule is the unrolling of an architecture on one node and on several.
type UnrollRule struct {
	Arch           string
	Alone, Between int
}

// UnrollOf is how often loops are unrolled.
func (p *AMDPlan) UnrollOf(arch string, nodes int) int {
	for _, r := range p.Unrolls {
		if strings.HasPrefix(arch, r.Arch) {
			if nodes == 1 {
				return r.Alone
			}
			return r.Between
		}
	}
	return 1
}

// OneSlice reports whether an architecture has one slice a step on one node.
func (p *AMDPlan) OneSlice(arch string) bool { return anyArch(p.OneSlices, arch) }

// RingSteps are the steps of a chunk and of a slice of a ring by Simple: four and two
// (include/collectives.h:19), unless the architecture has one slice on one node.
func (p *AMDPlan) RingSteps(arch string, nodes int) (chunk, slice int) {
	switch {
	case nodes > 1 || !p.OneSlice(arch):
		return 4, 2
	case anyArch(p.StepChunks, arch):
		return 1, 1
	}
	return 4, 4
}

// WarpLanes are the threads of a warp.
func (p *AMDPlan) WarpLanes() int { return cmp.Or(p.Lanes, 32) }

// LL128Line are the bytes of data of an LL128 line and those of it all.
func (p *AMDPlan) LL128Line() (data, line int64) {
	line = 8 * int64(cmp.Or(p.LL128Words, 16))
	return line - 8, line
}

// LL128Grain are the bytes that a warp moves in one trip of LL128, eight words a thread
// (rcclProtoGrainSize, enqueue.cc:59).
func (p *AMDPlan) LL128Grain() int64 {
	data, line := p.LL128Line()
	return 64 * int64(p.WarpLanes()) / line * data
}

// Batch is how many transfers a batch of send/recv has.
func (p *AMDPlan) Batch(arch string, nodes int) int {
	if p.P2PBatch > 0 && (nodes <= 2 || !anyArch(p.BatchArchs, arch)) {
		return 1
	}
	return cmp.Or(p.P2PBatch, 8)
}

// amdPlan are those of all releases of RCCL that are known here.
func amdPlan() AMDPlan {
	return AMDPlan{Unrolls: []UnrollRule{{"gfx950", 1, 2}, {"gfx908", 2, 2}, {"gfx942", 2, 2}, {"", 4, 4}},
		OneSlices: []string{"gfx942", "gfx950"}, Lanes: 64, LL128Words: 8, AllWork: true, TreePasses: true,
		ChainHalves: true, P2PThreads: 256, P2PBatch: 2, PartsInTurn: true, P2PLLMost: 8192}
}

// NetChunkOf is the chunk of send/recv between nodes by architecture and ranks, and whether there is one.
func (c *AMDConnect) NetChunkOf(arch string, ranks int) (chunk int64, ok bool) {
	for _, k := range c.NetChunks {
		if strings.HasPrefix(arch, k.Arch) && ranks >= k.Ranks {
			chunk, ok = k.Bytes, true
		}
	}
	return chunk, ok
}

// CUs are the compute units of an architecture's whole GPU.
func (c *AMDConnect) CUs(arch string) int {
	n, _ := ofArch(c.Units, arch)
	return n
}

// ChunkRule is a chunk in bytes for an architecture from a number of ranks on.
type ChunkRule struct {
	Arch  string
	Ranks int
	Bytes int64
}

// amdConnect are those of all releases of RCCL that are known here.
func amdConnect() AMDConnect {
	new4 := []ArchCount{{"gfx942", 4}, {"gfx950", 4}, {"", 2}}
	return AMDConnect{
		Copies: []CopyRule{{N: 2}, {Arch: "gfx906", Alone: true, XGMI: true, N: 4},
			{Arch: "gfx908", N: 2, Spread: 4},
			{Alone: true, Chordal: true, N: 4}, {Arch: "gfx90a", Alone: true, N: 4},
			{Arch: "gfx90a", Spread: 4},
			{Arch: "gfx942", Ranks: 2, N: 16}, {Arch: "gfx942", Ranks: 4, N: 4},
			{Arch: "gfx942", APU: true, Between: true, N: 6}, {Arch: "gfx950", N: 4},
			{Arch: "gfx950", Alone: true, Ranks: 4, N: 8}, {Arch: "gfx950", Alone: true, Ranks: 2, N: 16}},
		MostCUs: []string{"gfx942", "gfx950"}, MostOld: 32, MostBetween: 64, MinChannels: 2, KeepRings: true,
		HalfTrees: []ArchCount{{"gfx942", 32}, {"gfx950", 32}, {"", 16}},
		PeerLinks: new4, AMDPeers: true,
		Units: []ArchCount{{"gfx906", 60}, {"gfx908", 120}, {"gfx90a", 104}, {"gfx942", 304},
			{"gfx950", 256}},
		NetChunks: []ChunkRule{{"gfx942", 0, 128 << 10}, {"gfx942", 64, 512 << 10}, {"gfx950", 0, 128 << 10},
			{"gfx950", 16, 256 << 10}, {"gfx950", 32, 512 << 10}},
	}
}

// LinkChannels are the channels of send/recv by link of XGMI of an architecture.
func (c *AMDConnect) LinkChannels(arch string) int {
	n, _ := ofArch(c.PeerLinks, arch)
	return n
}

// TreeHalf is the most searched channels that have both trees each, 0 for no bound.
func (c *AMDConnect) TreeHalf(arch string) int {
	n, _ := ofArch(c.HalfTrees, arch)
	return n
}
