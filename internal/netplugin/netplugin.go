// Package netplugin says on which network a machine is, and what the network plugin of
// that network, or the settings of its guide, change in NCCL's decisions.
//
// What it must not know: times, commands, files of users.
package netplugin

import (
	"strings"

	"github.com/simccl/simccl/topo"
)

// Plugin is what makes NCCL use a network, and the variables that it sets where a user
// sets none.
type Plugin struct {
	Name     string
	Settings []string // NAME=VALUE
	// Source is where they are published.
	Source string
}

// chunks are what aws-ofi-nccl sets on all instances with GPUDirect RDMA since 1.14.
var chunks = []string{"NCCL_BUFFSIZE=8388608", "NCCL_P2P_NET_CHUNKSIZE=524288"}

// nvls are what it sets besides where GPUs have NVLS: NCCL 2.19.3 made the chunks of
// NVLSTree smaller, which costs on EFA; and no flush, of Hopper and later.
var nvls = append(chunks[:2:2], "NCCL_NVLSTREE_MAX_CHUNKSIZE=524288", "NCCL_NVLS_CHUNKSIZE=524288", "NCCL_NET_FORCE_FLUSH=0")

const efaSource = "aws-ofi-nccl, src/platform-aws.cpp"

// plugins are by network class.
var plugins = map[string]*Plugin{
	// EFA delivers the bytes of send and receive in no order: LL and LL128 are off.
	"efa":    {"aws-ofi-nccl", []string{"NCCL_PROTO=simple"}, efaSource},
	"efa-v1": {"aws-ofi-nccl", append(chunks[:2:2], "NCCL_PROTO=simple"), efaSource},
	"efa-v2": {"aws-ofi-nccl", nvls, efaSource},
	"efa-v3": {"aws-ofi-nccl", append(nvls[:5:5], "NCCL_NETDEVS_POLICY=max:1"), efaSource},
	"efa-v4": {"aws-ofi-nccl", nvls, efaSource},
	"tcpxo": {"nccl-env-profile.sh of FasTrak", []string{"NCCL_CROSS_NIC=0", "NCCL_ALGO=Ring,Tree", "NCCL_PROTO=Simple", "NCCL_MIN_NCHANNELS=4", "NCCL_P2P_NET_CHUNKSIZE=524288",
		"NCCL_P2P_PCI_CHUNKSIZE=524288", "NCCL_P2P_NVL_CHUNKSIZE=1048576", "NCCL_BUFFSIZE=8388608", "NCCL_NET_GDR_LEVEL=PIX", "NCCL_NVLS_ENABLE=0"},
		"Google Cloud, maximize GPU network bandwidth, A3 Mega"},
	"tcpx": {"settings of GPUDirect-TCPX's guide", []string{"NCCL_CROSS_NIC=0", "NCCL_ALGO=Ring", "NCCL_PROTO=Simple", "NCCL_P2P_NET_CHUNKSIZE=524288", "NCCL_P2P_PCI_CHUNKSIZE=524288",
		"NCCL_P2P_NVL_CHUNKSIZE=1048576", "NCCL_BUFFSIZE=4194304", "NCCL_NET_GDR_LEVEL=PIX", "NCCL_P2P_PXN_LEVEL=0"},
		"Google Cloud, maximize GPU network bandwidth, A3 High"},
}

// Of is the plugin of a network class; nil where NCCL's own transports do, or the
// plugin sets nothing.
func Of(class string) *Plugin { return plugins[class] }

// PCI vendors of NICs that NCCL reaches by a plugin.
const (
	amazon = 0x1d0f
	google = 0x1ae0
	cray   = 0x17db
)

// quick is the latency that aws-ofi-nccl reports of the third generation of EFA and
// later, in us; earlier ones have 75.
const quick = 35

// Class is the network class that a node's NICs say they are of; empty where they do
// not: NICs of NVIDIA's are for InfiniBand as for RoCE. rdma-core calls an EFA
// card rdmapN and a port of RoCE rocepN.
func Class(s *topo.System) string {
	nets := s.Of(topo.NET)
	for _, id := range nets {
		n := s.Nodes[id].Net
		if n.Sockets {
			return ""
		}
		has := func(prefixes ...string) bool {
			for _, p := range prefixes {
				if strings.HasPrefix(n.Name, p) {
					return true
				}
			}
			return false
		}
		switch {
		case n.Vendor == amazon || has("rdmap", "efa"):
			return efa(SM(s), n.LatencyUs)
		case n.Vendor == cray || has("cxi", "hsn"):
			return "slingshot"
		case n.Vendor == google && n.GDR && len(nets) < len(s.Of(topo.GPU)):
			return "tcpx"
		case n.Vendor == google && n.GDR:
			return "tcpxo"
		case has("roce"):
			return "roce"
		}
	}
	return ""
}

// efa is the generation of EFA beside GPUs of a compute capability.
func efa(sm int, latency float32) string {
	switch {
	case sm >= 100:
		return "efa-v4"
	case sm < 90:
		return "efa-v1"
	case latency > 0 && latency <= quick:
		return "efa-v3"
	}
	return "efa-v2"
}

// SM is the greatest compute capability of a node's GPUs.
func SM(s *topo.System) (most int) {
	for _, id := range s.Of(topo.GPU) {
		most = max(most, s.Nodes[id].GPU.SM)
	}
	return most
}
