package rules

import "github.com/simccl/simccl/coll"

// Peer is what the channels of send/recv over the network depend on.
type Peer struct {
	Ranks       int // of the communicator
	P2PChannels int // of the communicator
	NetsToFill  int // nearest nets that a GPU needs to use its link to the CPU fully
	// NetsBW is their bandwidth together, GB/s.
	NetsBW float32
	// ChannelBW is NCCL_P2P_PER_CHANNEL_NET_BW, GB/s.
	ChannelBW int
}

// NVLSShape is what the channels and chunks of NVLS depend on.
type NVLSShape struct {
	MinSM, Nodes int
	PerNode      int     // ranks of the smallest node
	NetBW        float32 // GB/s of the slowest net that a rank uses
	TypeInter    Level   // of the NVLS graph
}

// NVLSRegistration is what the channels of NVLS over registered buffers depend on.
type NVLSRegistration struct {
	Func                coll.Func
	MinSM, Nodes, Heads int
	BusBW               float64 // GB/s of ReduceScatter by NVLS in the cost model
	NetBW               float32 // GB/s of the slowest net that a rank uses
}

// NVLSTuned are channels and chunks of NVLS in bytes; 0 where nothing is changed.
type NVLSTuned struct{ Channels, Chunk, TreeChunk int64 }

// Trims says which elements a rank leaves out of its tree where none in them is its GPU or
// a net of the plugin's (ncclTopoTrimXmlRec, graph/xml.cc).
type Trims uint8

// Trims, newest first: PCI devices, CPUs, NICs and nets; PCI devices and CPUs; all that
// have nothing in them.
const (
	TrimNICs Trims = iota
	TrimBranches
	TrimEmpty
)
