package sim

import (
	"github.com/simccl/simccl/plan"
	"github.com/simccl/simccl/units"
)

// Deliver implements host.Kernels.
func (e *engine) Deliver(conn int32, at units.Time) { e.deliver(conn, at) }

// Credit implements host.Kernels.
func (e *engine) Credit(conn int32, at units.Time) { e.giveCredit(conn, at) }

// Describe implements host.Kernels.
func (e *engine) Describe(conn int32) plan.Conn {
	if e.quotient != nil {
		return e.quotient.model[conn]
	}
	return e.plan.Conn(conn)
}

// Fail implements host.Kernels.
func (e *engine) Fail(err error) { e.err = err }
