package build

import (
	"fmt"
	"slices"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/connect"
	"github.com/simccl/simccl/plan"
	"github.com/simccl/simccl/plan/internal/channels"
	"github.com/simccl/simccl/rules"
)

// netChannels is the number of channels of a head that one network operation combines (COLLNET_GROUP_NSUBS,
// transport/coll_net.cc:32).
const netChannels = 8

// maxDirect is the largest number of ranks that a head exchanges with (NCCL_MAX_DIRECT_ARITY,
// include/device.h:184).
const maxDirect = 7

// collNet is the part that the algorithms with in-network reduction share: CollNetDirect, CollNetChain, and
// NVLS between nodes. Their channels take chunks round-robin (Split.Striped).
//
// In all-reduce an iteration is a chunk of every head of every channel, in this order. With 2 channels and 2
// heads, channel 0 does chunks 0 and 1, channel 1 chunks 2 and 3, and in the next iteration channel 0 does 4
// and 5.
//
// All-gather and reduce-scatter use rails: a rail is the blocks of the ranks with the same head index, laid
// end to end by node; an iteration of it is a chunk of every channel (rails.go).
type collNet struct {
	base
	groups []plan.NetGroup
	of     []int32 // channel of the split · ranks + rank → group; -1: none
}

// collNetSupported returns an error for communicators that no CollNet kernel can serve.
func collNetSupported(c *connect.Layout, r *plan.Request) error {
	switch {
	case !c.CollNet.Enabled:
		return noKernel(r, "the communicator has no CollNet (in-network reduction)")
	case c.MaxLocalRanks > maxDirect+1:
		return noKernel(r, "a node has %d ranks, and CollNet is for %d at most%s",
			c.MaxLocalRanks, maxDirect+1, c.Rules.Aside(rules.AtCollNetDirectRanks))
	}
	return nil
}

// enoughWarps returns an error if there are fewer warps than a kernel divides among its groups.
func enoughWarps(r *plan.Request, least int) error {
	if r.Warps < least {
		return badRequest("Warps", "%d; a kernel of %v has at least %d", r.Warps, r.Algo, least)
	}
	return nil
}

// NetGroups implements plan.Generator.
func (g *collNet) NetGroups() []plan.NetGroup { return g.groups }

// meet makes the NetGroups: it groups the channels of the split on which equal sets of ranks, each listed by
// node, meet in the network. sets is the number of sets per channel.
func (g *collNet) meet(sets int, ranks func(channel int32, set int) []int32) error {
	n := g.comm.NRanks
	owner := make([]int32, n) // rank → set + 1
	var met []plan.NetGroup
	for ch := int32(g.split.ChannelLo); ch <= int32(g.split.ChannelHi); ch++ {
		for set := range sets {
			of := ranks(ch, set)
			at := owner[of[0]]
			if at == 0 {
				if err := checkRail(g.comm, of); err != nil {
					return err
				}
				met = append(met, plan.NetGroup{Ranks: of, Chunk: g.split.Lo.ChunkSize})
			}
			for _, r := range of {
				if owner[r] != at {
					return badRequest("Comm",
						"on channel %d rank %d meets other ranks in the network than on those before", ch, r)
				}
				if at == 0 {
					owner[r] = int32(len(met))
				}
			}
			m := &met[owner[of[0]]-1]
			m.Channels = append(m.Channels, ch)
		}
	}
	g.of = slices.Repeat([]int32{-1}, n*g.split.NChannels)
	for _, m := range met {
		all := m.Channels
		m.Total = int32(len(all))
		for m.Channels = range slices.Chunk(all, netChannels) {
			for _, ch := range m.Channels {
				for _, r := range m.Ranks {
					g.of[int(g.index(ch))*n+int(r)] = int32(len(g.groups))
				}
			}
			g.groups = append(g.groups, m)
			m.First += int32(len(m.Channels))
		}
	}
	return nil
}

// checkRail returns an error unless NCCL connects these ranks, one of each node, with each other: it connects
// the heads of equal index (transport.cc:319).
func checkRail(c *connect.Layout, ranks []int32) error {
	all := c.CollNet.NetHeads
	h := -1
	for node, r := range ranks {
		i := -1
		if node < len(all) {
			i = slices.Index(all[node], r)
		}
		if i < 0 || node > 0 && i != h {
			return badRequest("Comm", "rank %d is not connected to the network as rank %d is", r, ranks[0])
		}
		h = i
	}
	return nil
}

// checkRails returns an error unless, in all-gather and reduce-scatter, every rank is the head of its rail.
// rails lists, by head, the rank of each node.
func (g *collNet) checkRails(rails [][]int32) error {
	if g.req.Func == coll.AllReduce {
		return nil
	}
	no := func(format string, args ...any) error {
		return &plan.UnsupportedError{What: fmt.Sprintf("%v with %v", g.req.Func, g.req.Algo),
			Why: fmt.Sprintf(format, args...)}
	}
	net := g.comm.CollNet.NetHeads
	for node, ranks := range g.comm.NodeRanks {
		if len(ranks) != len(rails) {
			return no("every rank must reach the network by itself: node %d has %d ranks and %d heads%s",
				node, len(ranks), len(rails), g.comm.Rules.Aside(rules.AtGatherHeads))
		}
		for h := range rails {
			if node >= len(net) || h >= len(net[node]) || net[node][h] != rails[h][node] {
				return no("rank %d is not the same head here and in the network, and NCCL would put its "+
					"block in another's place", rails[h][node])
			}
		}
	}
	return nil
}

