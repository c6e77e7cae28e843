package nics

import (
	"github.com/simccl/simccl/sim/gpu"
	"github.com/simccl/simccl/tuning/netplugin"
)

// Times says in a line what a class is and how sure its times are between machines; plugin
// is the network's, whose settings are taken, or empty.
func Times(class *gpu.Class, between gpu.Network, plugin string) string {
	text := class.Summary(between)
	switch p := netplugin.Of(class.Network); {
	case between == gpu.NoNetwork:
	case plugin != "":
		text += "; settings of " + plugin + ", as simccl env has them"
	case p != nil: // the decision on a file is NCCL's own
		text += "; without settings of " + p.Name + ", which --network-class " + class.Network + " has"
	}
	return text
}
