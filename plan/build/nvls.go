package build

import (
	"fmt"
	"slices"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/connect"
	"github.com/simccl/simccl/plan"
	"github.com/simccl/simccl/plan/internal/channels"
)

// nvlsAlgo is NVLS: the switch of a node reduces the data that its heads load and copies the data that they
// store. Between nodes the network reduces the data that the heads send (nvlsnet.go).
type nvlsAlgo struct{}

func (nvlsAlgo) supports(c *connect.Layout, r *plan.Request) error {
	if rooted(r.Func) {
		return noKernel(r, "NVLS has no rooted operations")
	}
	if c.NNodes > 1 && !c.CollNet.Enabled {
		return noKernel(r,
			"between nodes NVLS needs CollNet (in-network reduction), which the communicator has not")
	}
	return nvlsSupported(c, r)
}

// nvlsTiers are the chunk sizes of NVLS (enqueue.cc:2052).
var nvlsTiers = []channels.Tier{{64, 65536}, {8, 32768}, {2, 16384}}

func (nvlsAlgo) split(c *connect.Layout, r *plan.Request) (plan.Split, error) {
	limit := int64(c.NVLSChunkSize)
	if c.NNodes > 1 {
		if r.SlowNVLS {
			limit = c.Rules.Plan.SlowNVLSChunk
		}
		return channels.Stripes(c, r, c.NVLSChannels, headsOf(c), func(step, nBytes, perLoop int64) int64 {
			return channels.ShrinkTiers(min(step, limit), nBytes, perLoop, nvlsTiers)
		})
	}
	rule := channels.OneStep(c.NVLSChannels)
	rule.ChunksPerLoop = int64(headsOf(c))
	rule.Shrink = func(chunk, nBytes int64) int64 {
		if r.Direct && r.Func != coll.AllReduce { // enqueue.cc:2042
			return chunk
		}
		return channels.ShrinkTiers(min(chunk, limit), nBytes, rule.ChunksPerLoop, nvlsTiers)
	}
	return channels.Contiguous(c, r, rule)
}

func (nvlsAlgo) generator(b base) (plan.Generator, error) {
	h, err := newNVLSHeads(&b)
	if err != nil {
		return nil, err
	}
	b.perRank = h.ids()
	if b.comm.NNodes > 1 {
		return newNVLSNet(b, h)
	}
	if b.req.Func != coll.AllReduce && !everyRankHeads(&b) {
		return nil, &plan.UnsupportedError{What: fmt.Sprintf("%v with NVLS", b.req.Func),
			Why: "every rank must be head of one block, the same on all channels"}
	}
	return &nvls{base: b, nvlsHeads: h, grain: b.lastGrain(b.comm.Rules.Plan.NVLSGrain)}, nil
}

// everyRankHeads reports whether each rank is a head, and the same one on all channels.
func everyRankHeads(b *base) bool {
	index := b.comm.NVLS[b.split.ChannelLo].HeadIndex
	for ch := b.split.ChannelLo; ch <= b.split.ChannelHi; ch++ {
		if !slices.Equal(b.comm.NVLS[ch].HeadIndex, index) {
			return false
		}
	}
	return len(index) == len(b.comm.NVLS[b.split.ChannelLo].Heads) && !slices.Contains(index, -1)
}

// nvlsTreeAlgo is NVLSTree: NVLS within a node, and for each head a tree over the nodes.
type nvlsTreeAlgo struct{}

func (nvlsTreeAlgo) supports(c *connect.Layout, r *plan.Request) error {
	if r.Func != coll.AllReduce {
		return noKernel(r, "NVLSTree is for all_reduce")
	}
	return nvlsSupported(c, r)
}

func (nvlsTreeAlgo) split(c *connect.Layout, r *plan.Request) (plan.Split, error) {
	rule := channels.OneStep(c.NVLSChannels)
	rule.ChunksPerLoop = int64(headsOf(c))
	rule.Shrink = func(_, nBytes int64) int64 {
		chunk := min(int64(c.NVLSChunkSize), c.NVLSTreeLimit(r.Params.NVLSTreeMaxChunk))
		return channels.ShrinkTiers(chunk, nBytes, rule.ChunksPerLoop, []channels.Tier{{32, 262144},
			{16, 131072}, {4, 65536}, {1, 32768}})
	}
	return channels.Contiguous(c, r, rule)
}

func (nvlsTreeAlgo) generator(b base) (plan.Generator, error) {
	h, err := newNVLSHeads(&b)
	if err != nil {
		return nil, err
	}
	for ch := b.split.ChannelLo; ch <= b.split.ChannelHi; ch++ {
		if err := checkNVLSTree(b.comm, ch); err != nil {
			return nil, err
		}
	}
	b.perRank = h.ids()
	return &nvls{base: b, nvlsHeads: h, tree: true, grain: b.lastGrain(16)}, nil
}

