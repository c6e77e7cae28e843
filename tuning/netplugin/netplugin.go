// Package netplugin says on which network a machine is, and what the network plugin of
// that network, or the settings of its guide, change in NCCL's decisions.
//
// What it must not know: times, commands, files of users.
package netplugin

import (
	"slices"
	"strings"

	"github.com/simccl/simccl/rules"
	"github.com/simccl/simccl/topo"
)

// Plugin is what makes NCCL use a network, and the variables that it sets where a user
// sets none.
type Plugin struct {
	Name     string
	settings []string // NAME=VALUE
	// early are those of the plugin at the time of NCCL before 2.27.5, June 2025.
	early []string
	// Source is where they are published.
	Source string
}

// Settings are those of the plugin at the time of a release.
func (p *Plugin) Settings(r rules.Release) []string {
	if r.Compare(later) < 0 {
		return p.early
	}
	return p.settings
}

// later is the first release beside which aws-ofi-nccl 1.16 is.
var later = rules.Release{Major: 2, Minor: 27, Patch: 5}

// chunks are what aws-ofi-nccl sets on all instances with GPUDirect RDMA since 1.16.
var chunks = []string{"NCCL_BUFFSIZE=8388608", "NCCL_P2P_NET_CHUNKSIZE=524288"}

// nvls are what it sets besides where GPUs have NVLS: NCCL 2.19.3 made the chunks of
// NVLSTree smaller, which costs on EFA. Before 1.16 these were all.
var nvls = []string{"NCCL_NVLSTREE_MAX_CHUNKSIZE=524288", "NCCL_NVLS_CHUNKSIZE=524288",
	"NCCL_NET_FORCE_FLUSH=0"}

// simple leaves LL and LL128 off: EFA delivers the bytes of send and receive in no
// order.
var simple = []string{"NCCL_PROTO=simple"}

// Settings of Google Cloud's guides.
var (
	fastrak = []string{"NCCL_CROSS_NIC=0", "NCCL_ALGO=Ring,Tree", "NCCL_PROTO=Simple", "NCCL_MIN_NCHANNELS=4",
		"NCCL_P2P_NET_CHUNKSIZE=524288",
		"NCCL_P2P_PCI_CHUNKSIZE=524288", "NCCL_P2P_NVL_CHUNKSIZE=1048576", "NCCL_BUFFSIZE=8388608",
		"NCCL_NET_GDR_LEVEL=PIX", "NCCL_NVLS_ENABLE=0"}
	tcpx = []string{"NCCL_CROSS_NIC=0", "NCCL_ALGO=Ring", "NCCL_PROTO=Simple",
		"NCCL_P2P_NET_CHUNKSIZE=524288", "NCCL_P2P_PCI_CHUNKSIZE=524288",
		"NCCL_P2P_NVL_CHUNKSIZE=1048576", "NCCL_BUFFSIZE=4194304", "NCCL_NET_GDR_LEVEL=PIX",
		"NCCL_P2P_PXN_LEVEL=0"}
)

const (
	efaName   = "aws-ofi-nccl"
	efaSource = "aws-ofi-nccl, src/platform-aws.cpp"
	guide     = "Google Cloud, maximize GPU network bandwidth"
)

// plugins are by network class; efa is that of no known generation.
var plugins = map[string]*Plugin{
	"efa":    {efaName, simple, simple, efaSource},
	"efa-v1": {efaName, slices.Concat(simple, chunks), simple, efaSource},
	"efa-v2": {efaName, slices.Concat(chunks, nvls), nvls, efaSource},
	"efa-v3": {efaName, slices.Concat(chunks, nvls, []string{"NCCL_NETDEVS_POLICY=max:1"}), nvls, efaSource},
	"efa-v4": {efaName, slices.Concat(chunks, nvls), nvls, efaSource},
	"tcpxo":  {"nccl-env-profile.sh of FasTrak", fastrak, fastrak, guide + ", A3 Mega"},
	"tcpx":   {"GPUDirect-TCPX's guide", tcpx, tcpx, guide + ", A3 High"},
}

// Of is the plugin of a network class; nil where NCCL's own transports do, or the
// plugin sets nothing.
func Of(class string) *Plugin { return plugins[class] }

// quick is the latency that aws-ofi-nccl reports of the third generation of EFA and
// later, in us; earlier ones have 75.
const quick = 35

// Class is the network class that a node's NICs say they are of; empty where they do
// not: NICs of NVIDIA's are for InfiniBand as for RoCE. rdma-core calls a port of
// RoCE rocepN.
func Class(s *topo.System) string {
	nets := s.Of(topo.NET)
	for _, id := range nets {
		switch n := s.Nodes[id].Net; {
		case n.Plugin == topo.PluginSockets:
			return ""
		case n.Plugin == topo.PluginEFA:
			return efa(SM(s), n.LatencyUs)
		case n.Plugin == topo.PluginSlingshot:
			return "slingshot"
		case n.Plugin == topo.PluginGoogle && n.GDR && len(nets) < len(s.Of(topo.GPU)):
			return "tcpx"
		case n.Plugin == topo.PluginGoogle && n.GDR:
			return "tcpxo"
		case n.Plugin == topo.PluginVerbs && strings.HasPrefix(n.Name, "roce"):
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
