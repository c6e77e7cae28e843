package comm

import (
	"fmt"

	"github.com/simccl/simccl/plan"
	"github.com/simccl/simccl/rules"
	"github.com/simccl/simccl/topo"
	"github.com/simccl/simccl/tuning"
)

// pensando is the PCI vendor of AMD's NICs (transport/net.cc:245 of RCCL 2.30.4).
const pensando = 0x1dd8

// amdNICs reports whether most NICs of rank 0's machine are AMD's.
func (c *Comm) amdNICs() bool {
	sys := c.Domains[0].System
	nets, n := sys.Of(topo.NET), 0
	for _, id := range nets {
		if sys.Nodes[id].Net.Vendor == pensando {
			n++
		}
	}
	return 2*n > len(nets)
}

// oneArch refuses GPUs of several architectures under RCCL's rules: each of its ranks takes channels, tables
// and windows by the first GPU that it sees, and what ranks that disagree do is not modelled.
func oneArch(parts []Part, r *rules.Ruleset) error {
	if r.Library != rules.RCCL {
		return nil
	}
	first := ""
	for _, part := range parts {
		for _, g := range part.System.Of(topo.GPU) {
			switch arch := part.System.Nodes[g].GPU.Arch; {
			case first == "":
				first = arch
			case arch != first:
				return &plan.UnsupportedError{What: "a communicator of " + first + " and " + arch,
					Why: r.Name() + " decides by the architecture of a rank's own machine; " +
						"name nodes of one of them"}
			}
		}
	}
	return nil
}

// NICWarning warns of a machine with AMD's NICs for which RCCL_AINIC_ROCE does not say whether they count as
// such, "" for no such machine. RCCL looks at the devices of the host that it runs on.
func (c *Comm) NICWarning() string {
	t := &c.Params.Rules.Tuning
	if len(t.TablesAINIC) == 0 || c.Params.Tuning.AMD.AINIC.Set || c.NNodes == 1 || !c.amdNICs() {
		return ""
	}
	return fmt.Sprintf("the NICs are AMD's (vendor 0x%x), which %s finds on the running host and then "+
		"takes other "+
		"tables (MI300X), no direct AllGather and no batches of send/recv (MI350X); the decisions here are "+
		"those "+
		"without: RCCL_AINIC_ROCE=1 has the first two, 0 says that they hold", pensando,
		c.Params.Rules.Name())
}

// amdInput returns the inputs of RCCL's cost model that NCCL's lacks; the zero value without presets.
func (c *Comm) amdInput() tuning.AMD {
	if !c.Params.Rules.Tuning.Has() || c.Preset == nil {
		return tuning.AMD{}
	}
	sys, p, set := c.Domains[0].System, c.Preset, &c.Params.Tuning.AMD
	ainic := set.AINIC.Or(-1) == 1 && c.amdNICs()
	return tuning.AMD{Arch: sys.Arch(), Table: c.Params.Rules.Tuning.TableOf(sys.Arch(), p.Tuning, ainic),
		Alone: len(sys.Of(topo.GPU)) == c.NRanks, AllXGMI: sys.Kinds&topo.XGMIForAll != 0,
		LL128: p.LL128 || set.LL128, TreeDefined: p.TreeDefined, PivotRings: p.PivotRings,
		PXN: !sys.Access.PXNDisable, AINIC: ainic}
}