// joinNet makes c the connection of a head to the network, or from it.
func (g *collNet) joinNet(c *plan.Conn, head int32, from bool) {
	group := g.of[int(g.index(c.Channel))*g.comm.NRanks+int(head)]
	if group < 0 {
		return
	}
	c.Kind, c.NetGroup = connect.CollNetRoute, group
	c.Src, c.Dst = head, plan.Network
	if from {
		c.Src, c.Dst = plan.Network, head
	}
}

// share returns a channel's share: its first chunk begins at begin; total is the end of the whole operation.
func (g *collNet) share(channel int32) share {
	count, es := g.req.Elements()
	part := &g.split.Lo
	s := share{es: int64(es), block: count * int64(es)}
	s.chunk, s.loop, s.total = int64(part.ChunkSize), int64(part.LoopSize), part.Count*s.es
	i := int64(g.index(channel))
	s.begin = i * s.loop / int64(g.split.NChannels)
	if g.req.Func != coll.AllReduce {
		s.total *= int64(g.comm.NNodes)
		s.begin = i * s.chunk
		s.loop = int64(g.split.NChannels) * s.chunk
	}
	return s
}

// numOps returns the number of ops of a program that serves fanout connections: one for each iteration and
// connection, and more if a step covers blocks of several nodes.
func (g *collNet) numOps(pr *plan.Program, fanout int32) int64 {
	s := g.share(pr.Channel)
	ops := channels.DivUp(s.total, s.loop)
	if g.req.Func == coll.AllReduce || pr.Role == plan.RoleSend || pr.Role == plan.RoleRecv {
		return ops * int64(fanout)
	}
	for node := range int64(g.comm.NNodes - 1) {
		border := (node + 1) * s.block
		if border%s.chunk != 0 && border/s.chunk*s.chunk%s.loop == s.begin {
			ops++
		}
	}
	return ops * int64(fanout)
}

// opened is a stream of a collNet generator whose connections are still to be set.
type opened interface {
	plan.Stream
	common() *netStream
}

// open opens the stream of a program that serves all heads round-robin (spread), or a single head.
func (g *collNet) open(pr *plan.Program, old plan.Stream, spread bool) opened {
	var s opened
	switch {
	case g.req.Func == coll.AllReduce && spread:
		s = reuse[chunksOfAll](old)
	case g.req.Func == coll.AllReduce:
		s = reuse[chunksOfOne](old)
	case pr.Role == plan.RoleSend || pr.Role == plan.RoleRecv:
		s = reuse[ownBlock](old)
	default:
		s = reuse[blocksOfRail](old)
	}
	n := s.common()
	n.stream.open(pr)
	n.share = g.share(pr.Channel)
	n.do, n.src, n.dst = 0, false, false
	n.headsPerLoop = int32(n.loop / n.chunk / int64(g.split.NChannels))
	n.head, n.first, n.heads, n.self, n.shift, n.peer = 0, 0, 0, -1, 0, 0
	n.g, n.node, n.piece = g, int64(g.comm.NodeOf[pr.Rank]), 0
	return s
}

// netStream holds the state that the streams of collNet share.
type netStream struct {
	stream
	share
	g        *collNet
	do       plan.Do
	src, dst bool // src: the op's own operand is the input; dst: its result is written to the output

	headsPerLoop int32 // chunks of the channel in an iteration
	head         int32 // head number of the rank

	// For programs that serve several heads: the first connection to them, the number of heads, the head that
	// the rank itself is (-1: no head is skipped), the head to begin with, and the position in that order.
	first, heads, self, shift, peer int32

	node  int64 // node of the rank
	piece int64 // bytes of the chunk handled so far
}

func (s *netStream) common() *netStream { return s }

// others returns the number of heads that a rank exchanges with.
func (s *netStream) others() int32 {
	if s.self >= 0 {
		return s.heads - 1
	}
	return s.heads
}

// nextHead returns the head of the next op: one NCCL primitive serves all heads except the rank itself, and
// the plan has an op for each. Ranks begin with different heads (prims_simple.h:447-453).
//
// Of 4 heads, the rank that is head 1 and begins with 2 goes through 3, 0, 2: positions 2, 0 and 1 of the
// remaining heads 0, 2, 3.
func (s *netStream) nextHead() int32 {
	i := (s.peer + s.shift) % s.others()
	if s.self >= 0 && i >= s.self {
		i++
	}
	return i
}

// connect sets the connection with a head as the op's only one.
func (s *netStream) connect(head int32) {
	s.from = append(s.from[:0], s.first+head)
	s.to = append(s.to[:0], s.first+head)
}

// operands sets the op's source and destination in memory.
func (s *netStream) operands(op *plan.Op, place int64) {
	if s.src {
		op.Src = input(place)
	}
	if s.dst {
		op.Dst = output(place)
	}
}

// chunksOfOne is the stream of a head: one chunk of every iteration.
type chunksOfOne struct{ netStream }

func (s *chunksOfOne) Next(op *plan.Op) bool {
	if !s.more() {
		return false
	}
	place := s.done + s.begin + int64(s.head)*s.chunk
	s.emit(op, s.do, min(s.chunk, s.total-place))
	s.operands(op, place)
	op.Step, op.Chunk = s.iter, s.iter*s.headsPerLoop+s.head
	s.next()
	return true
}

// chunksOfAll is the stream of scatter and gather: the chunk of each head.
type chunksOfAll struct{ netStream }

func (s *chunksOfAll) Next(op *plan.Op) bool {
	if !s.more() {
		return false
	}
	h := s.nextHead()
	place := s.done + s.begin + int64(h)*s.chunk
	s.connect(h)
	s.emit(op, s.do, min(s.chunk, s.total-place))
	s.operands(op, place)
	op.Step, op.Chunk = s.iter, s.iter*s.others()+s.peer
	if s.peer++; s.peer == s.others() {
		s.peer = 0
		s.next()
	}
	return true
}
