package plan

import (
	"fmt"

	"github.com/simccl/simccl/coll"
)

// NVLS between nodes: the heads of a node reduce through its switch, and the
// network reduces what the heads of all nodes send.

// buildNVLSNet groups the heads that meet in the network.
func (p *Plan) buildNVLSNet() error {
	c := p.Comm
	if err := p.checkRails(c.NVLSHeads); err != nil {
		return err
	}
	return p.buildNets(p.nvls.nHeads, func(_ int32, h int) []int32 { return c.NVLSHeads[h] })
}

// checkRails makes sure that all-gather and reduce-scatter find every rank at
// the head of its rail. heads lists, by head, the rank of each node.
func (p *Plan) checkRails(heads [][]int32) error {
	if p.Req.Func == coll.AllReduce {
		return nil
	}
	c := p.Comm
	for node, ranks := range c.NodeRanks {
		if len(ranks) != len(heads) {
			return &UnsupportedError{fmt.Sprintf("%v with %v", p.Req.Func, p.Req.Algo),
				fmt.Sprintf("every rank must reach the network by itself: node %d has %d ranks and %d heads (tuning.cc:333)", node, len(ranks), len(heads))}
		}
		for h := range heads {
			if node >= len(c.CollNet.NetHeads) || h >= len(c.CollNet.NetHeads[node]) || c.CollNet.NetHeads[node][h] != heads[h][node] {
				return &UnsupportedError{fmt.Sprintf("%v with %v", p.Req.Func, p.Req.Algo),
					fmt.Sprintf("rank %d is not the same head here and in the network, and NCCL would put its block in another's place", heads[h][node])}
			}
		}
	}
	return nil
}

// nvlsNetPrograms lists the groups of a rank (all_reduce.h:395-405,
// all_gather.h:277, reduce_scatter.h:208): 20 warps in all, of which a rank that
// heads nothing leaves those of the network idle.
func (p *Plan) nvlsNetPrograms(dst []Program, base Program) []Program {
	switch p.Req.Func {
	case coll.AllGather:
		return base.groups(dst, part{RoleGather, 8, false}, part{RoleSend, 6, true}, part{RoleBroadcast, 6, true})
	case coll.ReduceScatter:
		return base.groups(dst, part{RoleRecv, 6, false}, part{RoleScatter, 8, true}, part{RoleReduce, 6, true})
	}
	if p.Comm.NVLS[base.Channel].HeadIndex[base.Rank] >= 0 {
		return base.groups(dst, part{RoleScatter, 8, true}, part{RoleGather, 7, false}, part{RoleReduce, 3, true}, part{RoleBroadcast, 2, true})
	}
	scatter, gather := 8, 7
	if p.Comm.NRanks <= 6 {
		scatter, gather = 7, 6
	}
	return base.groups(dst, part{RoleScatter, scatter, true}, part{RoleGather, gather, false})
}

// part is a thread group of so many warps.
type part struct {
	role  Role
	warps int
	sends bool
}

// groups appends a program for each part that has warps.
func (pr Program) groups(dst []Program, parts ...part) []Program {
	group := pr.Group
	for _, g := range parts {
		if g.warps == 0 {
			continue
		}
		q := pr
		q.Role, q.Threads, q.Group = g.role, int32(g.warps)*WarpSize, group
		dst = append(dst, q.withWorkers(g.sends))
		group++
	}
	return dst
}

func (c *Cursor) openNVLSNet() {
	p := c.p
	h := int32(p.nvls.nHeads)
	self := p.nvlsID(c.pr.Channel, c.pr.Rank)
	c.head = p.Comm.NVLS[c.pr.Channel].HeadIndex[c.pr.Rank]
	c.net = netCursor{self: -1}
	c.from, c.to = c.fromBuf[:0], c.toBuf[:0]
	switch c.pr.Role {
	case RoleScatter:
		c.net.do, c.net.src = Send, true
		c.net.first, c.net.heads = self, h
	case RoleGather:
		c.net.do, c.net.dst = Recv|Copy, true
		c.net.first, c.net.heads = self+h, h
	case RoleReduce:
		c.net.do = Recv | Reduce | Send
		c.from, c.to = p.appendPeers(c.from, c.pr, c.head), append(c.to, self+2*h)
	case RoleBroadcast:
		c.net.do = Recv | Send
		c.from, c.to = append(c.from, self+2*h+1), p.appendPeers(c.to, c.pr, h+c.head)
	case RoleSend, RoleRecv:
		c.openOwn(self, h)
	}
	c.openStripes()
}

// appendPeers appends the connection at a place of every rank of the node.
func (p *Plan) appendPeers(ids []int32, pr Program, place int32) []int32 {
	for _, r := range p.Comm.NodeRanks[p.Comm.NodeOf[pr.Rank]] {
		ids = append(ids, p.nvlsID(pr.Channel, r)+place)
	}
	return ids
}

// openStripes picks the loop that a program runs.
func (c *Cursor) openStripes() {
	spread := c.net.heads > 0
	c.net.node = int64(c.p.Comm.NodeOf[c.pr.Rank])
	switch {
	case c.p.Req.Func == coll.AllReduce && spread:
		c.next = (*Cursor).nextStripeSpread
	case c.p.Req.Func == coll.AllReduce:
		c.next = (*Cursor).nextStripe
	case c.pr.Role == RoleSend || c.pr.Role == RoleRecv:
		c.next = (*Cursor).nextOwn
	default:
		c.next = (*Cursor).nextPieces
	}
}
