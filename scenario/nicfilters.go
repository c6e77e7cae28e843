package scenario

import (
	"fmt"
	"strings"

	"github.com/simccl/simccl/config"
	"github.com/simccl/simccl/topo"
	"github.com/simccl/simccl/topo/fabric"
)

// idleFilters warns of entries of a filter that match no device of the machine.
func idleFilters(cfg *config.Config, files []fabric.Member, cl *fabric.Cluster, report func(error)) {
	warn := func(name, text string, entries, there []string) {
		switch {
		case len(entries) == 0:
		case len(there) == 0:
			report(fmt.Errorf("%s=%s (%s): no effect, because no net of the machine is a device of "+
				"InfiniBand or RoCE", name, text, cfg.Value(name).Origin))
		default:
			report(fmt.Errorf("%s=%s (%s): %s matches nothing; there are %s", name, text,
				cfg.Value(name).Origin, strings.Join(entries, ", "), config.Listed(there)))
		}
	}
	if v := cfg.Text("NCCL_IB_HCA"); v.Value != "" {
		var specs []*topo.Spec
		for _, x := range files {
			specs = append(specs, x.Spec)
		}
		entries, there := topo.UnmatchedHCAs(specs, v.Value)
		warn("NCCL_IB_HCA", v.Value, entries, there)
	}
	if v := cfg.Text("NCCL_SOCKET_IFNAME"); v.Value != "" {
		var systems []*topo.System
		for i := range cl.Classes {
			systems = append(systems, cl.Classes[i].Host.Systems...)
		}
		entries, there := topo.UnmatchedInterfaces(systems, v.Value)
		warn("NCCL_SOCKET_IFNAME", v.Value, entries, there)
	}
}
