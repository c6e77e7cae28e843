package build

import (
	"slices"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/connect"
	"github.com/simccl/simccl/plan"
	"github.com/simccl/simccl/plan/internal/channels"
	"github.com/simccl/simccl/rules"
)

// directWarps is the least number of warps that a CollNetDirect kernel divides among its groups.
const directWarps = 12

// directAlgo is CollNetDirect: every rank exchanges with every head of its node, and the heads with the
// network that reduces.
type directAlgo struct{}

func (directAlgo) supports(c *connect.Layout, r *plan.Request) error {
	if err := collNetSupported(c, r); err != nil {
		return err
	}
	switch n := &c.CollNet; {
	case rooted(r.Func):
		return noKernel(r, "CollNetDirect has no rooted operations")
	case len(n.Heads) == 0 || len(n.Heads[0]) == 0:
		return noKernel(r, "the communicator has no CollNetDirect heads")
	case len(n.Heads[0]) == 1 && c.MinLocalRanks == 1 && c.MaxLocalRanks > 1:
		return noKernel(r,
			"nodes of one rank and of more cut chunks of different size%s",
			c.Rules.Aside(rules.AtCollNetDepth))
	}
	return enoughWarps(r, directWarps)
}

func (directAlgo) split(c *connect.Layout, r *plan.Request) (plan.Split, error) {
	heads := len(c.CollNet.Heads[0])
	stages := int64(2)
	if heads == 1 && c.MaxLocalRanks == 1 { // only the network's transfers remain
		stages = 1
	}
	// enqueue.cc:2030
	return channels.Stripes(c, r, c.NChannels, heads, func(step, nBytes, perLoop int64) int64 {
		return channels.Halve(channels.Halve(step, nBytes, perLoop, 64*stages, 131072), nBytes, perLoop,
			8*stages, 32768)
	})
}

func (directAlgo) generator(b base) (plan.Generator, error) {
	c := b.comm
	g := &direct{rank: c.CollNet.Heads, headOf: slices.Repeat([]int32{-1}, c.NRanks)}
	if len(g.rank) != c.NNodes || len(g.rank[0]) == 0 {
		return nil, badRequest("Comm", "has no CollNet heads on every node")
	}
	g.heads = heads{int32(len(g.rank[0]))}
	for node, ranks := range g.rank {
		if len(ranks) != int(g.n) || len(c.CollNet.Order[node]) != int(g.n) {
			return nil, badRequest("Comm", "node %d has %d CollNet heads and node 0 %d", node, len(ranks),
				g.n)
		}
		for h, r := range ranks {
			g.headOf[r] = int32(h)
		}
	}
	b.perRank = g.ids()
	g.base = b
	rails := make([][]int32, g.n)
	for h := range rails {
		rails[h] = column(g.rank, h)
	}
	if err := g.checkRails(rails); err != nil {
		return nil, err
	}
	return g, g.meet(len(rails), func(_ int32, h int) []int32 { return rails[h] })
}

// column lists the h-th rank of every node.
func column(rows [][]int32, h int) []int32 {
	out := make([]int32, len(rows))
	for i, row := range rows {
		out[i] = row[h]
	}
	return out
}

// direct generates the programs of CollNetDirect.
type direct struct {
	collNet
	heads
	rank   [][]int32 // node → rank of each head
	headOf []int32   // rank → head; -1: none
}

// Conn implements plan.Generator.
func (g *direct) Conn(c *plan.Conn) {
	rank, place := g.locate(c)
	c.Kind = connect.CollNetDirectRoute
	if place >= g.up() {
		g.joinNet(c, rank, place == g.down())
		return
	}
	head := g.rank[g.comm.NodeOf[rank]][place%g.n]
	switch {
	case head == rank:
	case place < g.n:
		c.Src, c.Dst = rank, head
	default:
		c.Src, c.Dst = head, rank
	}
}

// AppendPrograms implements plan.Generator.
func (g *direct) AppendPrograms(dst []plan.Program, rank int32) []plan.Program {
	if g.req.Func != coll.AllReduce {
		return g.eachChannel(dst, rank, g.railGroups)
	}
	return g.eachChannel(dst, rank, g.reduceGroups)
}

// railGroups appends the groups of all-gather and reduce-scatter (all_gather.h:458, reduce_scatter.h:407):
// the warps are divided among groups for the network, for network and peers, and for the peers of the node.
func (g *direct) railGroups(dst []plan.Program, pr plan.Program) []plan.Program {
	warps := g.req.Warps
	net, peers := 1, 2
	if g.n == 1 {
		peers = 0
	}
	both := max(peers, 1)
	share := func(n int) int { return int(float32(warps) / float32(net+both+peers) * float32(n)) }
	if g.req.Func == coll.AllGather {
		third, second := share(peers), share(both)
		return groups(dst, pr, group{plan.RoleSend, warps - second - third, true},
			group{plan.RoleBroadcast, second, true}, group{plan.RoleGather, third, false})
	}
	third, second := share(net), share(both)
	first := warps - second - third
	if peers == 0 {
		first = 0
	}
	return groups(dst, pr, group{plan.RoleScatter, first, true}, group{plan.RoleReduce, second, true},
		group{plan.RoleRecv, third, false})
}

