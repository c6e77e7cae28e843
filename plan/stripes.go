package plan

import (
	"github.com/simccl/simccl/coll"
)

// What the CollNet algorithms share: channels take chunks in turn (Striped).
//
// In all-reduce a turn is a chunk of every head of every channel, in this
// order. All-gather and reduce-scatter go through rails: the blocks of the
// ranks with the same head index, laid end to end by node, of which a turn is a
// chunk of every channel (rails.go).

// netCursor is what a cursor of a CollNet program needs beside its peers.
type netCursor struct {
	do       Do
	src, dst bool // the op's own operand is the input, its result goes to the output

	// Turns over heads: the program's first connection to them, how many there
	// are, the one that is the rank itself (-1: none is left out), and the one to
	// begin with.
	first, heads, self, shift int32
	peer                      int32 // of the turn

	node  int64 // of the rank
	piece int64 // bytes of the chunk that have been handled
}

// stripes sets a channel's share: the first chunk of its first head is at
// grid, the first of the whole operation at 0, where off begins.
func (p *Plan) stripes(g *geom, channel int64) {
	part := &p.Split.Lo
	g.chunk, g.loop, g.total = int64(part.ChunkSize), int64(part.LoopSize), part.Count*g.es
	heads := g.loop / g.chunk / int64(p.Split.NChannels)
	g.grid = channel * heads * g.chunk
	if p.Req.Func != coll.AllReduce {
		g.total *= int64(p.Comm.NNodes)
		g.grid = channel * g.chunk
		g.loop = int64(p.Split.NChannels) * g.chunk
	}
}

// heads returns how many chunks of a turn each channel has.
func (c *Cursor) headsPerTurn() int64 {
	return c.loop / c.chunk / int64(c.p.Split.NChannels)
}

// nextStripe: one chunk of every turn, that of the head which the rank is.
func (c *Cursor) nextStripe(op *Op) bool {
	if c.off >= c.total {
		return false
	}
	place := c.off + c.grid + int64(c.head)*c.chunk
	c.emit(op, c.net.do, min(c.chunk, c.total-place))
	if c.net.src {
		op.Src = input(place)
	}
	if c.net.dst {
		op.Dst = output(place)
	}
	op.Step, op.Chunk = c.turn, c.turn*int32(c.headsPerTurn())+c.head
	c.off += c.loop
	c.turn++
	return true
}

// others is with how many heads a rank exchanges.
func (n *netCursor) others() int32 {
	if n.self >= 0 {
		return n.heads - 1
	}
	return n.heads
}

// nextHead returns the head that the op is about: one primitive of NCCL goes
// through all, but for the rank itself, and here is an op for each. Ranks begin
// with different ones (prims_simple.h:447-453).
func (n *netCursor) nextHead() int32 {
	i := (n.peer + n.shift) % n.others()
	if n.self >= 0 && i >= n.self {
		i++
	}
	return i
}

// nextStripeSpread: scatter and gather handle the chunk of every head in turn.
func (c *Cursor) nextStripeSpread(op *Op) bool {
	if c.off >= c.total {
		return false
	}
	n := &c.net
	h := n.nextHead()
	place := c.off + c.grid + int64(h)*c.chunk
	c.single(h)
	c.emit(op, n.do, min(c.chunk, c.total-place))
	if n.do&Send != 0 {
		op.Src = input(place)
	} else {
		op.Dst = output(place)
	}
	op.Step, op.Chunk = c.turn, c.turn*n.others()+n.peer
	if n.peer++; n.peer == n.others() {
		n.peer = 0
		c.off += c.loop
		c.turn++
	}
	return true
}

// single makes the connection with head h the op's only one.
func (c *Cursor) single(h int32) {
	c.fromBuf[0], c.toBuf[0] = c.net.first+h, c.net.first+h
	c.from, c.to = c.fromBuf[:1], c.toBuf[:1]
}

// Turn returns how many connections a primitive of a program handles together:
// RoleScatter and RoleGather have an op for each, and op.Chunk counts turns
// times Turn connections. It is 1 for all others.
func (p *Plan) Turn(pr *Program) int32 {
	if pr.Role != RoleScatter && pr.Role != RoleGather {
		return 1
	}
	switch p.kind {
	case nvlsKind:
		return int32(p.nvls.nHeads)
	case directKind:
		if p.direct.headOf[pr.Rank] >= 0 {
			return int32(p.direct.nHeads) - 1
		}
		return int32(p.direct.nHeads)
	}
	return 1
}
