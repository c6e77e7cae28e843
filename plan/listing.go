package plan

// Listing is a plan written out: every connection and every op, as plan text
// holds them. It serves small plans, tests and plans from elsewhere.
type Listing struct {
	Conns    []Conn
	Programs []ListedProgram
}

// ListedProgram is a program and its ops.
type ListedProgram struct {
	Program
	Ops []Op
}

func (l *Listing) programs(dst []Program, rank int32) []Program {
	for i := range l.Programs {
		if l.Programs[i].Rank == rank {
			dst = append(dst, l.Programs[i].Program)
		}
	}
	return dst
}

func (l *Listing) opsOf(pr *Program) []Op {
	for i := range l.Programs {
		q := &l.Programs[i]
		if q.Rank == pr.Rank && q.Channel == pr.Channel && q.Group == pr.Group {
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
func List(p *Plan) *Listing {
	l := new(Listing)
	for id := range p.NumConns() {
		l.Conns = append(l.Conns, p.Conn(id))
	}
	var op Op
	for rank := range int32(p.Comm.NRanks) {
		for _, pr := range p.Programs(rank) {
			lp := ListedProgram{Program: pr}
			for c := p.Open(&pr); c.Next(&op); {
				op.From = append([]int32(nil), op.From...)
				op.To = append([]int32(nil), op.To...)
				lp.Ops = append(lp.Ops, op)
			}
			l.Programs = append(l.Programs, lp)
		}
	}
	return l
}

// With returns a plan for the same request that runs the listed programs.
func (p *Plan) With(l *Listing) *Plan {
	q := *p
	q.kind, q.list = listed, l
	return &q
}
