package plan

import (
	"cmp"
	"maps"
	"slices"
)

// Listing is a plan written out: every connection and every op, as plan text
// holds them. It serves small plans, tests and plans from elsewhere.
type Listing struct {
	Conns     []Conn
	NetGroups []NetGroup
	Programs  []ListedProgram
}

// ListedProgram is a program and its ops.
type ListedProgram struct {
	Program
	Ops []Op
}

// programsOf returns the programs of a rank.
func (l *Listing) programsOf(rank int32) []ListedProgram {
	byRank := func(q ListedProgram, rank int32) int { return cmp.Compare(q.Rank, rank) }
	i, _ := slices.BinarySearchFunc(l.Programs, rank, byRank)
	j, _ := slices.BinarySearchFunc(l.Programs, rank+1, byRank)
	return l.Programs[i:j]
}

func (l *Listing) programs(dst []Program, rank int32) []Program {
	for _, q := range l.programsOf(rank) {
		dst = append(dst, q.Program)
	}
	return dst
}

func (l *Listing) opsOf(pr *Program) []Op {
	for _, q := range l.programsOf(pr.Rank) {
		if q.Channel == pr.Channel && q.Group == pr.Group {
			return q.Ops
		}
	}
	return nil
}

func (c *Cursor) nextListed(op *Op) bool {
	if int(c.seq) >= len(c.ops) {
		return false
	}
	*op = c.ops[c.seq]
	c.seq++
	return true
}

// List writes out a plan: all ops of all ranks, so it is for small ones.
// Connections are numbered anew, without gaps, in the order of the plan's ids.
func List(p *Plan) *Listing {
	l := &Listing{NetGroups: slices.Clone(p.NetGroups())}
	newID := map[int32]int32{}
	var op Op
	for rank := range int32(p.Comm.NRanks) {
		for _, pr := range p.Programs(rank) {
			lp := ListedProgram{Program: pr}
			lp.p2p = p2pWork{}
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

// With returns a plan for the same request that runs the listed programs,
// which are in the order of ranks, channels and groups.
func (p *Plan) With(l *Listing) *Plan {
	q := *p
	q.kind, q.list = listed, l
	return &q
}
