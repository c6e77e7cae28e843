package schedule

import (
	"errors"

	"github.com/simccl/simccl/connect"
	"github.com/simccl/simccl/plan"
	"github.com/simccl/simccl/plan/check"
)

// Check proves the schedule: it ends, sends and receives match, no two steps that touch a chunk are
// unordered, and each output chunk holds the promised data. The error is an *Error with the first wrong
// element. Plans of MSCCL++ are proved at a size at which every thread block of a group and every unit of a
// pipeline has data.
func (s *Schedule) Check(c *connect.Layout, r plan.Request) error {
	p, g, err := s.lower(c, s.proofSize(r), true)
	if err != nil {
		return err
	}
	if err := check.Plan(p); err != nil {
		return g.locate(err)
	}
	return newRacer(g, p).run()
}

// proofSize returns the request with a count at which the proof holds.
func (s *Schedule) proofSize(r plan.Request) plan.Request {
	elem := int64(r.Type.Size())
	if chunk := s.Body.ProofChunk(elem); chunk > 0 {
		r.Count = s.Unit() * chunk / elem
	}
	return r
}

// locate adds the element of the schedule to an error of check.Plan.
func (p *Programs) locate(err error) error {
	var e *check.Error
	if !errors.As(err, &e) || e.Rank < 0 || int(e.Rank) >= len(p.Blocks) {
		return err
	}
	blocks := p.Blocks[e.Rank]
	if e.Seq < 0 || e.Channel < 0 || int(e.Channel) >= len(blocks) || len(blocks[e.Channel]) == 0 {
		return p.s.Fault(Element{int(e.Rank), -1, -1, Pos{}}, "%s", e.Problem)
	}
	ops := blocks[e.Channel]
	at := ops[int(e.Seq)%len(ops)].At
	if at.Block >= len(p.s.GPUs[at.GPU].Blocks) {
		at.Block, at.Step = -1, -1
	}
	return p.s.Fault(at, "%s", e.Problem)
}
