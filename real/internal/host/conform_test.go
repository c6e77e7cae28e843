package host

import (
	"testing"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/config/netcfg"
	"github.com/simccl/simccl/exec/exectest"
	"github.com/simccl/simccl/plan"
	"github.com/simccl/simccl/trace/nccl"
	"github.com/simccl/simccl/units"
)

// subject is an executor on a small communicator; FIFOs are small so that they
// wrap.
func subject(nodes int, w *Wire) exectest.Subject {
	perNode := 4 / nodes
	c := exectest.Comm(max(perNode, 1), nodes, 2)
	c.BuffSizes = [3]units.Bytes{32 << 10, 8 * 5760 * 8, 64 << 10}
	c.P2PChunkSize, c.NVLSChunkSize = 8<<10, 8<<10
	return exectest.Subject{Comm: c,
		Executor: New(Config{Wire: w, Trace: nccl.Options{Detail: nccl.DetailStep}}), Arrows: true,
		Skip: func(r plan.Request) string {
			if w != nil && (r.Algo == coll.NVLS || r.Algo == coll.NVLSTree) && !r.Func.IsP2P() {
				return "a wire has no NVLink multicast"
			}
			return ""
		}}
}

// TestConformsInProcess runs the suite that every executor must pass.
func TestConformsInProcess(t *testing.T) {
	nodes := []int{1, 2, 4}
	if testing.Short() {
		nodes = nodes[1:2]
	}
	exectest.Conform(t, nodes, func(t *testing.T, nodes int) exectest.Subject { return subject(nodes, nil) })
}

// TestConformsOverVerbs is the same suite with every connection on the wire.
func TestConformsOverVerbs(t *testing.T) {
	exectest.Conform(t, []int{2}, func(t *testing.T, nodes int) exectest.Subject {
		return subject(nodes, verbsWire(t, netcfg.IB{}))
	})
}

// TestConformsOverSockets is the same suite over the loopback interface, each
// message split over two sockets.
func TestConformsOverSockets(t *testing.T) {
	exectest.Conform(t, []int{2}, func(t *testing.T, nodes int) exectest.Subject {
		return subject(nodes, loopback(t))
	})
}
