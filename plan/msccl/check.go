package msccl

import (
	"errors"

	"github.com/simccl/simccl/connect"
	"github.com/simccl/simccl/plan"
	"github.com/simccl/simccl/plan/check"
	"github.com/simccl/simccl/rules"
	"github.com/simccl/simccl/units"
)

// Check proves the schedule: it ends, its steps meet, no two that touch a chunk are
// unordered, and each output chunk holds what the operation promises. The error is an
// *Error with the first element that is wrong. Plans of MSCCL++ are proved at a size of
// their own, at which every thread block of a group and every unit of a pipeline has
// data.
func (s *Schedule) Check(c *connect.Layout, r plan.Request) error {
	if s.plus != nil {
		r.Count = s.unit() * s.plus.proofChunk(int64(r.Type.Size())) / int64(r.Type.Size())
	}
	p, g, err := s.lower(c, r, true)
	if err != nil {
		return err
	}
	if err := check.Plan(p); err != nil {
		return g.locate(err)
	}
	return newRacer(g, p).run()
}

// locate names the element of an error of check.Plan.
func (g *generator) locate(err error) error {
	var e *check.Error
	if !errors.As(err, &e) || e.Rank < 0 || int(e.Rank) >= len(g.blocks) {
		return err
	}
	progs := g.blocks[e.Rank]
	if e.Seq < 0 || e.Channel < 0 || int(e.Channel) >= len(progs) || len(progs[e.Channel].ops) == 0 {
		return g.s.fault(int(e.Rank), -1, -1, "%s", e.Problem)
	}
	ops := progs[e.Channel].ops
	at := ops[int(e.Seq)%len(ops)].at
	if at.block >= len(g.s.GPUs[at.gpu].Blocks) {
		at.block, at.step = -1, -1
	}
	return g.s.faultAt(at, "%s", e.Problem)
}

// Alone is a communicator to prove a schedule on where no machine is given: as many
// ranks of one node, with NCCL's own buffers.
func (s *Schedule) Alone() *connect.Layout {
	n := len(s.GPUs)
	return &connect.Layout{Rules: rules.Default(), NRanks: n, NNodes: 1, NodeOf: make([]int32, n),
		BuffSizes: [3]units.Bytes{524288, 4915200, 4194304}}
}
