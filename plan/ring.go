package plan

import (
	"fmt"

	"github.com/simccl/simccl/coll"
)

// buildRing chooses the ring generator and finds every rank's position.
func (p *Plan) buildRing() error {
	switch p.Req.Func {
	case coll.AllReduce:
		p.kind = ringAllReduce
	case coll.AllGather:
		p.kind = ringAllGather
	case coll.ReduceScatter:
		p.kind = ringReduceScatter
	case coll.Broadcast:
		p.kind = ringBroadcast
	default:
		p.kind = ringReduce
	}
	n := p.Comm.NRanks
	p.rings = make([][]int32, p.Split.NChannels)
	for i := range p.rings {
		ch := &p.Comm.Channels[p.Split.ChannelLo+i]
		if len(ch.Order) != n || len(ch.Ring) != n || ch.Order[0] != 0 {
			return &RequestError{"Comm", fmt.Sprintf("channel %d has no ring of %d ranks in order from rank 0", p.Split.ChannelLo+i, n)}
		}
		if i > 0 && &p.Comm.Channels[p.Split.ChannelLo+i-1].Order[0] == &ch.Order[0] {
			p.rings[i] = p.rings[i-1]
			continue
		}
		pos := ch.Pos
		if len(pos) != n {
			pos = make([]int32, n)
			for k, r := range ch.Order {
				if r >= 0 && int(r) < n {
					pos[r] = int32(k)
				}
			}
		}
		for k, r := range ch.Order {
			if r < 0 || int(r) >= n || int(pos[r]) != k || ch.Ring[r].Next != ch.Order[(k+1)%n] || ch.Ring[r].Prev != ch.Order[(k+n-1)%n] {
				return &RequestError{"Comm", fmt.Sprintf("channel %d: neighbours of rank %d disagree with the ring order", p.Split.ChannelLo+i, r)}
			}
		}
		p.rings[i] = pos
	}
	return nil
}

func (c *Cursor) openRing() {
	p, n := c.p, int32(c.p.Comm.NRanks)
	i := c.pr.Channel - int32(p.Split.ChannelLo)
	ch := &p.Comm.Channels[c.pr.Channel]
	c.n, c.order, c.pos = n, ch.Order, p.rings[i][c.pr.Rank]
	c.fromBuf[0] = i*n + ch.Ring[c.pr.Rank].Prev
	c.toBuf[0] = i*n + c.pr.Rank
	c.from, c.to = c.fromBuf[:1], c.toBuf[:1]
	c.at = c.back(c.pos)
	switch p.kind {
	case ringAllReduce:
		c.loop = int64(n) * c.chunk
		c.shortenLast(int64(n))
		c.next = (*Cursor).nextAllReduce
	case ringAllGather:
		c.at = c.pos
		c.next = (*Cursor).nextAllGather
	case ringReduceScatter:
		c.next = (*Cursor).nextReduceScatter
	case ringBroadcast:
		c.next = (*Cursor).nextBroadcast
	case ringReduce:
		c.next = (*Cursor).nextReduce
	}
}

// back returns the position before pos.
func (c *Cursor) back(pos int32) int32 {
	if pos == 0 {
		return c.n - 1
	}
	return pos - 1
}

// shortenLast spreads the rest of a last, incomplete turn evenly over the
// ranks, in whole 16 bytes (all_reduce.h:35).
func (c *Cursor) shortenLast(ways int64) {
	if rest := c.total - c.off; rest < c.loop {
		// NCCL divides elements; 16 bytes are whole elements of every type.
		c.chunk = alignUp(divUp(rest/c.es, ways), 16/c.es) * c.es
	}
}

