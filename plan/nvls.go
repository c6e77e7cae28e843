package plan

import (
	"fmt"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/connect"
)

// nvlsShape is who heads what: with multimem instructions a head reduces and
// broadcasts its share for all ranks of its node.
type nvlsShape struct {
	nHeads int
	heads  [][]int32 // channel of the split → node·nHeads + index → rank
}

func (p *Plan) buildNVLS() error {
	c := p.Comm
	s := &nvlsShape{nHeads: nHeads(c)}
	if len(c.NVLS) <= p.Split.ChannelHi || len(c.NodeRanks) != c.NNodes {
		return &RequestError{"Comm", fmt.Sprintf("%d NVLS channels and ranks of %d nodes, need %d and %d", len(c.NVLS), len(c.NodeRanks), p.Split.ChannelHi+1, c.NNodes)}
	}
	for ch := p.Split.ChannelLo; ch <= p.Split.ChannelHi; ch++ {
		v := &c.NVLS[ch]
		bad := func(what string) error {
			return &RequestError{"Comm", fmt.Sprintf("NVLS channel %d: %s", ch, what)}
		}
		if len(v.HeadIndex) != c.NRanks || len(v.Heads) != s.nHeads {
			return bad("head indices of every rank, and equal heads on all channels, are needed")
		}
		heads := make([]int32, c.NNodes*s.nHeads)
		for i := range heads {
			heads[i] = -1
		}
		for r, h := range v.HeadIndex {
			if h >= 0 && int(h) < s.nHeads {
				heads[int(c.NodeOf[r])*s.nHeads+int(h)] = int32(r)
			}
		}
		for i, r := range heads {
			if r < 0 {
				return bad(fmt.Sprintf("node %d has no head %d", i/s.nHeads, i%s.nHeads))
			}
		}
		if err := p.checkNVLSTree(v); err != nil {
			return bad(err.Error())
		}
		if p.Req.Func != coll.AllReduce && c.NNodes == 1 {
			for r, h := range v.HeadIndex {
				if int(h) != r {
					return &UnsupportedError{fmt.Sprintf("%v with NVLS", p.Req.Func), "every rank must be head of its own block"}
				}
			}
		}
		s.heads = append(s.heads, heads)
	}
	p.nvls = s
	if p.Req.Algo == coll.NVLS && c.NNodes > 1 {
		return p.buildNVLSNet()
	}
	return nil
}

// checkNVLSTree makes sure that the tree between the heads of nodes is one.
func (p *Plan) checkNVLSTree(v *connect.NVLSChannel) error {
	if p.Req.Algo != coll.NVLSTree {
		return nil
	}
	n := int32(p.Comm.NRanks)
	if len(v.TreeUp) != int(n) || len(v.TreeDown) != int(n) {
		return fmt.Errorf("no tree over %d ranks", n)
	}
	for r := range n {
		up := v.TreeUp[r]
		if up >= n || (up >= 0 && !hasChild(v, up, r)) {
			return fmt.Errorf("rank %d: its parent %d does not know it", r, up)
		}
		for _, d := range v.TreeDown[r] {
			if d >= 0 && d < n && v.TreeUp[d] != r {
				return fmt.Errorf("rank %d: child %d has another parent", r, d)
			}
		}
	}
	return nil
}

func hasChild(v *connect.NVLSChannel, up, r int32) bool {
	for _, d := range v.TreeDown[up] {
		if d == r {
			return true
		}
	}
	return false
}

// headOf returns the rank of the head of a node.
func (p *Plan) headOf(ch, node int32, head int) int32 {
	return p.nvls.heads[int(ch)-p.Split.ChannelLo][int(node)*p.nvls.nHeads+head]
}

// nvlsID returns the first connection id of a rank on a channel.
func (p *Plan) nvlsID(ch, rank int32) int32 {
	return p.headsID(ch, rank, p.nvls.nHeads)
}

func (p *Plan) nvlsConn(c *Conn) {
	h := int32(p.nvls.nHeads)
	rank, i := p.headsAt(c, p.nvls.nHeads)
	c.Kind = connect.NVLSRoute
	node := p.Comm.NodeOf[rank]
	switch {
	case i < h:
		c.Src, c.Dst = rank, p.headOf(c.Channel, node, int(i))
	case i < 2*h:
		c.Src, c.Dst = p.headOf(c.Channel, node, int(i-h)), rank
	case p.Req.Algo == coll.NVLS && p.netOf != nil:
		p.netConn(c, rank, i == 2*h+1)
	default:
		c.Kind = connect.NVLSTreeRoute
		if p.Req.Algo != coll.NVLSTree || p.Comm.NVLS[c.Channel].TreeUp[rank] < 0 {
			return
		}
		c.Src, c.Dst = rank, p.Comm.NVLS[c.Channel].TreeUp[rank]
		if i == 2*h+1 {
			c.Src, c.Dst = c.Dst, c.Src
		}
	}
}

// nvlsPrograms lists the groups of a rank (all_reduce.h:383 and 506,
// all_gather.h:214, reduce_scatter.h:198): 20 warps in all.
func (p *Plan) nvlsPrograms(dst []Program, base Program) []Program {
	const warps = 20
	group := func(role Role, n int, sends bool) {
		pr := base
		pr.Role, pr.Threads = role, int32(n)*WarpSize
		dst = append(dst, pr.withWorkers(sends))
		base.Group++
	}
	switch p.Req.Func {
	case coll.AllGather:
		group(RoleGather, 8, false)
		group(RoleBroadcast, warps-8, true)
		return dst
	case coll.ReduceScatter:
		group(RoleScatter, 8, true)
		group(RoleReduce, warps-8, false)
		return dst
	}
	v := &p.Comm.NVLS[base.Channel]
	up := p.Req.Algo == coll.NVLSTree && v.TreeUp[base.Rank] >= 0
	bcast, reduce := 0, 5
	switch {
	case up:
		bcast = 4
	case p.Comm.NRanks <= 6:
		reduce = 7
	}
	group(RoleScatter, (warps-reduce-bcast+1)/2, true)
	group(RoleGather, (warps-reduce-bcast)/2, false)
	if v.HeadIndex[base.Rank] < 0 {
		return dst
	}
	group(RoleReduce, reduce, true)
	if up {
		group(RoleBroadcast, bcast, true)
	}
	return dst
}

