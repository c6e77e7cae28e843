package export

import (
	"cmp"
	"maps"
	"slices"

	"github.com/simccl/simccl/plan"
)

// Listing is a plan written out: every connection and every op, as in plan text. It is for small plans and
// for tests that change an op.
type Listing struct {
	Conns     []plan.Conn
	NetGroups []plan.NetGroup
	Programs  []ListedProgram
}

// ListedProgram is a program and its ops.
type ListedProgram struct {
	plan.Program
	Ops []plan.Op
}

func (l *Listing) programsOf(rank int32) []ListedProgram {
	byRank := func(q ListedProgram, rank int32) int { return cmp.Compare(q.Rank, rank) }
	i, _ := slices.BinarySearchFunc(l.Programs, rank, byRank)
	j, _ := slices.BinarySearchFunc(l.Programs, rank+1, byRank)
	return l.Programs[i:j]
}

func (l *Listing) opsOf(pr *plan.Program) []plan.Op {
	for _, q := range l.programsOf(pr.Rank) {
		if q.Channel == pr.Channel && q.Group == pr.Group {
			return q.Ops
		}
	}
	return nil
}

// Plan returns a plan for the request of p that executes the listed programs, which must be in the order of
// ranks, channels and groups.
func (l *Listing) Plan(p *plan.Plan) (*plan.Plan, error) {
	return plan.New(p.Comm, p.Req, p.Split, generator{l, p})
}

// generator makes the ops of a listing; of is the plan that was listed.
type generator struct {
	list *Listing
	of   *plan.Plan
}

func (g generator) AppendPrograms(dst []plan.Program, rank int32) []plan.Program {
	for _, q := range g.list.programsOf(rank) {
		dst = append(dst, q.Program)
	}
	return dst
}

func (g generator) Open(pr *plan.Program, _ plan.Stream) plan.Stream {
	return &stream{g.list.opsOf(pr)}
}

func (g generator) NumOps(pr *plan.Program) int64 { return int64(len(g.list.opsOf(pr))) }
func (g generator) Fanout(pr *plan.Program) int32 { return g.of.Fanout(pr) }
func (g generator) NumConns() int64               { return int64(len(g.list.Conns)) }
func (g generator) ConnsPerRank() int32           { return 0 }
func (g generator) Conn(c *plan.Conn)             { *c = g.list.Conns[c.ID] }
func (g generator) NetGroups() []plan.NetGroup    { return g.list.NetGroups }

// stream yields the remaining ops of a program.
type stream struct{ ops []plan.Op }

func (s *stream) Next(op *plan.Op) bool {
	if len(s.ops) == 0 {
		return false
	}
	*op = s.ops[0]
	s.ops = s.ops[1:]
	return true
}

// List writes out a plan: all ops of all ranks, so it is for small plans. Connections are renumbered without
// gaps, in the order of the plan's ids.
func List(p *plan.Plan) *Listing {
	l := &Listing{NetGroups: slices.Clone(p.NetGroups())}
	newID := map[int32]int32{}
	var op plan.Op
	for rank := range int32(p.Comm.NRanks) {
		for _, pr := range p.Programs(rank) {
			lp := ListedProgram{Program: pr}
			lp.Transfer = plan.Transfer{} // Transfer refers to a connection by its old id
			for c := p.Open(&pr); c.Next(&op); {
				op.From, op.To = slices.Clone(op.From), slices.Clone(op.To)
				for _, id := range slices.Concat(op.From, op.To) {
					newID[id] = 0
				}
				lp.Ops = append(lp.Ops, op)
			}
			l.Programs = append(l.Programs, lp)
		}
	}
	for _, id := range slices.Sorted(maps.Keys(newID)) {
		c := p.Conn(id)
		newID[id] = int32(len(l.Conns))
		c.ID = newID[id]
		l.Conns = append(l.Conns, c)
	}
	for i := range l.Programs {
		for _, op := range l.Programs[i].Ops {
			renumber(op.From, newID)
			renumber(op.To, newID)
		}
	}
	return l
}

func renumber(ids []int32, to map[int32]int32) {
	for i, id := range ids {
		ids[i] = to[id]
	}
}
