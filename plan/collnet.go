package plan

import (
	"fmt"
	"slices"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/connect"
)

// CollNetDirect: every rank exchanges with every head of its node, and the
// heads with the network that reduces.

// directShape is who heads what.
type directShape struct {
	nHeads int
	heads  [][]int32 // node → ranks by head
	headOf []int32   // rank → head, -1
}

func (p *Plan) buildDirect() error {
	c := p.Comm
	s := &directShape{heads: c.CollNet.Heads, headOf: slices.Repeat([]int32{-1}, c.NRanks)}
	if len(s.heads) != c.NNodes || len(s.heads[0]) == 0 {
		return &RequestError{"Comm", "has no CollNet heads on every node"}
	}
	s.nHeads = len(s.heads[0])
	for node, heads := range s.heads {
		if len(heads) != s.nHeads || len(c.CollNet.Order[node]) != s.nHeads {
			return &RequestError{"Comm", fmt.Sprintf("node %d has %d CollNet heads and node 0 %d", node, len(heads), s.nHeads)}
		}
		for h, r := range heads {
			s.headOf[r] = int32(h)
		}
	}
	p.direct = s
	rails := make([][]int32, s.nHeads)
	for h := range rails {
		rails[h] = column(s.heads, h)
	}
	if err := p.checkRails(rails); err != nil {
		return err
	}
	return p.buildNets(s.nHeads, func(_ int32, h int) []int32 { return rails[h] })
}

// column lists the h-th rank of every node.
func column(rows [][]int32, h int) []int32 {
	out := make([]int32, len(rows))
	for i, row := range rows {
		out[i] = row[h]
	}
	return out
}

// directID returns the first connection id of a rank on a channel.
func (p *Plan) directID(ch, rank int32) int32 {
	return p.headsID(ch, rank, p.direct.nHeads)
}

func (p *Plan) directConn(c *Conn) {
	h := int32(p.direct.nHeads)
	rank, i := p.headsAt(c, p.direct.nHeads)
	c.Kind = connect.CollNetDirectRoute
	if i >= 2*h {
		p.netConn(c, rank, i == 2*h+1)
		return
	}
	head := p.direct.heads[p.Comm.NodeOf[rank]][i%h]
	switch {
	case head == rank:
	case i < h:
		c.Src, c.Dst = rank, head
	default:
		c.Src, c.Dst = head, rank
	}
}

// directPrograms lists the groups of a rank (all_reduce.h:252-271,
// all_gather.h:458, reduce_scatter.h:407). Threads that NCCL sets aside for
// what a rank does not do are idle.
func (p *Plan) directPrograms(dst []Program, base Program) []Program {
	warps := p.Req.Warps
	if p.Req.Func != coll.AllReduce {
		net, peers := 1, 2
		if p.direct.nHeads == 1 {
			peers = 0
		}
		// shares of the network, of both, and of the peers of the node
		all := net + max(peers, 1) + peers
		share := func(n int) int { return int(float32(warps) / float32(all) * float32(n)) }
		if p.Req.Func == coll.AllGather {
			third, second := share(peers), share(max(peers, 1))
			return base.groups(dst, part{RoleSend, warps - second - third, true}, part{RoleBroadcast, second, true}, part{RoleGather, third, false})
		}
		third, second := share(net), share(max(peers, 1))
		first := warps - second - third
		if peers == 0 {
			first = 0
		}
		return base.groups(dst, part{RoleScatter, first, true}, part{RoleReduce, second, true}, part{RoleRecv, third, false})
	}
	const warpsOfCopy = 3 // COLLNET_COPY_THREADS
	head := p.direct.headOf[base.Rank] >= 0
	up := p.direct.nHeads > 1 || !head
	down := head && len(p.Comm.NodeRanks[p.Comm.NodeOf[base.Rank]]) > 1
	switch {
	case up && down:
		return base.groups(dst, part{RoleGather, warpsOfCopy, false}, part{RoleBroadcast, 1 + warpsOfCopy, true},
			part{RoleScatter, 1 + warpsOfCopy, true}, part{RoleReduce, warps - 3*warpsOfCopy - 2, true})
	case up:
		return base.groups(dst, part{RoleGather, 2 * warpsOfCopy, false}, part{RoleScatter, 1 + 3*warpsOfCopy, true})
	}
	return base.groups(dst, part{RoleBroadcast, 1 + 2*warpsOfCopy, down}, part{RoleReduce, warps - 2*warpsOfCopy - 2, true})
}

func (c *Cursor) openDirect() {
	p := c.p
	h := int32(p.direct.nHeads)
	self := p.directID(c.pr.Channel, c.pr.Rank)
	c.head = p.direct.headOf[c.pr.Rank]
	c.net = netCursor{self: -1}
	c.from, c.to = c.fromBuf[:0], c.toBuf[:0]
	switch c.pr.Role {
	case RoleScatter:
		c.net.do, c.net.src = Send, true
		c.openHeads(self)
	case RoleGather:
		c.net.do, c.net.dst = Recv|Copy, true
		c.openHeads(self + h)
	case RoleReduce:
		c.net.do, c.net.src = Send, true
		if c.from = p.appendOthers(c.from, c.pr, c.head, 0); len(c.from) > 0 {
			c.net.do |= Recv | Reduce
		}
		c.to = append(c.to, self+2*h)
	case RoleBroadcast:
		c.net.do, c.net.dst = Recv|Copy, true
		if p.Req.Func == coll.AllReduce {
			c.net.do |= PostOp
		}
		c.from = append(c.from, self+2*h+1)
		if c.to = p.appendOthers(c.to, c.pr, c.head, h); len(c.to) > 0 {
			c.net.do |= Send
		}
	case RoleSend, RoleRecv:
		c.openOwn(self, h)
	}
	c.openStripes()
}

// openHeads makes a program go through the heads of its node but itself. In
// all-reduce it begins with another on each rank, by rank; else with the head
// after its own (connect.cc:219, 231).
func (c *Cursor) openHeads(first int32) {
	p := c.p
	c.net.first, c.net.heads, c.net.self = first, int32(p.direct.nHeads), c.head
	c.net.shift = c.head
	if p.Req.Func == coll.AllReduce {
		c.net.shift = c.pr.Rank % int32(len(p.Comm.NodeRanks[p.Comm.NodeOf[c.pr.Rank]])) % c.net.heads
	}
}

// appendOthers appends a head's connections with the other ranks of its node:
// those from them where place is 0, those to them where it is the number of
// heads.
func (p *Plan) appendOthers(ids []int32, pr Program, head, place int32) []int32 {
	node := p.Comm.NodeOf[pr.Rank]
	if p.Req.Func == coll.AllReduce {
		for _, r := range p.Comm.CollNet.Order[node][head] {
			if r != pr.Rank {
				ids = append(ids, p.directID(pr.Channel, r)+place+head)
			}
		}
		return ids
	}
	h := int32(p.direct.nHeads)
	for i := int32(1); i < h; i++ {
		ids = append(ids, p.directID(pr.Channel, p.direct.heads[node][(head+i)%h])+place+head)
	}
	return ids
}
