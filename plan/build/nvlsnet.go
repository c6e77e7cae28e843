package build

import (
	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/connect"
	"github.com/simccl/simccl/plan"
)

// nvlsNet generates the programs of NVLS between nodes: the heads of a node
// reduce through its switch, and the network reduces what the heads of all nodes
// send.
type nvlsNet struct {
	collNet
	nvlsHeads
}

func newNVLSNet(b base, h nvlsHeads) (plan.Generator, error) {
	g := &nvlsNet{collNet{base: b}, h}
	rails := b.comm.NVLSHeads
	if err := g.checkRails(rails); err != nil {
		return nil, err
	}
	return g, g.meet(int(h.n), func(_ int32, i int) []int32 { return rails[i] })
}

// Conn implements plan.Generator.
func (g *nvlsNet) Conn(c *plan.Conn) {
	rank, place := g.locate(c)
	c.Kind = connect.NVLSRoute
	if !g.conn(c, g.index(c.Channel), g.comm.NodeOf[rank], rank, place) {
		g.joinNet(c, rank, place == g.down())
	}
}

// AppendPrograms implements plan.Generator.
func (g *nvlsNet) AppendPrograms(dst []plan.Program, rank int32) []plan.Program {
	return g.eachChannel(dst, rank, g.channel)
}

// channel appends the groups of a rank (all_reduce.h:395-405, all_gather.h:277, reduce_scatter.h:208): 20
// warps in all; on a rank that is no head, the warps for the network are idle.
func (g *nvlsNet) channel(dst []plan.Program, pr plan.Program) []plan.Program {
	switch g.req.Func {
	case coll.AllGather:
		return groups(dst, pr, group{plan.RoleGather, 8, false}, group{plan.RoleSend, 6, true},
			group{plan.RoleBroadcast, 6, true})
	case coll.ReduceScatter:
		return groups(dst, pr, group{plan.RoleRecv, 6, false}, group{plan.RoleScatter, 8, true},
			group{plan.RoleReduce, 6, true})
	}
	if g.comm.NVLS[pr.Channel].HeadIndex[pr.Rank] >= 0 {
		return groups(dst, pr, group{plan.RoleScatter, 8, true}, group{plan.RoleGather, 7, false},
			group{plan.RoleReduce, 3, true}, group{plan.RoleBroadcast, 2, true})
	}
	scatter, gather := 8, 7
	if g.comm.NRanks <= 6 {
		scatter, gather = 7, 6
	}
	return groups(dst, pr, group{plan.RoleScatter, scatter, true}, group{plan.RoleGather, gather, false})
}

// NumOps implements plan.Generator.
func (g *nvlsNet) NumOps(pr *plan.Program) int64 { return g.numOps(pr, g.Fanout(pr)) }

// Fanout implements plan.Generator: scatter and gather serve all heads.
func (g *nvlsNet) Fanout(pr *plan.Program) int32 {
	if pr.Role == plan.RoleScatter || pr.Role == plan.RoleGather {
		return g.n
	}
	return 1
}

// Open implements plan.Generator.
func (g *nvlsNet) Open(pr *plan.Program, old plan.Stream) plan.Stream {
	spread := pr.Role == plan.RoleScatter || pr.Role == plan.RoleGather
	out := g.open(pr, old, spread)
	s, self := out.common(), g.firstID(pr.Channel, pr.Rank)
	s.head = g.comm.NVLS[pr.Channel].HeadIndex[pr.Rank]
	switch pr.Role {
	case plan.RoleScatter:
		s.do, s.src = plan.Send, true
		s.first, s.heads = self+g.to(0), g.n
	case plan.RoleGather:
		s.do, s.dst = plan.Recv|plan.Copy, true
		s.first, s.heads = self+g.from(0), g.n
	case plan.RoleReduce:
		s.do = plan.Recv | plan.Reduce | plan.Send
		s.from, s.to = g.appendPeers(s.from, pr, g.to(s.head)), append(s.to, self+g.up())
	case plan.RoleBroadcast:
		s.do = plan.Recv | plan.Send
		s.from, s.to = append(s.from, self+g.down()), g.appendPeers(s.to, pr, g.from(s.head))
	case plan.RoleSend, plan.RoleRecv:
		s.openOwn(pr.Role, self, g.heads)
	}
	return out
}

// appendPeers appends, for every rank of the node, its connection at a given place.
func (g *nvlsNet) appendPeers(ids []int32, pr *plan.Program, place int32) []int32 {
	for _, r := range g.node(pr.Rank) {
		ids = append(ids, g.firstID(pr.Channel, r)+place)
	}
	return ids
}
