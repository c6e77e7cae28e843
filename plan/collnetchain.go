package plan

import (
	"fmt"

	"github.com/simccl/simccl/connect"
)

// CollNetChain: the ranks of a node reduce along a chain, whose top exchanges
// with the network that reduces.

// chainOf returns the neighbours in the chain of a channel, by rank.
func (p *Plan) chainOf(ch int32) (up, down []int32) {
	i := p.Comm.CollNet.ChainOf[ch]
	return p.Comm.CollNet.ChainUp[i], p.Comm.CollNet.ChainDown[i]
}

func (p *Plan) buildChain() error {
	c := p.Comm
	for ch := p.Split.ChannelLo; ch <= p.Split.ChannelHi; ch++ {
		if ch >= len(c.CollNet.ChainOf) || c.CollNet.ChainOf[ch] < 0 {
			return &RequestError{"Comm", fmt.Sprintf("channel %d has no CollNet chain", ch)}
		}
	}
	return p.buildNets(1, func(ch int32, _ int) []int32 {
		tops := make([]int32, c.NNodes)
		up, _ := p.chainOf(ch)
		for r, above := range up {
			if int(above) == c.NRanks {
				tops[c.NodeOf[r]] = int32(r)
			}
		}
		return tops
	})
}

// chainConn: id 2r is from rank r up its chain or to the network, 2r+1 back.
func (p *Plan) chainConn(c *Conn) {
	n := int32(p.Comm.NRanks)
	r, back := c.ID%(2*n)/2, c.ID%2 == 1
	c.Channel, c.Kind = int32(p.Split.ChannelLo)+c.ID/(2*n), connect.CollNetChainRoute
	up, _ := p.chainOf(c.Channel)
	switch {
	case up[r] == n:
		p.netConn(c, r, back)
	case back:
		c.Src, c.Dst = up[r], r
	default:
		c.Src, c.Dst = r, up[r]
	}
}

// chainPrograms: one group reduces up the chain, the other broadcasts down
// (all_reduce.h:631-652). NCCL splits threads as for the tree.
func (p *Plan) chainPrograms(dst []Program, base Program) []Program {
	up := base.Threads / 2
	if up >= 256 {
		up += 64
	}
	reduce, bcast := base, base
	reduce.Role, reduce.Threads = RoleChainReduce, up
	bcast.Role, bcast.Threads, bcast.Group = RoleChainBroadcast, base.Threads-up, 1
	return append(dst, reduce.withWorkers(true), bcast.withWorkers(true))
}

func (c *Cursor) openChain() {
	p := c.p
	up, down := p.chainOf(c.pr.Channel)
	base := (c.pr.Channel - int32(p.Split.ChannelLo)) * int32(p.Comm.NRanks) * 2
	below, top := down[c.pr.Rank], int(up[c.pr.Rank]) == p.Comm.NRanks
	c.net, c.head = netCursor{self: -1}, 0
	c.from, c.to = c.fromBuf[:0], c.toBuf[:0]
	if c.pr.Role == RoleChainReduce {
		c.net.do, c.net.src = Send, true
		if below >= 0 {
			c.net.do |= Recv | Reduce
			c.from = append(c.from, base+2*below)
		}
		c.to = append(c.to, base+2*c.pr.Rank)
	} else {
		c.net.do, c.net.dst = Recv|Copy, true
		if top {
			c.net.do |= PostOp
		}
		c.from = append(c.from, base+2*c.pr.Rank+1)
		if below >= 0 {
			c.net.do |= Send
			c.to = append(c.to, base+2*below+1)
		}
	}
	c.openStripes()
}
