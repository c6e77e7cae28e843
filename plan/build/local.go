package build

import (
	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/plan"
)

// noOps generates nothing: there is nothing to do.
type noOps struct{}

func (noOps) AppendPrograms(dst []plan.Program, _ int32) []plan.Program { return dst }
func (noOps) Open(*plan.Program, plan.Stream) plan.Stream               { return nil }
func (noOps) NumOps(*plan.Program) int64                                { return 0 }
func (noOps) Fanout(*plan.Program) int32                                { return 1 }
func (noOps) NumConns() int64                                           { return 0 }
func (noOps) ConnsPerRank() int32                                       { return 0 }
func (noOps) Conn(*plan.Conn)                                           {}
func (noOps) NetGroups() []plan.NetGroup                                { return nil }

// selfCopy is what the only rank of a communicator does: it copies its input.
type selfCopy struct {
	noOps
	bytes int64
}

func (selfCopy) AppendPrograms(dst []plan.Program, rank int32) []plan.Program {
	return append(dst, plan.Program{Rank: rank, Role: plan.RoleCopy, Proto: coll.Simple, Threads: 512, Workers: 512, Slices: 1, SliceSteps: 1})
}

func (selfCopy) NumOps(*plan.Program) int64 { return 1 }

func (g selfCopy) Open(pr *plan.Program, old plan.Stream) plan.Stream {
	s := reuse[copyStream](old)
	s.open(pr)
	s.bytes = g.bytes
	return s
}

type copyStream struct {
	stream
	bytes int64
}

func (s *copyStream) Next(op *plan.Op) bool {
	if s.seq > 0 {
		return false
	}
	s.emit(op, plan.Copy, s.bytes)
	op.Src, op.Dst, op.Chunk = input(0), output(0), 0
	return true
}
