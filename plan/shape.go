package plan

import (
	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/units"
)

// Shape is what a program does, apart from with whom and where in memory. Two
// programs of a plan with equal Shapes make, op by op, the same primitives on
// as many connections with the same steps and bytes. A simulation of many
// ranks runs one program of a class for all whose surroundings are alike too.
//
// In a ring, programs are alike but for their start: op j of the program at
// position k is about the block at k-1-j (k-j for all-gather). Where all blocks
// are equal, positions do not show and Pos is -1.
type Shape struct {
	Role               Role
	Phase              int32
	Threads, Workers   int32
	Slices, SliceSteps int32
	From, To           int32 // connections of the program
	Ops                int64
	Total, Chunk       units.Bytes // of the channel's share, or the transfer's
	Pos                int32       // position or head where bytes depend on it, else -1
	Proto              uint8
	Do                 Do // of every op where the network reduces: the top of a chain also ends averages
}

// Shape returns the shape of a program. It allocates for PAT only.
func (p *Plan) Shape(pr *Program) Shape {
	s := Shape{
		Role: pr.Role, Phase: pr.Phase, Threads: pr.Threads, Workers: pr.Workers, Slices: pr.Slices, SliceSteps: pr.SliceSteps,
		Ops: p.NumOps(pr), Pos: -1, Proto: uint8(pr.Proto),
	}
	switch p.kind {
	case nothing, selfCopy, selfKernel, listed:
		return s
	case p2pKind:
		s.Total, s.Chunk = units.Bytes(pr.p2p.bytes), units.Bytes(pr.p2p.chunk)
		return s
	}
	g := p.geometry(pr.Channel)
	s.Total, s.Chunk = units.Bytes(g.total), units.Bytes(g.chunk)
	switch p.kind {
	case patAllGather, patReduceScatter:
		return s
	case nvlsKind:
		if p.nets == nil {
			p.shapeNVLS(&s, pr, &g)
			return s
		}
		p.shapeStripes(&s, pr, &g)
		return s
	case directKind, chainKind:
		p.shapeStripes(&s, pr, &g)
		return s
	}
	var c Cursor
	p.OpenInto(&c, pr)
	s.From, s.To = int32(len(c.from)), int32(len(c.to))
	switch p.kind {
	case ringAllReduce:
		if _, full, part := p.lastBlocks(pr.Channel); full < int32(p.Comm.NRanks) || part > 0 {
			s.Pos = c.pos
		}
	case ringBroadcast, ringReduce:
		// The ends of the chain do not use one of their connections.
		first, last := c.order[c.back(c.pos)] == p.Req.Root, c.order[(c.pos+1)%c.n] == p.Req.Root
		root := pr.Rank == p.Req.Root
		if root && p.kind == ringBroadcast || first && p.kind == ringReduce {
			s.From = 0
		}
		if root && p.kind == ringReduce || last && p.kind == ringBroadcast {
			s.To = 0
		}
	}
	return s
}

func (p *Plan) shapeNVLS(s *Shape, pr *Program, g *geom) {
	if pr.Role == RoleScatter || pr.Role == RoleGather {
		s.From = int32(p.nvls.nHeads)
		return
	}
	v := &p.Comm.NVLS[pr.Channel]
	head := v.HeadIndex[pr.Rank]
	if turn := int64(p.nvls.nHeads) * g.chunk; p.Req.Func == coll.AllReduce && g.total%turn != 0 {
		s.Pos = head
	}
	var c Cursor
	p.OpenInto(&c, pr)
	s.From, s.To = int32(len(c.from)), int32(len(c.to))
}

// shapeStripes: where all turns are full, chunks of all channels and heads are
// alike. What a node has of a step differs with node and channel.
func (p *Plan) shapeStripes(s *Shape, pr *Program, g *geom) {
	var c Cursor
	p.OpenInto(&c, pr)
	s.From, s.To, s.Do = int32(len(c.from)), int32(len(c.to)), c.net.do
	channel := pr.Channel - int32(p.Split.ChannelLo)
	switch {
	case c.net.heads > 0 && pr.Role == RoleScatter:
		s.To = c.net.others()
	case c.net.heads > 0:
		s.From = c.net.others()
	}
	switch {
	case p.Req.Func == coll.AllReduce && g.total%g.loop == 0:
	case p.Req.Func == coll.AllReduce && c.net.heads > 0:
		s.Pos = (channel*(c.net.heads+1)+c.net.self+1)*c.net.heads + c.net.shift
	case p.Req.Func == coll.AllReduce:
		s.Pos = channel*int32(c.headsPerTurn()) + c.head
	case pr.Role == RoleSend || pr.Role == RoleRecv:
		s.Pos = channel*int32(p.Comm.NNodes) + p.Comm.NodeOf[pr.Rank]
	case p.Req.InPlace:
		s.Pos = channel*int32(p.Comm.NRanks) + pr.Rank
	case g.total%g.loop == 0 && g.block%g.chunk == 0: // whole chunks of one block each
	default:
		s.Pos = channel
	}
}

// RingPos returns the position of a rank in the ring of a channel of the
// split, counted from rank 0; -1 where the plan has no rings.
func (p *Plan) RingPos(channel, rank int32) int32 {
	i := int(channel) - p.Split.ChannelLo
	if i < 0 || i >= len(p.rings) {
		return -1
	}
	return p.rings[i][rank]
}

// RingBlocks returns how a turn of a ring all-reduce divides its bytes: blocks
// 0 to full-1 have size bytes, the next has part bytes, all others none. turns
// is the number of turns; all but the last have full blocks only.
func (p *Plan) RingBlocks(channel, turn int32) (size units.Bytes, full int32, part units.Bytes, turns int32) {
	if p.kind != ringAllReduce {
		return 0, 0, 0, 0
	}
	g := p.geometry(channel)
	n := int64(p.Comm.NRanks)
	turns = int32(divUp(g.total, n*g.chunk))
	if turn < turns-1 {
		return units.Bytes(g.chunk), int32(n), 0, turns
	}
	size, full, part = p.lastBlocks(channel)
	return size, full, part, turns
}

func (p *Plan) lastBlocks(channel int32) (size units.Bytes, full int32, part units.Bytes) {
	c := Cursor{geom: p.geometry(channel)}
	n := int64(p.Comm.NRanks)
	c.loop = n * c.chunk
	c.off = (divUp(c.total, c.loop) - 1) * c.loop
	c.shortenLast(n)
	rest := c.total - c.off
	return units.Bytes(c.chunk), int32(rest / c.chunk), units.Bytes(rest % c.chunk)
}
