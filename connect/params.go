package connect

import (
	"fmt"

	"github.com/simccl/simccl/rules"
	"github.com/simccl/simccl/units"
)

// Params are the settings that change channels and connections; unset means
// NCCL's default. The config room fills them.
type Params struct {
	Rules *rules.Ruleset // the release's; Join refuses nil

	MinNRings    units.Opt[int64] // NCCL_MIN_NRINGS: old name of NCCL_MIN_NCHANNELS
	MaxNRings    units.Opt[int64] // NCCL_MAX_NRINGS: old name of NCCL_MAX_NCHANNELS
	MinNChannels units.Opt[int64] // NCCL_MIN_NCHANNELS: channels are copied up to this many
	MaxNChannels units.Opt[int64] // NCCL_MAX_NCHANNELS: channels are cut to this many
	// NCCL_MIN_CTAS: as NCCL_MIN_NCHANNELS, through the configuration (default 1)
	MinCTAs units.Opt[int64]
	// NCCL_MAX_CTAS: as NCCL_MAX_NCHANNELS, through the configuration (default 64)
	MaxCTAs units.Opt[int64]
	// NCCL_WORK_ARGS_BYTES: bytes of kernel arguments, which bound the channels
	WorkArgsBytes units.Opt[int64]

	// NCCL_NVLS_ENABLE: 0 off, 1 on, 2 where NVLink multicast is there (default 2)
	NVLSEnable    units.Opt[int64]
	NVLSNChannels units.Opt[int64] // NCCL_NVLS_NCHANNELS: channels of NVLS (default by compute capability)
	NVLSChunkSize units.Opt[int64] // NCCL_NVLS_CHUNKSIZE: bytes of one NVLS step (default 128 KiB)

	// CollNet is asked for and its graphs were searched (NCCL_COLLNET_ENABLE)
	CollNet bool
	// NCCL_COLLNET_NODE_THRESHOLD: CollNet needs this many nodes (default 2)
	CollNetNodeThreshold units.Opt[int64]

	BuffSize      units.Opt[int64] // NCCL_BUFFSIZE: bytes of a Simple buffer (default 4 MiB)
	LLBuffSize    units.Opt[int64] // NCCL_LL_BUFFSIZE: bytes of an LL buffer
	LL128BuffSize units.Opt[int64] // NCCL_LL128_BUFFSIZE: bytes of an LL128 buffer

	// NCCL_P2P_NET_CHUNKSIZE: send/recv chunk with several nodes (default 128 KiB)
	P2PNetChunkSize units.Opt[int64]
	P2PPCIChunkSize units.Opt[int64] // NCCL_P2P_PCI_CHUNKSIZE: send/recv chunk on one node (default 128 KiB)
	// NCCL_P2P_NVL_CHUNKSIZE: the same where all GPUs share NVLink (default 512 KiB)
	P2PNVLChunkSize units.Opt[int64]

	// NCCL_MIN_P2P_NCHANNELS: at least this many send/recv channels (default 1)
	MinP2PNChannels units.Opt[int64]
	// NCCL_MAX_P2P_NCHANNELS: at most this many send/recv channels (default 64)
	MaxP2PNChannels units.Opt[int64]
	// NCCL_NCHANNELS_PER_NET_PEER: send/recv channels per peer over the network
	NChannelsPerNetPeer units.Opt[int64]
	// NCCL_P2P_PER_CHANNEL_NET_BW: GB/s of a net for which send/recv gets a channel (default 14)
	P2PPerChannelNetBW units.Opt[int64]
	// NCCL_P2P_SCHEDULE_GROUP_SIZE: ranks scheduled together in send/recv (default 8)
	P2PGroupSize units.Opt[int64]

	CrossNIC units.Opt[int64] // NCCL_CROSS_NIC: 0 makes send/recv use the peer's rail (default 2)
	// NCCL_P2P_PXN_LEVEL: 0 no PXN for send/recv, 1 where needed, 2 always (default 2)
	P2PPXNLevel units.Opt[int64]
	PXNC2C      units.Opt[int64] // NCCL_PXN_C2C: 0 keeps PXN off C2C paths (default rules.Topo.PXNC2C)
	ForceFlush  units.Opt[int64] // NCCL_NET_FORCE_FLUSH: 1 flushes received data on every GPU (default 0)

	// Top is the communicator whose resources this one shares (ncclConfig_t.splitShare):
	// it has no more channels than that one, nor larger chunks of sends; the zero Top is
	// none.
	Top Top

	// Cancelled is polled by long loops: nil to continue, else the reason to stop,
	// as a context's Err. It decides nothing. Nil: never.
	Cancelled func() error
}

// Top is what bounds a communicator that shares another's resources: its channels, those
// of sends and receives, and the bytes of their chunks (connect.cc:487, paths.cc:862,
// init.cc:723).
type Top struct {
	Channels, P2PChannels int
	P2PChunkSize          units.Bytes
}

// TopOf is what a communicator bounds those by that share its resources.
func TopOf(c *Layout) Top { return Top{c.NChannels, c.P2PChannels, c.P2PChunkSize} }

// atMost is n, or a bound that is set.
func atMost[T int | units.Bytes](n, bound T) T {
	if bound > 0 {
		return min(n, bound)
	}
	return n
}

// poll checks whether to continue.
func (p *Params) poll() error {
	if p.Cancelled == nil {
		return nil
	}
	if err := p.Cancelled(); err != nil {
		return fmt.Errorf("connect the ranks: %w", err)
	}
	return nil
}

// maxChannels is the release's bound on channels.
func (p *Params) maxChannels() int64 { return int64(p.Rules.MaxChannels) }

// ctas returns the configuration's bounds on channels (init.cc:1661-1773).
func (p *Params) ctas() (lo, hi int64) {
	lo, hi = 1, p.maxChannels()
	if v := whole(p.MinCTAs, 0); v > 0 {
		lo = min(v, p.maxChannels())
	}
	if v := whole(p.MaxCTAs, 0); v > 0 {
		hi = min(v, p.maxChannels())
	}
	return min(lo, hi), hi
}

// whole is a setting as NCCL keeps it, in 32 bits.
func whole(o units.Opt[int64], def int64) int64 { return int64(int32(o.Or(def))) }

// minChannels is the user's lower bound on channels, 0 without one
// (connect.cc:328).
func (p *Params) minChannels() int64 {
	n := whole(p.MinNChannels, whole(p.MinNRings, 0))
	return max(min(n, p.maxChannels()), 0)
}

// maxUserChannels is the user's upper bound on channels (connect.cc:343).
func (p *Params) maxUserChannels() int64 {
	n := whole(p.MaxNChannels, whole(p.MaxNRings, p.maxChannels()))
	return max(min(n, p.argsChannels(), p.maxChannels()), 1)
}

// argsChannels bounds the channels by the bytes of kernel arguments
// (device.h:485): 32 bytes of header, 16 per channel. NCCL computes in size_t,
// so too few bytes wrap around and bound nothing.
func (p *Params) argsChannels() int64 {
	if !p.WorkArgsBytes.Set {
		return p.maxChannels()
	}
	n := (uint64(p.WorkArgsBytes.Value) - 32) / 16
	return int64(min(n, uint64(p.maxChannels())))
}
