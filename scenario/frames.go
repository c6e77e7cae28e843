package scenario

import (
	"fmt"

	"github.com/simccl/simccl/exec"
	"github.com/simccl/simccl/sim/gpu"
	"github.com/simccl/simccl/topo"
	"github.com/simccl/simccl/topo/fabric"
	"github.com/simccl/simccl/tuning/netplugin"
)

// sockets is the kind of networks over which NCCL's own plugin has TCP.
const sockets = "socket"

// transports are what networks carry messages over whose frames are not simulated.
var transports = map[string]string{
	"efa": "SRD of AWS EFA", "efa-v1": "SRD of AWS EFA", "efa-v2": "SRD of AWS EFA",
	"efa-v3": "SRD of AWS EFA", "efa-v4": "SRD of AWS EFA",
	"tcpx": "TCP of GPUDirect-TCPX", "tcpxo": "TCP of FasTrak (TCPXO)",
	"slingshot": "the transport of HPE Slingshot", sockets: "TCP of the socket plugin",
}

// checkFramed refuses networks that carry neither RoCE nor InfiniBand, whose frames are the
// simulated ones. kind is the network class by name; that of a class file is the network that
// the class in force names. Where it is empty, or not one that is built in, NICs say it.
func checkFramed(given, kind string, class *gpu.Class, cl *fabric.Cluster) error {
	if cl.NHosts() < 2 {
		return nil // nothing is between nodes
	}
	if isClassFile(given) {
		kind = class.Network
	}
	for h := range cl.NHosts() {
		s, is := cl.Host(h).Systems[0], kind
		for _, id := range s.Of(topo.NET) {
			if s.Nodes[id].Net.Sockets {
				is = sockets
			}
		}
		if transports[is] == "" && is != "roce" && is != "infiniband" {
			is = netplugin.Class(s)
		}
		if t := transports[is]; t != "" {
			hint := "--network-class roce for RoCE on the same ports"
			if is == sockets {
				hint = "have NCCL use ports of RoCE or InfiniBand"
			}
			return &exec.NotImplementedError{Feature: "packets of " + t,
				Missing: fmt.Sprintf("frames of RoCE and InfiniBand are simulated, and their congestion "+
					"control; write --network flow, or %s", hint)}
		}
	}
	return nil
}
