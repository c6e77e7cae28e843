// Package connect joins the graphs of all hosts into channels over all ranks:
// rings, double binary trees, NVLS heads, point-to-point channels, and the
// transport and NIC of every connection (NCCL 2.28.9 graph/connect.cc,
// graph/trees.cc, transport/*). It knows no bandwidth tables.
package connect

import "github.com/simccl/simccl/units"

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
}

// RingLinks are a rank's neighbours in a channel's ring.
type RingLinks struct{ Prev, Next int32 }

// TreeLinks are a rank's neighbours in a channel's tree; -1 where none.
type TreeLinks struct {
	Up   int32
	Down [3]int32
}

// Channel is one parallel ring and tree.
type Channel struct {
	Ring []RingLinks // by rank
	Tree []TreeLinks // by rank
	// RingIndex[rank] is the position of the rank in ring order seen from the
	// rank itself; Order lists the ring starting at rank 0.
	Order []int32
}

// NVLSChannel is one NVLS channel of a node, and its tree between nodes.
type NVLSChannel struct {
	Heads    []int32 // head ranks of the node, by head index
	TreeUp   []int32 // by rank
	TreeDown [][3]int32
}

// Comm is a communicator's static structure: what every rank agreed on.
type Comm struct {
	NRanks, NNodes int
	NodeOf         []int32   // rank → NCCL node
	LocalRank      []int32   // rank → index on its node
	NodeRanks      [][]int32 // node → ranks
	HostOf         []int32   // rank → host in the cluster (differs from NodeOf where NCCL splits a host)

	NChannels     int // comm->nChannels
	CollChannels  int // comm->collChannels
	NVLSChannels  int
	NVLSChunkSize units.Bytes
	Channels      []Channel
	NVLS          []NVLSChannel

	P2PChannels        int // p2pnChannels
	P2PChannelsPerPeer int
	P2PChunkSize       units.Bytes
	BuffSizes          [3]units.Bytes // LL, LL128, Simple
	IsAllNVLink        bool

	// RouteOf gives the connection from src to dst on a channel; graph routes
	// (ring, tree) may use other NICs than send/recv. Set by comm.
	RouteOf func(src, dst int32, channel int, kind RouteKind) Route
}

// RouteKind tells what a connection is for.
type RouteKind uint8

// Route kinds.
const (
	RingRoute RouteKind = iota
	TreeRoute
	P2PRoute
	NVLSRoute
)
