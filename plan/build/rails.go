package build

import (
	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/plan"
	"github.com/simccl/simccl/units"
)

// All-gather and reduce-scatter of CollNet go through a rail in chunks. A chunk may span the blocks of
// several nodes. It is one FIFO step, but since the blocks are separate in the ranks' buffers, each op
// handles the piece of one block (device/all_gather.h:196-270, device/reduce_scatter.h:148-205).
//
// With chunks of 8 bytes and blocks of 10, chunk 1 is bytes 8 to 15 of the rail: an op for the last two bytes
// of node 0's block, which holds the step, and one for the first six of node 1's, which ends it.

// ownBlock is the stream of the own node's piece of every step, which may be empty: the data that a head
// sends to the network in a gather, or receives from it in a scatter.
type ownBlock struct{ netStream }

func (s *ownBlock) Next(op *plan.Op) bool {
	if !s.more() {
		return false
	}
	span := plan.SpanOf(s.done+s.begin, s.chunk, s.block, int64(s.g.comm.NNodes), s.node)
	place := int64(span.Off+span.Mine) - s.node*s.block
	s.emit(op, s.do, int64(span.MyBytes))
	s.operands(op, max(place, 0))
	op.Step, op.Chunk = s.iter, s.iter
	s.next()
	return true
}

// openOwn opens a head's program for its own block, to the network or from it; self is the head's first
// connection id.
func (s *netStream) openOwn(role plan.Role, self int32, h heads) {
	if role == plan.RoleSend {
		s.do, s.src = plan.Send, true
		s.to = append(s.to, self+h.up())
		return
	}
	s.do, s.dst = plan.Recv|plan.Copy|plan.PostOp, true
	s.from = append(s.from, self+h.down())
}

// blocksOfRail is the stream of every piece of every step: of the rail whose head the rank is or, for scatter
// and gather, of one rail after the other.
type blocksOfRail struct{ netStream }

func (s *blocksOfRail) Next(op *plan.Op) bool {
	if !s.more() {
		return false
	}
	rail := s.head
	spread := s.others() > 0
	op.Chunk = s.iter
	if spread {
		rail = s.nextHead()
		s.connect(rail)
		op.Chunk = s.iter*s.others() + s.peer
	}
	begin := min(s.done+s.begin, s.total)
	end := min(begin+s.chunk, s.total)
	at := begin + s.piece
	node := min(at/s.block, int64(s.g.comm.NNodes)-1)
	bytes := min(end, (node+1)*s.block) - at
	last := at+bytes >= end
	s.emitPiece(op, rail, node, at-node*s.block, bytes, last)
	s.piece += bytes
	if !last {
		return true
	}
	s.piece = 0
	if s.peer++; spread && s.peer < s.others() {
		return true
	}
	s.peer = 0
	s.next()
	return true
}

// emitPiece makes the op for bytes at an offset in the block of the rank that is head of a rail on a node.
// The last piece ends the step.
func (s *blocksOfRail) emitPiece(op *plan.Op, rail int32, node, off, bytes int64, last bool) {
	do := s.do
	if !last {
		do |= holds(do, plan.Recv, plan.HoldRecv)
		do |= holds(do, plan.Send, plan.HoldSend)
	}
	// NCCL finds the rank as collNetDenseToUserRank does (transport/coll_net.cc:1415).
	rank := s.g.comm.CollNet.NetHeads[node][rail]
	place := int64(rank)*s.block + off
	// In place the rank's own block is already where it belongs.
	if req := &s.g.req; s.dst && req.Func == coll.AllGather && req.InPlace && rank == s.rank {
		do &^= plan.Copy
	}
	s.emit(op, do, bytes)
	op.Step = s.iter
	if s.src {
		op.Src = input(place)
	}
	if do&plan.Copy != 0 {
		op.Dst = output(place)
	}
	if do&plan.Recv != 0 {
		op.RecvOff = units.Bytes(s.piece)
	}
	if do&plan.Send != 0 {
		op.SendOff = units.Bytes(s.piece)
	}
}

// holds returns the bit hold if do contains the bit of, else 0.
func holds(do, of, hold plan.Do) plan.Do {
	if do&of != 0 {
		return hold
	}
	return 0
}
