package config

import (
	"fmt"
	"slices"
	"strings"

	"github.com/simccl/simccl/topo"
	"github.com/simccl/simccl/units"
)

// binding ties a variable to the field that it fills.
type binding struct {
	name string
	to   any // pointer to a field, or a function of the number or the text, of a type that fill knows
}

// bindings lists what fills which field.
func (c *Config) bindings() []binding {
	return slices.Concat(c.topoBindings(), c.searchBindings(), c.connectBindings(), c.tuningBindings(),
		c.planBindings(), c.registerBindings(),
		c.ibBindings(), c.socketBindings(), c.rcclBindings())
}

// noHCA is a NCCL_IB_HCA that matches no device.
const noHCA = "=no device"

// topoBindings: several of these count only as exactly 1 or 0.
func (c *Config) topoBindings() []binding {
	p := &c.Topo
	return []binding{
		{"NCCL_P2P_LEVEL", &p.P2PLevel},
		{"NCCL_P2P_DISABLE", func(n int64) { // graph/paths.cc:230
			if n == 1 {
				p.P2PLevel = units.Some(topo.PathLOC)
			}
		}},
		{"NCCL_P2P_USE_CUDA_MEMCPY", &p.P2PMemcpy},
		{"NCCL_SHM_DISABLE", func(n int64) { p.SHMDisable = n == 1 }},            // transport/shm.cc:79
		{"NCCL_NET_DISABLE_INTRA", func(n int64) { p.NetDisableIntra = n == 1 }}, // graph/paths.cc:537
		{"NCCL_NVB_DISABLE", &p.NVBDisable},
		{"NCCL_PXN_DISABLE", func(n int64) { p.PXNDisable, p.PXNAuto = n == 1, false }}, // graph/paths.cc:721
		{"NCCL_PXN_C2C", &p.PXNC2C},
		{"NCCL_NET_GDR_LEVEL", &p.GDRLevel},
		{"NCCL_NET_GDR_READ", func(n int64) {
			p.GDRRead = units.Opt[int]{Value: int(int32(n)), Set: int32(n) >= 0}
		}},
		{"NCCL_NET_GDR_C2C", &p.GDRC2C},
		{"NCCL_NETDEVS_POLICY", &p.NetDevs},
		{"NCCL_NET_MERGE_LEVEL", &p.MergeLevel},
		{"NCCL_NET_FORCE_MERGE", &p.ForceMerge},
		{"NCCL_IB_MERGE_NICS", func(n int64) { p.MergeNICsDisabled = n == 0 }}, // transport/net_ib.cc:599
		{"NCCL_IB_HCA", &p.IBHCA},
		{"SIMCCL_NET_RAIL", func(n int64) { p.NetRail = units.Some(int(max(n, -1))) }},
		{"NCCL_IB_DISABLE", func(n int64) { // transport/net_ib.cc:677
			if n != 0 {
				p.IBHCA = noHCA
			}
		}},
		{"NCCL_NET", func(name string) { // plugin/net.cc:150
			p.SocketsOnly = strings.EqualFold(name, "Socket")
		}},
		{"NCCL_MNNVL_ENABLE", func(n int64) { p.SplitHosts = n == 0 }},                 // init.cc:914
		{"NCCL_CUMEM_ENABLE", func(n int64) { p.SplitHosts = p.SplitHosts || n == 0 }}, // mnnvl.cc:15
	}
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
		{"NCCL_P2P_PER_CHANNEL_NET_BW", &p.P2PPerChannelNetBW},
		{"NCCL_CROSS_NIC", &p.CrossNIC},
		{"NCCL_P2P_PXN_LEVEL", &p.P2PPXNLevel},
		{"NCCL_PXN_C2C", &p.PXNC2C},
		{"NCCL_NET_FORCE_FLUSH", &p.ForceFlush},
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
		{"NCCL_ALLOC_P2P_NET_LL_BUFFERS", &p.AllocP2PNetLL},
	}
}

func (c *Config) registerBindings() []binding {
	p := &c.Registration
	return []binding{
		{"NCCL_WIN_ENABLE", func(n int64) { p.WindowsOff = p.WindowsOff || n == 0 }},
		{"NCCL_CUMEM_ENABLE", func(n int64) { p.WindowsOff = p.WindowsOff || n == 0 }},
		{"NCCL_LOCAL_REGISTER", func(n int64) { p.LocalOff = n == 0 }},
		{"NCCL_GRAPH_REGISTER", func(n int64) { p.GraphOff = n == 0 }},
		{"NCCL_CTA_POLICY", func(n int64) { p.SetPolicy(n) }},
		{"NCCL_SYM_KERNEL", &p.Sym.Kernel},
		{"NCCL_SYM_CTAS", &p.Sym.CTAs},
		{"NCCL_SYM_TMA_ENABLE", &p.Sym.TMA},
		{"NCCL_SYM_GIN_KERNELS_ENABLE", func(n int64) { p.Sym.GINOff = p.Sym.GINOff || n == 0 }},
		{"NCCL_GIN_ENABLE", func(n int64) { p.Sym.GINOff = p.Sym.GINOff || n == 0 }},
		{"SIMCCL_GIN", &p.GIN},
		{"NCCL_SYM_CE_THRESHOLD", &p.Sym.CopyGather},
	}
}

// fill leaves a field as it is where its variable is unset.
func (c *Config) fill(b binding) {
	n, text := c.Number(b.name), c.Text(b.name)
	switch p := b.to.(type) {
	case *units.Opt[int64]:
		*p = n
	case *units.Opt[int]: // NCCL keeps these in an int
		*p = units.Opt[int]{Value: int(int32(n.Value)), Set: n.Set}
	case *units.Opt[bool]:
		*p = units.Opt[bool]{Value: n.Value != 0, Set: n.Set}
	case *bool:
		if n.Set {
			*p = n.Value != 0
		}
	case func(int64):
		if n.Set {
			p(n.Value)
		}
	case func(string):
		if text.Set {
			p(text.Value)
		}
	case *units.Opt[string]:
		*p = text
	case *string:
		*p = text.Value
	case *units.Opt[topo.PathKind]:
		switch {
		case text.Set && b.name == "NCCL_NET_MERGE_LEVEL":
			*p = units.Some(topo.ParseMergeLevel(text.Value))
		case text.Set:
			*p = topo.ParseLevel(text.Value)
		}
	case *topo.NetDevsPolicy:
		if text.Set {
			*p, _ = topo.ParseNetDevsPolicy(text.Value)
		}
	default:
		panic(fmt.Sprintf("config: %s is bound to a %T", b.name, b.to))
	}
}
