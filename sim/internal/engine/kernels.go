package engine

import (
	"github.com/simccl/simccl/plan"
	"github.com/simccl/simccl/sim/wire"
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

// carried is what the links carry for the piece, flags included, in nano-bytes.
func (e *Engine) carried(g *Group) float64 {
	return float64(g.Bytes) * wire.NanoBytes / e.share(g)
}

// share is the share of what the links carry for the piece that is data.
func (e *Engine) share(g *Group) float64 {
	if !g.pass.Direct { // a FIFO begins on a line
		return e.Class.LinkShare[g.Program.Proto]
	}
	return e.Class.DataShare(g.Program.Proto, g.pack)
}
