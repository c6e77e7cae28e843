package build

import (
	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/connect"
	"github.com/simccl/simccl/plan"
	"github.com/simccl/simccl/plan/internal/channels"
)

// chainWarps is the least number of warps that a CollNetChain kernel divides among its groups.
const chainWarps = 2

// chainAlgo is CollNetChain: the ranks of a node reduce along a chain whose top rank exchanges with the
// network that reduces.
type chainAlgo struct{}

func (chainAlgo) supports(c *connect.Layout, r *plan.Request) error {
	if err := collNetSupported(c, r); err != nil {
		return err
	}
	if r.Func != coll.AllReduce {
		return noKernel(r, "only all_reduce has a CollNetChain kernel")
	}
	return enoughWarps(r, chainWarps)
}

func (chainAlgo) split(c *connect.Layout, r *plan.Request) (plan.Split, error) {
	stages := int64(c.NRanks / c.NNodes)
	return channels.Stripes(c, r, c.NChannels, 1, func(step, nBytes, perLoop int64) int64 { // enqueue.cc:2030
		chunk := channels.Halve(min(step, 256<<10), nBytes, perLoop, 64*stages, 131072)
		chunk = channels.Halve(chunk, nBytes, perLoop, 8*stages, 65536)
		return channels.Halve(chunk, nBytes, perLoop, stages, 32768)
	})
}

func (chainAlgo) generator(b base) (plan.Generator, error) {
	b.perRank = 2
	g := &chain{collNet{base: b}}
	for ch := b.split.ChannelLo; ch <= b.split.ChannelHi; ch++ {
		if ch >= len(b.comm.CollNet.ChainOf) || b.comm.CollNet.ChainOf[ch] < 0 {
			return nil, badRequest("Comm", "channel %d has no CollNet chain", ch)
		}
	}
	return g, g.meet(1, func(ch int32, _ int) []int32 { return g.tops(ch) })
}

// chain generates the programs of CollNetChain. The first of a rank's two connections leads up its chain or
// to the network, the second back.
type chain struct{ collNet }

const (
	chainUp = iota
	chainDown
)

// links returns, by rank, the neighbours in the chain of a channel.
func (g *chain) links(ch int32) (up, down []int32) {
	n := &g.comm.CollNet
	i := n.ChainOf[ch]
	return n.ChainUp[i], n.ChainDown[i]
}

// tops lists the rank of each node that exchanges with the network.
func (g *chain) tops(ch int32) []int32 {
	tops := make([]int32, g.comm.NNodes)
	up, _ := g.links(ch)
	for r, above := range up {
		if int(above) == g.comm.NRanks {
			tops[g.comm.NodeOf[r]] = int32(r)
		}
	}
	return tops
}

// Conn implements plan.Generator.
func (g *chain) Conn(c *plan.Conn) {
	r, place := g.locate(c)
	c.Kind = connect.CollNetChainRoute
	up, _ := g.links(c.Channel)
	switch {
	case int(up[r]) == g.comm.NRanks:
		g.joinNet(c, r, place == chainDown)
	case place == chainDown:
		c.Src, c.Dst = up[r], r
	default:
		c.Src, c.Dst = r, up[r]
	}
}

// AppendPrograms implements plan.Generator: one group reduces up the chain, the
// other broadcasts down (all_reduce.h:631-652). NCCL splits threads as for the
// tree.
func (g *chain) AppendPrograms(dst []plan.Program, rank int32) []plan.Program {
	for ch := int32(g.split.ChannelLo); ch <= int32(g.split.ChannelHi); ch++ {
		pr := g.program(rank, ch)
		dst = g.upDown(dst, pr, upThreads(pr.Threads), plan.RoleChainReduce, plan.RoleChainBroadcast)
	}
	return dst
}

// NumOps implements plan.Generator.
func (g *chain) NumOps(pr *plan.Program) int64 { return g.numOps(pr, 1) }

// Open implements plan.Generator.
func (g *chain) Open(pr *plan.Program, old plan.Stream) plan.Stream {
	out := g.open(pr, old, false)
	s, self := out.common(), g.firstID(pr.Channel, pr.Rank)
	up, down := g.links(pr.Channel)
	below := down[pr.Rank]
	if pr.Role == plan.RoleChainReduce {
		s.do, s.src = plan.Send, true
		if below >= 0 {
			s.do |= plan.Recv | plan.Reduce
			s.from = append(s.from, g.firstID(pr.Channel, below)+chainUp)
		}
		s.to = append(s.to, self+chainUp)
		return out
	}
	s.do, s.dst = plan.Recv|plan.Copy, true
	if int(up[pr.Rank]) == g.comm.NRanks { // the top
		s.do |= plan.PostOp
	}
	s.from = append(s.from, self+chainDown)
	if below >= 0 {
		s.do |= plan.Send
		s.to = append(s.to, g.firstID(pr.Channel, below)+chainDown)
	}
	return out
}