// reduceGroups appends the groups of all-reduce (all_reduce.h:252-271). Threads that NCCL reserves for tasks
// that a rank does not have are idle.
func (g *direct) reduceGroups(dst []plan.Program, pr plan.Program) []plan.Program {
	const copies = 3 // COLLNET_COPY_THREADS, in warps
	warps := g.req.Warps
	head := g.headOf[pr.Rank] >= 0
	up := g.n > 1 || !head
	down := head && len(g.node(pr.Rank)) > 1
	switch {
	case up && down:
		return groups(dst, pr, group{plan.RoleGather, copies, false}, group{plan.RoleBroadcast, 1 + copies,
			true},
			group{plan.RoleScatter, 1 + copies, true}, group{plan.RoleReduce, warps - 3*copies - 2, true})
	case up:
		return groups(dst, pr, group{plan.RoleGather, 2 * copies, false},
			group{plan.RoleScatter, 1 + 3*copies, true})
	}
	return groups(dst, pr, group{plan.RoleBroadcast, 1 + 2*copies, down},
		group{plan.RoleReduce, warps - 2*copies - 2, true})
}

// NumOps implements plan.Generator.
func (g *direct) NumOps(pr *plan.Program) int64 { return g.numOps(pr, g.Fanout(pr)) }

// Fanout implements plan.Generator: scatter and gather serve all heads except the rank itself.
func (g *direct) Fanout(pr *plan.Program) int32 {
	switch {
	case pr.Role != plan.RoleScatter && pr.Role != plan.RoleGather:
		return 1
	case g.headOf[pr.Rank] >= 0:
		return g.n - 1
	}
	return g.n
}

// Open implements plan.Generator.
func (g *direct) Open(pr *plan.Program, old plan.Stream) plan.Stream {
	spread := pr.Role == plan.RoleScatter || pr.Role == plan.RoleGather
	out := g.open(pr, old, spread)
	s, self := out.common(), g.firstID(pr.Channel, pr.Rank)
	s.head = g.headOf[pr.Rank]
	switch pr.Role {
	case plan.RoleScatter:
		s.do, s.src = plan.Send, true
		g.throughHeads(s, self+g.to(0))
	case plan.RoleGather:
		s.do, s.dst = plan.Recv|plan.Copy, true
		g.throughHeads(s, self+g.from(0))
	case plan.RoleReduce:
		s.do, s.src = plan.Send, true
		if s.from = g.appendOthers(s.from, pr, s.head, g.to(s.head)); len(s.from) > 0 {
			s.do |= plan.Recv | plan.Reduce
		}
		s.to = append(s.to, self+g.up())
	case plan.RoleBroadcast:
		s.do, s.dst = plan.Recv|plan.Copy, true
		if g.req.Func == coll.AllReduce {
			s.do |= plan.PostOp
		}
		s.from = append(s.from, self+g.down())
		if s.to = g.appendOthers(s.to, pr, s.head, g.from(s.head)); len(s.to) > 0 {
			s.do |= plan.Send
		}
	case plan.RoleSend, plan.RoleRecv:
		s.openOwn(pr.Role, self, g.heads)
	}
	return out
}

// throughHeads lets a program serve the heads of its node except itself. In all-reduce each rank begins with
// another head, by rank; otherwise with the head after its own (connect.cc:219, 231).
func (g *direct) throughHeads(s *netStream, first int32) {
	s.first, s.heads, s.self, s.shift = first, g.n, s.head, s.head
	if g.req.Func == coll.AllReduce {
		s.shift = s.rank % int32(len(g.node(s.rank))) % s.heads
	}
}

// appendOthers appends, with the other ranks of its node, a head's connections at a given place.
func (g *direct) appendOthers(ids []int32, pr *plan.Program, head, place int32) []int32 {
	node := g.comm.NodeOf[pr.Rank]
	if g.req.Func == coll.AllReduce {
		for _, r := range g.comm.CollNet.Order[node][head] {
			if r != pr.Rank {
				ids = append(ids, g.firstID(pr.Channel, r)+place)
			}
		}
		return ids
	}
	for i := int32(1); i < g.n; i++ {
		ids = append(ids, g.firstID(pr.Channel, g.rank[node][(head+i)%g.n])+place)
	}
	return ids
}