// checkNVLSTree returns an error unless the links between the heads of nodes form a tree.
func checkNVLSTree(c *connect.Layout, channel int) error {
	v, n := &c.NVLS[channel], int32(c.NRanks)
	if len(v.TreeUp) != int(n) || len(v.TreeDown) != int(n) {
		return badChannel(channel, "no tree over %d ranks", n)
	}
	for r := range n {
		up := v.TreeUp[r]
		if up >= n || (up >= 0 && !slices.Contains(v.TreeDown[up][:], r)) {
			return badChannel(channel, "rank %d: its parent %d does not know it", r, up)
		}
		for _, d := range v.TreeDown[r] {
			if d >= 0 && d < n && v.TreeUp[d] != r {
				return badChannel(channel, "rank %d: child %d has another parent", r, d)
			}
		}
	}
	return nil
}

// nvls generates the programs of NVLS within a node, and of NVLSTree.
//
// In all-reduce an iteration is a chunk of every head. All ranks scatter: they offer each head its chunk. The
// head reduces through the switch, and either stores the result for all ranks, which gather it, or passes it
// up the tree.
type nvls struct {
	base
	nvlsHeads
	tree  bool  // the heads of nodes are connected by a tree
	grain int64 // multiple for chunks of an incomplete last iteration (all_reduce.h:409, 523)
}

// treeUp returns the parent of a head in the tree over nodes; -1: none.
func (g *nvls) treeUp(channel, rank int32) int32 {
	if !g.tree {
		return -1
	}
	return g.comm.NVLS[channel].TreeUp[rank]
}

// Conn implements plan.Generator.
func (g *nvls) Conn(c *plan.Conn) {
	rank, place := g.locate(c)
	if g.conn(c, g.index(c.Channel), g.comm.NodeOf[rank], rank, place) {
		return
	}
	c.Kind = connect.NVLSTreeRoute
	up := g.treeUp(c.Channel, rank)
	if up < 0 {
		return
	}
	if c.Src, c.Dst = rank, up; place == g.down() {
		c.Src, c.Dst = up, rank
	}
}

// AppendPrograms implements plan.Generator.
func (g *nvls) AppendPrograms(dst []plan.Program, rank int32) []plan.Program {
	return g.eachChannel(dst, rank, g.channel)
}

// channel appends the groups of a rank (all_reduce.h:383 and 506, all_gather.h:214, reduce_scatter.h:198): 20
// warps in all. With registered buffers scatter and gather move no data, and have few warps.
func (g *nvls) channel(dst []plan.Program, pr plan.Program) []plan.Program {
	const warps = 20
	few := 8
	if g.req.Direct {
		few = (int(g.n)*4 + plan.WarpSize - 1) / plan.WarpSize
	}
	switch g.req.Func {
	case coll.AllGather:
		return groups(dst, pr, group{plan.RoleGather, few, false}, group{plan.RoleBroadcast, warps - few,
			true})
	case coll.ReduceScatter:
		return groups(dst, pr, group{plan.RoleScatter, few, true}, group{plan.RoleReduce, warps - few, false})
	}
	bcast, reduce := 0, 5
	switch {
	case g.req.Direct:
		if g.treeUp(pr.Channel, pr.Rank) >= 0 {
			bcast = (warps-2)/2 - 1
		}
		reduce = warps - bcast - 2
	case g.treeUp(pr.Channel, pr.Rank) >= 0:
		bcast = 4
	case g.comm.NRanks <= 6:
		reduce = 7
	}
	scatter := group{plan.RoleScatter, (warps - reduce - bcast + 1) / 2, true}
	gather := group{plan.RoleGather, (warps - reduce - bcast) / 2, false}
	if g.comm.NVLS[pr.Channel].HeadIndex[pr.Rank] < 0 {
		return groups(dst, pr, scatter, gather)
	}
	return groups(dst, pr, scatter, gather, group{plan.RoleReduce, reduce, true},
		group{plan.RoleBroadcast, bcast, true})
}

// share returns a channel's share; in all-reduce an iteration has a chunk of every head.
func (g *nvls) share(channel int32) share {
	s := g.base.share(channel)
	if g.req.Func == coll.AllReduce {
		s.loop = int64(g.n) * s.chunk
	}
	return s
}

// NumOps implements plan.Generator.
func (g *nvls) NumOps(pr *plan.Program) int64 {
	s := g.share(pr.Channel)
	return channels.DivUp(s.total, s.loop) * int64(g.Fanout(pr))
}

// Fanout implements plan.Generator: scatter and gather serve all heads.
func (g *nvls) Fanout(pr *plan.Program) int32 {
	if pr.Role == plan.RoleScatter || pr.Role == plan.RoleGather {
		return g.n
	}
	return 1
}

