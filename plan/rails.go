package plan

import (
	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/units"
)

// All-gather and reduce-scatter of CollNet go through a rail in chunks. A chunk
// may touch the blocks of several nodes. It is one step, but as the blocks lie
// apart in the ranks' buffers an op is about one block's piece of it
// (device/all_gather.h:196-270, device/reduce_scatter.h:148-205).

// nextOwn: of every step only the piece that is the own node's, which may be
// nothing: what a head gives to the network to gather, or takes from it of a
// scatter.
func (c *Cursor) nextOwn(op *Op) bool {
	if c.off >= c.total {
		return false
	}
	s := spanOf(c.off+c.grid, c.chunk, c.block, int64(c.p.Comm.NNodes), c.net.node)
	place := int64(s.Off+s.Mine) - c.net.node*c.block
	c.emit(op, c.net.do, int64(s.MyBytes))
	if c.net.src {
		op.Src = input(max(place, 0))
	}
	if c.net.dst {
		op.Dst = output(max(place, 0))
	}
	op.Step, op.Chunk = c.turn, c.turn
	c.off += c.loop
	c.turn++
	return true
}

// nextPieces: every piece of every step, of the rail that the rank heads or,
// for scatter and gather, of one rail after the other.
func (c *Cursor) nextPieces(op *Op) bool {
	if c.off >= c.total {
		return false
	}
	n := &c.net
	rail := c.head
	spread := n.others() > 0
	op.Chunk = c.turn
	if spread {
		rail = n.nextHead()
		c.single(rail)
		op.Chunk = c.turn*n.others() + n.peer
	}
	begin := min(c.off+c.grid, c.total)
	end := min(begin+c.chunk, c.total)
	at := begin + n.piece
	node := min(at/c.block, int64(c.p.Comm.NNodes)-1)
	bytes := min(end, (node+1)*c.block) - at
	last := at+bytes >= end
	c.emitPiece(op, rail, node, at-node*c.block, bytes, last)
	n.piece += bytes
	if !last {
		return true
	}
	n.piece = 0
	if n.peer++; spread && n.peer < n.others() {
		return true
	}
	n.peer = 0
	c.off += c.loop
	c.turn++
	return true
}

// emitPiece makes the op about bytes at an offset in the block of the rank
// that heads a rail on a node. The last piece ends the step.
func (c *Cursor) emitPiece(op *Op, rail int32, node, off, bytes int64, last bool) {
	n := &c.net
	do := n.do
	if !last {
		do |= holds(do, Recv, HoldRecv)
		do |= holds(do, Send, HoldSend)
	}
	rank := c.p.railRank(int32(node), rail)
	place := int64(rank)*c.block + off
	// In place the own block is where it belongs already.
	if n.dst && c.p.Req.Func == coll.AllGather && c.p.Req.InPlace && rank == c.pr.Rank {
		do &^= Copy
	}
	chunk := op.Chunk
	c.emit(op, do, bytes)
	op.Chunk, op.Step = chunk, c.turn
	if n.src {
		op.Src = input(place)
	}
	if do&Copy != 0 {
		op.Dst = output(place)
	}
	if do&Recv != 0 {
		op.RecvOff = units.Bytes(n.piece)
	}
	if do&Send != 0 {
		op.SendOff = units.Bytes(n.piece)
	}
}

// holds returns the bit hold where do has the bit of.
func holds(do, of, hold Do) Do {
	if do&of != 0 {
		return hold
	}
	return 0
}

// railRank is the rank of a node that heads a rail (collNetDenseToUserRank,
// transport/coll_net.cc:1415).
func (p *Plan) railRank(node, rail int32) int32 { return p.Comm.CollNet.NetHeads[node][rail] }
