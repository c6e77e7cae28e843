package sim

import (
	"github.com/simccl/simccl/connect"
	"github.com/simccl/simccl/exec"
	"github.com/simccl/simccl/plan"
	simnet "github.com/simccl/simccl/sim/net"
	"github.com/simccl/simccl/units"
)

// network is the part of a run that goes through proxy threads and NICs.
type network struct {
	e     *engine
	local simnet.RouteID
}

func newNetwork(e *engine, w *wiring) *network { return &network{e: e, local: w.local} }

// connect declares the network side of a connection; -1 where it has none.
func (n *network) connect(c *plan.Conn, id int32, pr *plan.Program) (int32, error) {
	if c.Route.Transport != connect.NET {
		return -1, nil
	}
	return -1, &exec.NotImplementedError{Feature: "simulated network", Missing: "the proxy model"}
}

func (n *network) event(id, arg int32)                    {}
func (n *network) flowDone(id int32)                      {}
func (n *network) post(net int32, t units.Time, g *group) {}
func (n *network) release(net int32, t units.Time)        {}