// Open implements plan.Generator.
func (g *nvls) Open(pr *plan.Program, old plan.Stream) plan.Stream {
	if pr.Role == plan.RoleScatter || pr.Role == plan.RoleGather {
		s := reuse[nvlsSpread](old)
		s.open(g, pr)
		s.head, s.scatters = 0, pr.Role == plan.RoleScatter
		s.first, s.ranks = g.firstID(pr.Channel, pr.Rank), nil
		if g.req.Direct && g.req.Func != coll.AllReduce {
			s.ranks = g.rank[g.index(pr.Channel)]
		}
		return s
	}
	s := reuse[nvlsHead](old)
	s.open(g, pr)
	s.head, s.reduces = g.comm.NVLS[pr.Channel].HeadIndex[pr.Rank], pr.Role == plan.RoleReduce
	g.joinHead(s, pr)
	return s
}

// joinHead sets the connections of a head's program: with the ranks of its node through the switch, and with
// its parent and children between nodes.
func (g *nvls) joinHead(s *nvlsHead, pr *plan.Program) {
	self, hasUp := g.firstID(pr.Channel, pr.Rank), g.treeUp(pr.Channel, pr.Rank) >= 0
	if s.reduces {
		for _, r := range g.node(pr.Rank) {
			s.from = append(s.from, g.firstID(pr.Channel, r)+g.to(s.head))
		}
		s.from = g.appendKids(s.from, pr, g.up())
		if hasUp {
			s.to = append(s.to, self+g.up())
			return
		}
	} else if hasUp {
		s.from = append(s.from, self+g.down())
	}
	if g.req.Func == coll.ReduceScatter {
		return
	}
	for _, r := range g.node(pr.Rank) {
		s.to = append(s.to, g.firstID(pr.Channel, r)+g.from(s.head))
	}
	s.to = g.appendKids(s.to, pr, g.down())
}

// appendKids appends, at a given place, the connections of a head's children between nodes.
func (g *nvls) appendKids(ids []int32, pr *plan.Program, place int32) []int32 {
	if !g.tree {
		return ids
	}
	for _, d := range g.comm.NVLS[pr.Channel].TreeDown[pr.Rank] {
		if d >= 0 && int(d) < g.comm.NRanks {
			ids = append(ids, g.firstID(pr.Channel, d)+place)
		}
	}
	return ids
}

// nvlsStream holds the state that the streams of NVLS share.
type nvlsStream struct {
	stream
	share
	f        coll.Func
	n, head  int32 // number of heads; head of the next op
	rounding int64 // nvls.grain
}

func (s *nvlsStream) open(g *nvls, pr *plan.Program) {
	s.stream.open(pr)
	s.share = g.share(pr.Channel)
	s.f, s.n, s.rounding = g.req.Func, g.n, g.grain
	s.shortenLast()
}

// shortenLast divides an incomplete last iteration of an all-reduce evenly among the heads.
func (s *nvlsStream) shortenLast() {
	if s.f == coll.AllReduce {
		s.shorten(int64(s.n), s.rounding)
	}
}

func (s *nvlsStream) nextIteration() {
	s.next()
	s.shortenLast()
}

// nvlsSpread is the stream of scatter or gather: the chunk of each head. One NCCL primitive is an op for each
// head here.
type nvlsSpread struct {
	nvlsStream
	first    int32 // connection id of the rank
	scatters bool
	// ranks holds the rank of each head; with registered buffers NCCL uses that rank's block
	// (all_gather.h:301). nil: it uses the head's number (plan.Misplaced).
	ranks []int32
}

func (s *nvlsSpread) Next(op *plan.Op) bool {
	if !s.more() {
		return false
	}
	h := int64(s.head)
	off, place := int64(0), h*s.block
	if s.ranks != nil {
		place = int64(s.ranks[h]) * s.block
	}
	if s.f == coll.AllReduce {
		off, place = h*s.chunk, h*s.chunk
	}
	bytes := s.left(off)
	place += s.begin + s.done
	op.Chunk = s.iter*s.n + s.head
	if s.scatters {
		s.to = append(s.to[:0], s.first+s.head)
		s.emit(op, plan.Send, bytes)
		op.Src = input(place)
	} else {
		s.from = append(s.from[:0], s.first+s.n+s.head)
		s.emit(op, plan.Recv|plan.Copy, bytes)
		op.Dst = output(place)
	}
	op.Step = s.iter
	if s.head++; s.head == s.n {
		s.head = 0
		s.nextIteration()
	}
	return true
}

// nvlsHead is the stream of a head's own share, through the switch.
type nvlsHead struct {
	nvlsStream
	reduces bool
}

func (s *nvlsHead) Next(op *plan.Op) bool {
	if !s.more() {
		return false
	}
	op.Chunk = s.iter*s.n + s.head
	switch s.f {
	case coll.AllGather:
		s.emit(op, plan.Send, s.left(0))
		op.Src = input(s.begin + s.done)
	case coll.ReduceScatter:
		s.emit(op, plan.Recv|plan.Reduce|plan.Copy, s.left(0))
		op.Dst = output(s.begin + s.done)
	default:
		do := plan.Recv | plan.Send
		if s.reduces {
			do |= plan.Reduce
		}
		s.emit(op, do, s.left(int64(s.head)*s.chunk))
	}
	s.nextIteration()
	return true
}
