package connect

import (
	"github.com/simccl/simccl/rules"
	"github.com/simccl/simccl/search"
	"github.com/simccl/simccl/topo"
	"github.com/simccl/simccl/units"
)

// Transport is how two ranks reach each other.
type Transport uint8

// Transports, NCCL's names.
const (
	P2P Transport = iota // NVLink or PCIe peer memory
	SHM                  // host shared memory
	NET                  // NIC
)

// Route says how data gets from Src to Dst on a channel.
type Route struct {
	Transport Transport
	// SrcNet, DstNet are indices into the NET nodes of the hosts' Systems
	// (topo.System.Of(NET)), -1 unless Transport is NET.
	SrcNet, DstNet int32
	// SrcProxy, DstProxy are the ranks whose proxy threads post: the rank
	// itself, or with PXN another of its host.
	SrcProxy, DstProxy int32
	// SrcGDR, DstGDR: the NIC reads from / writes to GPU memory directly.
	SrcGDR, DstGDR bool
	// Flush: every received step is followed by a read through the NIC that
	// makes the data visible to the GPU.
	Flush bool
}

// RingLinks are a rank's neighbours in a channel's ring.
type RingLinks struct{ Prev, Next int32 }

// TreeLinks are a rank's neighbours in a channel's tree; -1 where none.
type TreeLinks struct {
	Up   int32
	Down [3]int32
}

// Channel is one parallel ring and tree.
//
// Channels that NCCL makes by copying share their slices: compare the address
// of Ring[0] to see it.
type Channel struct {
	Ring []RingLinks // by rank
	Tree []TreeLinks // by rank
	// Order lists the ring starting at rank 0; Pos[rank] is the rank's place
	// in it.
	Order []int32
	Pos   []int32
}

// NVLSChannel is one NVLS channel: who reduces through the switch for which
// part of the data, and the tree between nodes. Channels of equal parity share
// these slices.
type NVLSChannel struct {
	Heads     []int32 // head ranks of node 0 by head index; see Comm.NVLSHeads for all nodes
	HeadIndex []int32 // by rank: the head that it is, -1 where none
	TreeUp    []int32 // by rank: the head above it in another node, -1 where none
	// TreeDown is by rank, in NCCL's order: with several nodes first the rank's own
	// switch group (NRanks+1+HeadIndex), then the heads below it; -1 where none.
	TreeDown [][3]int32
}

// Layout is a communicator's static structure: what every rank agreed on.
type Layout struct {
	// Rules are those that the communicator was made by, and that plans of its
	// operations and their runs follow.
	Rules *rules.Ruleset

	NRanks, NNodes int
	NodeOf         []int32   // rank → NCCL node
	LocalRank      []int32   // rank → index on its node
	NodeRanks      [][]int32 // node → ranks
	HostOf         []int32   // rank → host in the cluster (differs from NodeOf where NCCL splits a host)

	NChannels     int // comm->nChannels
	CollChannels  int // comm->collChannels
	NVLSChannels  int // of rank 0
	NVLSChunkSize units.Bytes
	// NVLSTreeChunk bounds chunks of NVLSTree; 0 where only the rules of plans do.
	NVLSTreeChunk units.Bytes
	Channels      []Channel
	// Joined are the channels before any was copied or cut: those of the search
	// with the first tree, then the same with the second.
	Joined []Channel
	// NVLS are the NVLS channels; of them rank r sets up the first NVLSCount[r].
	NVLS      []NVLSChannel
	NVLSCount []int

	P2PChannels        int   // p2pnChannels
	P2PChannelsPerPeer int   // p2pnChannelsPerPeer of rank 0
	PeerChannels       []int // p2pnChannelsPerPeer of the ranks of each node
	P2PChunkSize       units.Bytes
	BuffSizes          [3]units.Bytes // LL, LL128, Simple
	IsAllNVLink        bool

	// Domains are the NCCL nodes, NodeOf's index.
	Domains []Domain
	// Final are the graphs that all ranks agreed on: rank 0's, with the
	// minimum of channels and speeds and the maximum of types over all ranks
	// (init.cc:1170).
	Final search.Set
	// TreePattern is the numerically largest tree pattern of any rank
	// (comm->maxTreePattern).
	TreePattern search.Pattern

	MinLocalRanks, MaxLocalRanks int
	MinSM, MaxSM                 int
	CPUArch                      topo.CPUArch
	CPUVendor                    topo.CPUVendor
	TreeDepth                    int  // NCCL's estimate of every tree's depth
	NVLSSupport                  bool // comm->nvlsSupport after all ranks agreed
	// NVLSHeads[h][n] is the rank of node n that is head h.
	NVLSHeads [][]int32
	CollNet   CollNet

	// P2PGroupSize is how many neighbouring ranks of a node NCCL schedules
	// together in send/recv rounds.
	P2PGroupSize int
	// RouteOf gives the connection from src to dst on a channel; graph routes
	// (ring, tree; PAT uses the tree's) may use other NICs than send/recv. Of a
	// CollNetRoute one end is Network: its net and proxy are -1. It may be
	// called from several goroutines.
	RouteOf func(src, dst int32, channel int, kind RouteKind) Route

	searched []int32 // channel → channel of the search that it is a copy of
}

// Arch is the architecture of rank 0's GPU, empty where it is NVIDIA's or there is no System.
func (c *Layout) Arch() string {
	if len(c.Domains) == 0 || c.Domains[0].System == nil {
		return ""
	}
	return c.Domains[0].System.Arch()
}

// RouteKind reports what a connection is for.
type RouteKind uint8

// Route kinds.
const (
	RingRoute RouteKind = iota
	TreeRoute
	P2PRoute
	NVLSRoute
	NVLSTreeRoute      // between heads of nodes: NCCL sets it up with the NVLS graph (transport/nvls.cc:214)
	CollNetRoute       // between a head and the network that reduces: one end is Network
	CollNetDirectRoute // between the ranks and the heads of a node
	CollNetChainRoute  // along the chain of a node
)

// Network represents the network that reduces (CollNet) where a rank belongs,
// as a connection's far end. NCCL uses the number of ranks for it.
const Network int32 = -2
