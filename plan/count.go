package plan

import "github.com/simccl/simccl/coll"

// NumOps returns the number of ops of a program, without making them except
// for PAT, where one chunk is walked through.
func (p *Plan) NumOps(pr *Program) int64 {
	switch p.kind {
	case nothing:
		return 0
	case selfCopy, selfKernel:
		return 1
	case listed:
		return int64(len(p.list.opsOf(pr)))
	case p2pKind:
		return max(1, divUp(pr.p2p.bytes, max(pr.p2p.chunk, 1)))
	}
	g := p.geometry(pr.Channel)
	n := int64(p.Comm.NRanks)
	switch p.kind {
	case ringAllReduce:
		return divUp(g.total, n*g.chunk) * (2*n - 1)
	case ringAllGather, ringReduceScatter:
		return divUp(g.total, g.chunk) * n
	case ringBroadcast, ringReduce, treeAllReduce:
		return divUp(g.total, g.chunk)
	case nvlsKind:
		if p.nets == nil {
			return p.numNVLS(pr, &g)
		}
		return p.numStripes(pr, &g)
	case directKind, chainKind:
		return p.numStripes(pr, &g)
	}
	return divUp(g.total, g.chunk) * p.patOps(pr)
}

func (p *Plan) numNVLS(pr *Program, g *geom) int64 {
	heads := int64(p.nvls.nHeads)
	turns := divUp(g.total, g.chunk)
	if p.Req.Func == coll.AllReduce {
		turns = divUp(g.total, heads*g.chunk)
	}
	if pr.Role == RoleScatter || pr.Role == RoleGather {
		return turns * heads
	}
	return turns
}

// numStripes counts the ops of CollNet: one a turn and connection, and more
// where a step touches the blocks of several nodes.
func (p *Plan) numStripes(pr *Program, g *geom) int64 {
	ops := divUp(g.total, g.loop)
	if p.Req.Func == coll.AllReduce || pr.Role == RoleSend || pr.Role == RoleRecv {
		return ops * int64(p.Turn(pr))
	}
	for node := range int64(p.Comm.NNodes - 1) {
		border := (node + 1) * g.block
		if border%g.chunk != 0 && border/g.chunk*g.chunk%g.loop == g.grid {
			ops++
		}
	}
	return ops * int64(p.Turn(pr))
}

// patOps counts the ops of one chunk.
func (p *Plan) patOps(pr *Program) int64 {
	var c Cursor
	var op Op
	p.OpenInto(&c, pr)
	c.pat.end = min(c.pat.end, c.pat.offset+c.pat.chunk)
	n := int64(0)
	for c.Next(&op) {
		n++
	}
	return n
}

// TotalOps returns the number of ops of the plan.
func (p *Plan) TotalOps() int64 {
	var progs []Program
	total := int64(0)
	for rank := range int32(p.Comm.NRanks) {
		progs = p.AppendPrograms(progs[:0], rank)
		for i := range progs {
			total += p.NumOps(&progs[i])
		}
	}
	return total
}