// nextAllReduce: each block goes round the ring once to be reduced and once
// more to be copied; op j of a turn is about the block j+1 positions back.
func (c *Cursor) nextAllReduce(op *Op) bool {
	if c.off >= c.total {
		return false
	}
	begin := int64(c.at) * c.chunk
	bytes := min(c.chunk, c.total-c.off-begin)
	place := c.grid + c.off + begin
	op.Chunk = c.turn*c.n + c.at
	switch last := c.n - 1; {
	case c.j == 0:
		c.emit(op, Send, bytes)
		op.Src = input(place)
	case c.j < last:
		c.emit(op, Recv|Reduce|Send, bytes)
		op.Src = input(place)
	case c.j == last:
		c.emit(op, Recv|Reduce|Copy|Send|PostOp, bytes)
		op.Src, op.Dst = input(place), output(place)
	case c.j < 2*last:
		c.emit(op, Recv|Copy|Send, bytes)
		op.Dst = output(place)
	default:
		c.emit(op, Recv|Copy, bytes)
		op.Dst = output(place)
		c.nextTurn(c.back(c.pos))
		c.shortenLast(int64(c.n))
		return true
	}
	c.j++
	c.at = c.back(c.at)
	return true
}

// nextTurn moves on to the next turn of the loop over chunks.
func (c *Cursor) nextTurn(at int32) {
	c.off += c.loop
	c.turn++
	c.j, c.at = 0, at
}

func (c *Cursor) nextAllGather(op *Op) bool {
	if c.off >= c.total {
		return false
	}
	bytes := min(c.chunk, c.total-c.off)
	place := c.grid + c.off
	to := output(place + int64(c.order[c.at])*c.block)
	op.Chunk = c.turn*c.n + c.at
	switch {
	case c.j == 0:
		do := Copy | Send
		if c.p.Req.InPlace {
			do = Send
		}
		c.emit(op, do, bytes)
		op.Src = input(place)
		if do&Copy != 0 {
			op.Dst = to
		}
	case c.j < c.n-1:
		c.emit(op, Recv|Copy|Send, bytes)
		op.Dst = to
	default:
		c.emit(op, Recv|Copy, bytes)
		op.Dst = to
		c.nextTurn(c.pos)
		return true
	}
	c.j++
	c.at = c.back(c.at)
	return true
}

func (c *Cursor) nextReduceScatter(op *Op) bool {
	if c.off >= c.total {
		return false
	}
	bytes := min(c.chunk, c.total-c.off)
	place := c.grid + c.off
	op.Chunk = c.turn*c.n + c.at
	from := input(place + int64(c.order[c.at])*c.block)
	switch {
	case c.j == 0:
		c.emit(op, Send, bytes)
	case c.j < c.n-1:
		c.emit(op, Recv|Reduce|Send, bytes)
	default:
		c.emit(op, Recv|Reduce|Copy|PostOp, bytes)
		op.Src, op.Dst = from, output(place)
		c.nextTurn(c.back(c.pos))
		return true
	}
	op.Src = from
	c.j++
	c.at = c.back(c.at)
	return true
}

// nextBroadcast: a chain from the root round the ring to the rank before it.
func (c *Cursor) nextBroadcast(op *Op) bool {
	if c.off >= c.total {
		return false
	}
	bytes := min(c.chunk, c.total-c.off)
	place := c.grid + c.off
	op.Chunk = c.turn
	switch {
	case c.pr.Rank == c.p.Req.Root && c.p.Req.InPlace:
		c.emit(op, Send, bytes)
		op.Src = input(place)
	case c.pr.Rank == c.p.Req.Root:
		c.emit(op, Copy|Send, bytes)
		op.Src, op.Dst = input(place), output(place)
	case c.order[(c.pos+1)%c.n] == c.p.Req.Root:
		c.emit(op, Recv|Copy, bytes)
		op.Dst = output(place)
	default:
		c.emit(op, Recv|Copy|Send, bytes)
		op.Dst = output(place)
	}
	c.off += c.chunk
	c.turn++
	return true
}

// nextReduce: a chain from the rank after the root round the ring to it.
func (c *Cursor) nextReduce(op *Op) bool {
	if c.off >= c.total {
		return false
	}
	bytes := min(c.chunk, c.total-c.off)
	place := c.grid + c.off
	op.Chunk = c.turn
	switch {
	case c.order[c.back(c.pos)] == c.p.Req.Root:
		c.emit(op, Send, bytes)
		op.Src = input(place)
	case c.pr.Rank == c.p.Req.Root:
		c.emit(op, Recv|Reduce|Copy|PostOp, bytes)
		op.Src, op.Dst = input(place), output(place)
	default:
		c.emit(op, Recv|Reduce|Send, bytes)
		op.Src = input(place)
	}
	c.off += c.chunk
	c.turn++
	return true
}
