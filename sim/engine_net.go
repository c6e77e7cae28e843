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
	j := e.jobs[0] // all connections are of the one job
	if j.fold != nil {
		return j.fold.Describe(conn)
	}
	return j.plan.Conn(conn)
}

// Fail implements host.Kernels.
func (e *engine) Fail(err error) { e.err = err }
