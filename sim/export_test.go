package sim

import "github.com/simccl/simccl/units"

// Within sets how long a run may be before it is shortened.
func (x *Executor) Within(t units.Time) { x.whole = t }

// Afford sets of how many steps and ops a run is refused.
func (x *Executor) Afford(steps, ops int64) { x.afford, x.affordOps = steps, ops }
