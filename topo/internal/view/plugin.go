package view

import (
	"strings"

	"github.com/simccl/simccl/internal/cnum"
	"github.com/simccl/simccl/topo/decl"
)

// Plugin is the network plugin of NCCL that reports a net.
type Plugin int8

// Verbs is NCCL's own plugin for InfiniBand and RoCE, Sockets its own for TCP; the
// others are separate libraries.
const (
	Verbs     Plugin = iota
	Sockets          // net_socket.cc
	EFA              // aws-ofi-nccl
	Slingshot        // aws-ofi-nccl over CXI
	Google           // GPUDirect-TCPX and FasTrak
	Unknown          // a net that neither of NCCL's own reports
)

// PCI vendors of cards that NCCL reaches by a library of their own.
const (
	amazon = 0x1d0f
	google = 0x1ae0
	cray   = 0x17db
)

// PluginOf returns the net plugin that reports a net, derived from the net's attributes and its PCI device. A
// net of no other plugin is one of NCCL's IB plugin, whatever its name: that plugin uses every device of
// ibv_get_device_list whose link layer is InfiniBand or Ethernet (net_ib.cc:710). rdma-core names devices of
// another link layer rdma…, as all EFA cards are.
func PluginOf(n *decl.Element) Plugin {
	name, _ := n.Get("name")
	switch vendor := vendorAbove(n); {
	case n.Int("port", -1) == 0 && n.Int("gdr", -1) == 0 && n.Int("maxconn", -1) == socketMaxConn:
		return Sockets // net_socket.cc:117
	case vendor == amazon || strings.HasPrefix(name, "rdma") || strings.HasPrefix(name, "efa"):
		return EFA
	case vendor == cray || numbered(name, "cxi") || numbered(name, "hsn"):
		return Slingshot
	case vendor == google:
		return Google
	case n.Int("port", 1) < 1: // ports of InfiniBand count from 1
		return Unknown
	case vendor == 0 && reportsLatency(n), isInterface(name):
		return Unknown
	}
	return Verbs
}

// vendorAbove returns the vendor of the PCI device that a net is on, 0 where none is named.
func vendorAbove(n *decl.Element) int {
	for up := n.Parent(); up != nil; up = up.Parent() {
		if up.Name == "pci" {
			return up.Int("vendor", 0)
		}
	}
	return 0
}

// reportsLatency reports whether a net has a latency, which NCCL's own plugins leave at
// 0 (net_ib.cc:895, net_socket.cc:111).
func reportsLatency(n *decl.Element) bool {
	s, _ := n.Get("latency")
	return cnum.Float(s) > 0
}

// numbered reports whether a name is a word and a number.
func numbered(name, word string) bool {
	digits, ok := strings.CutPrefix(name, word)
	return ok && digits != "" && strings.Trim(digits, "0123456789") == ""
}

// isInterface reports whether a name is one that Linux gives Ethernet interfaces:
// eth0, enp6s0, eno1. No driver names an RDMA device so.
func isInterface(name string) bool {
	if numbered(name, "eth") || name == "lo" {
		return true
	}
	rest, ok := strings.CutPrefix(name, "en")
	return ok && len(rest) > 1 && strings.IndexByte("opsxP", rest[0]) >= 0 && rest[1] >= '0' && rest[1] <= '9'
}

// maybeSockets reports whether the socket plugin could report a net: no other plugin does, and its attributes
// do not contradict those that the socket plugin sets. NCCL removes nets that the plugin in use does not
// report (plugin/net.cc:360, xml.cc:957).
func maybeSockets(n *decl.Element) bool {
	switch PluginOf(n) {
	case Sockets:
		return true
	case Unknown:
		return n.Int("port", 0) == 0 && n.Int("gdr", 0) == 0 && n.Int("maxconn", socketMaxConn) ==
			socketMaxConn
	}
	return false
}