func (c *Cursor) openNVLS() {
	p := c.p
	h := int32(p.nvls.nHeads)
	c.n = h
	c.from, c.to = c.fromBuf[:0], c.toBuf[:0]
	c.next = (*Cursor).nextNVLSHead
	if p.Req.Func == coll.AllReduce {
		c.loop = int64(h) * c.chunk
		c.shortenNVLS()
	}
	switch c.pr.Role {
	case RoleScatter, RoleGather:
		c.next = (*Cursor).nextNVLSSpread
		return
	}
	rank, ch := c.pr.Rank, c.pr.Channel
	node := p.Comm.NodeOf[rank]
	mine := p.Comm.NVLS[ch].HeadIndex[rank]
	c.head = mine
	self := p.nvlsID(ch, rank)
	tree := p.Req.Algo == coll.NVLSTree
	hasUp := tree && p.Comm.NVLS[ch].TreeUp[rank] >= 0
	if c.pr.Role == RoleReduce {
		for _, r := range p.Comm.NodeRanks[node] {
			c.from = append(c.from, p.nvlsID(ch, r)+mine)
		}
		c.from = c.appendKids(c.from, 0)
		if hasUp {
			c.to = append(c.to, self+2*h)
			return
		}
	} else if hasUp {
		c.from = append(c.from, self+2*h+1)
	}
	if p.Req.Func == coll.ReduceScatter {
		return
	}
	for _, r := range p.Comm.NodeRanks[node] {
		c.to = append(c.to, p.nvlsID(ch, r)+h+mine)
	}
	c.to = c.appendKids(c.to, 1)
}

// appendKids appends the tree connections of a head's children between nodes.
func (c *Cursor) appendKids(ids []int32, down int32) []int32 {
	if c.p.Req.Algo != coll.NVLSTree {
		return ids
	}
	for _, d := range c.p.Comm.NVLS[c.pr.Channel].TreeDown[c.pr.Rank] {
		if d >= 0 && int(d) < c.p.Comm.NRanks {
			ids = append(ids, c.p.nvlsID(c.pr.Channel, d)+2*c.n+down)
		}
	}
	return ids
}

// shortenNVLS spreads an incomplete last turn over the heads: in whole 16 KiB
// within a node, 16 bytes between nodes (all_reduce.h:409, 523).
func (c *Cursor) shortenNVLS() {
	rest := c.total - c.off
	if rest <= 0 || rest >= c.loop {
		return
	}
	grain := int64(16384)
	if c.p.Req.Algo == coll.NVLSTree {
		grain = 16
	}
	c.chunk = alignUp(divUp(rest/c.es, int64(c.n)), grain/c.es) * c.es
}

// nextNVLSSpread: scatter and gather handle the piece of every head in turn;
// one primitive of NCCL is nHeads ops here.
func (c *Cursor) nextNVLSSpread(op *Op) bool {
	if c.off >= c.total {
		return false
	}
	h := int64(c.head)
	bytes, place := min(c.chunk, c.total-c.off), c.grid+c.off+h*c.block
	if c.p.Req.Func == coll.AllReduce {
		bytes = min(c.chunk, c.total-c.off-h*c.chunk)
		place = c.grid + c.off + h*c.chunk
	}
	id := c.p.nvlsID(c.pr.Channel, c.pr.Rank) + c.head
	op.Chunk = c.turn*c.n + c.head
	if c.pr.Role == RoleScatter {
		c.toBuf[0] = id
		c.to = c.toBuf[:1]
		c.emit(op, Send, bytes)
		op.Src = input(place)
	} else {
		c.fromBuf[0] = id + c.n
		c.from = c.fromBuf[:1]
		c.emit(op, Recv|Copy, bytes)
		op.Dst = output(place)
	}
	op.Step = c.turn
	if c.head++; c.head == c.n {
		c.head = 0
		c.nvlsTurn()
	}
	return true
}

func (c *Cursor) nvlsTurn() {
	c.off += c.loop
	c.turn++
	if c.p.Req.Func == coll.AllReduce {
		c.shortenNVLS()
	}
}

// nextNVLSHead: a head's own share, through the switch.
func (c *Cursor) nextNVLSHead(op *Op) bool {
	if c.off >= c.total {
		return false
	}
	op.Chunk = c.turn*c.n + c.head
	bytes := min(c.chunk, c.total-c.off)
	switch c.p.Req.Func {
	case coll.AllGather:
		c.emit(op, Send, bytes)
		op.Src = input(c.grid + c.off)
	case coll.ReduceScatter:
		c.emit(op, Recv|Reduce|Copy, bytes)
		op.Dst = output(c.grid + c.off)
	default:
		bytes = min(c.chunk, c.total-c.off-int64(c.head)*c.chunk)
		do := Recv | Send
		if c.pr.Role == RoleReduce {
			do |= Reduce
		}
		c.emit(op, do, bytes)
	}
	c.nvlsTurn()
	return true
}
