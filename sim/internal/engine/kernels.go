package engine

import (
	"github.com/simccl/simccl/plan"
	"github.com/simccl/simccl/units"
)

// Deliver implements host.Kernels.
func (e *Engine) Deliver(conn int32, at units.Time) { e.deliver(conn, at) }

// Credit implements host.Kernels.
func (e *Engine) Credit(conn int32, at units.Time) { e.giveCredit(conn, at) }

// Describe implements host.Kernels.
func (e *Engine) Describe(conn int32) plan.Conn {
	j := e.Jobs[0] // all connections are of the one job
	if j.Fold != nil {
		return j.Fold.Describe(conn)
	}
	return j.Plan.Conn(conn)
}

// Fail implements host.Kernels.
func (e *Engine) Fail(err error) { e.err = err }
