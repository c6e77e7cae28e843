package comm

import (
	"github.com/simccl/simccl/topo"
	"github.com/simccl/simccl/tuning"
)

// amdInput returns the inputs of RCCL's cost model that NCCL's lacks; the zero value without presets.
func (c *Comm) amdInput() tuning.AMD {
	if !c.Params.Rules.Tuning.Has() || c.Preset == nil {
		return tuning.AMD{}
	}
	sys, p := c.Domains[0].System, c.Preset
	ainic := c.Params.Tuning.AMD.AINIC
	return tuning.AMD{Arch: sys.Arch(), Table: c.Params.Rules.Tuning.TableOf(sys.Arch(), p.Tuning, ainic),
		Alone: len(sys.Of(topo.GPU)) == c.NRanks, AllXGMI: sys.Kinds&topo.XGMIForAll != 0, LL128: p.LL128 ||
			c.Params.Tuning.AMD.LL128,
		TreeDefined: p.TreeDefined, PivotRings: p.PivotRings, PXN: !sys.Access.PXNDisable, AINIC: ainic}
}
