package explain

import (
	"fmt"

	"github.com/simccl/simccl/comm"
	"github.com/simccl/simccl/rules"
	"github.com/simccl/simccl/tuning"
)

// rccl fills in what RCCL does beside its cost model.
func (r *Report) rccl(c *comm.Comm, ch tuning.Choice) {
	cite := func(rule string, at rules.Place) tuning.Reason {
		return tuning.Reason{Rule: rule, At: at, Source: c.Params.Rules.Cite(at)}
	}
	if ch.Overruled != nil {
		for _, o := range *ch.Overruled {
			o.Source = c.Params.Rules.Cite(o.At)
			r.Overruled = append(r.Overruled, o)
		}
	}
	if ch.DDA {
		r.Instead = append(r.Instead,
			cite("kernels that read the memory of all eight GPUs do it (DDA), unless it is in a "+
				"group or GPUs cannot map each other's memory", rules.AtDDA))
	}
	switch ch.Direct {
	case tuning.DirectGather:
		r.Instead = append(r.Instead, cite(fmt.Sprintf("each rank sends to all %d (AllGatherDirect)",
			c.NRanks),
			rules.AtDirect))
	case tuning.DirectScatter:
		r.Instead = append(r.Instead, cite(fmt.Sprintf("each rank sends to all %d and reduces what it got "+
			"(ReduceScatterDirect)", c.NRanks), rules.AtDirectRS))
	case tuning.Hierarchical:
		r.Instead = append(r.Instead,
			cite("it gathers over nodes and then within them (Hierarchical), unless it is in "+
				"a group", rules.AtHierarchy))
	}
}
