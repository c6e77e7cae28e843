package plan

import (
	"fmt"
	"slices"

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

// perRank is the number of connection ids of a rank on a channel: to every
// head, from every head, to the network and from it.
func (s *directShape) perRank() int64 { return int64(2*s.nHeads + 2) }

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
	return p.buildNets(s.nHeads, func(_ int32, h int) []int32 { return column(s.heads, h) })
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
	return ((ch-int32(p.Split.ChannelLo))*int32(p.Comm.NRanks) + rank) * int32(p.direct.perRank())
}

func (p *Plan) directConn(c *Conn) {
	per, h := int32(p.direct.perRank()), int32(p.direct.nHeads)
	k, i := c.ID/per, c.ID%per
	rank := k % int32(p.Comm.NRanks)
	c.Channel, c.Kind = int32(p.Split.ChannelLo)+k/int32(p.Comm.NRanks), connect.CollNetDirectRoute
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
