package config

import (
	"fmt"
	"slices"

	"github.com/simccl/simccl/units"
)

// binding ties a variable to the field that it fills.
type binding struct {
	name string
	to   any // pointer to a field, of a type that fill knows
}

// bindings lists what fills which field.
func (c *Config) bindings() []binding {
	return slices.Concat(c.searchBindings(), c.connectBindings(), c.tuningBindings(), c.planBindings())
}

func (c *Config) searchBindings() []binding {
	p := &c.Search
	return []binding{
		{"NCCL_CROSS_NIC", &p.CrossNIC},
		{"NCCL_MNNVL_RAIL_PER_HOST", &p.RailPerHost},
		{"NCCL_MNNVL_SCATTER_NETS_ENABLE", &p.ScatterNets},
	}
}

func (c *Config) connectBindings() []binding {
	p := &c.Connect
	return []binding{
		{"NCCL_MIN_NRINGS", &p.MinNRings},
		{"NCCL_MAX_NRINGS", &p.MaxNRings},
		{"NCCL_MIN_NCHANNELS", &p.MinNChannels},
		{"NCCL_MAX_NCHANNELS", &p.MaxNChannels},
		{"NCCL_MIN_CTAS", &p.MinCTAs},
		{"NCCL_MAX_CTAS", &p.MaxCTAs},
		{"NCCL_WORK_ARGS_BYTES", &p.WorkArgsBytes},
		{"NCCL_NVLS_ENABLE", &p.NVLSEnable},
		{"NCCL_NVLS_NCHANNELS", &p.NVLSNChannels},
		{"NCCL_NVLS_CHUNKSIZE", &p.NVLSChunkSize},
		{"NCCL_COLLNET_NODE_THRESHOLD", &p.CollNetNodeThreshold},
		{"NCCL_BUFFSIZE", &p.BuffSize},
		{"NCCL_LL_BUFFSIZE", &p.LLBuffSize},
		{"NCCL_LL128_BUFFSIZE", &p.LL128BuffSize},
		{"NCCL_P2P_NET_CHUNKSIZE", &p.P2PNetChunkSize},
		{"NCCL_P2P_PCI_CHUNKSIZE", &p.P2PPCIChunkSize},
		{"NCCL_P2P_NVL_CHUNKSIZE", &p.P2PNVLChunkSize},
		{"NCCL_MIN_P2P_NCHANNELS", &p.MinP2PNChannels},
		{"NCCL_MAX_P2P_NCHANNELS", &p.MaxP2PNChannels},
		{"NCCL_NCHANNELS_PER_NET_PEER", &p.NChannelsPerNetPeer},
		{"NCCL_P2P_SCHEDULE_GROUP_SIZE", &p.P2PGroupSize},
		{"NCCL_CROSS_NIC", &p.CrossNIC},
		{"NCCL_PXN_DISABLE", &p.PXNDisable},
		{"NCCL_P2P_PXN_LEVEL", &p.P2PPXNLevel},
		{"NCCL_PXN_C2C", &p.PXNC2C},
		{"NCCL_NET_FORCE_FLUSH", &p.ForceFlush},
		{"NCCL_SHM_DISABLE", &p.SHMDisable},
		{"NCCL_NET_DISABLE_INTRA", &p.NetDisableIntra},
	}
}

func (c *Config) tuningBindings() []binding {
	p := &c.Tuning
	return []binding{
		{"NCCL_ALGO", &p.Algo},
		{"NCCL_PROTO", &p.Proto},
		{"NCCL_NTHREADS", &p.NThreads},
		{"NCCL_LL128_NTHREADS", &p.LL128NThreads},
		{"NCCL_PAT_ENABLE", &p.PATEnable},
		{"NCCL_NET_OVERHEAD", &p.NetOverheadNs},
		{"NCCL_LL128_C2C", &p.LL128C2C},
		{"NCCL_THREAD_THRESHOLDS", &p.ThreadThresholds},
	}
}

func (c *Config) planBindings() []binding {
	p := &c.Plan
	return []binding{
		{"NCCL_P2P_LL_THRESHOLD", &p.P2PLLThreshold},
		{"NCCL_CHUNK_SIZE", &p.ChunkSize},
		{"NCCL_P2P_SCHEDULE_GROUP_SIZE", &p.P2PGroupSize},
		{"NCCL_NVLSTREE_MAX_CHUNKSIZE", &p.NVLSTreeMaxChunk},
		{"NCCL_NET_SHARED_BUFFERS", &p.NetSharedBuffers},
	}
}

func (c *Config) fill(b binding) {
	n := c.Number(b.name)
	switch p := b.to.(type) {
	case *units.Opt[int64]:
		*p = n
	case *units.Opt[int]: // NCCL keeps these in an int
		*p = units.Opt[int]{Value: int(int32(n.Value)), Set: n.Set}
	case *units.Opt[bool]:
		*p = units.Opt[bool]{Value: n.Value != 0, Set: n.Set}
	case *bool:
		*p = n.Value != 0
	case *units.Opt[string]:
		*p = c.Text(b.name)
	default:
		panic(fmt.Sprintf("config: %s is bound to a %T", b.name, b.to))
	}
}
