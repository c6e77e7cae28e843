package sim

import "github.com/simccl/simccl/units"

// Within sets how long a run may be before it is shortened.
func (x *Executor) Within(t units.Time) { x.whole = t }
