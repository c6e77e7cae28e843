package build

import (
	"fmt"

	"math/bits"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/connect"
	"github.com/simccl/simccl/plan"
	"github.com/simccl/simccl/plan/internal/channels"
)

// Largest number of children of a rank in a tree, and of the root (device.h:176).
const (
	treeArity    = 3
	treeArityTop = 2
)

// treeAlgo is Tree: data is reduced up a tree over all ranks and broadcast down
// the same tree, chunk after chunk.
type treeAlgo struct{}

func (treeAlgo) supports(_ *connect.Layout, r *plan.Request) error {
	if r.Func != coll.AllReduce {
		return noKernel(r, "only all_reduce has a Tree kernel")
	}
	return nil
}

func (treeAlgo) split(c *connect.Layout, r *plan.Request) (plan.Split, error) {
	rule := channels.OneStep(c.NChannels)
	if r.Proto == coll.LL128 {
		ppn := float32(c.NRanks) / float32(c.NNodes)
		stages := float32(float64(1+bits.Len(uint(c.NNodes))-1) + float64(0.1*float64(ppn)))
		rule.Shrink = func(chunk, nBytes int64) int64 {
			for float32(uint64(nBytes)/uint64(chunk)) < stages*64/ppn && chunk > 131072 {
				chunk /= 2
			}
			for float32(uint64(nBytes)/uint64(chunk)) < stages*16/ppn && chunk > 32768 {
				chunk /= 2
			}
			return chunk
		}
	}
	if depth := int64(c.TreeDepth); r.Proto == coll.Simple && c.Rules.Plan.TreePasses {
		rule.Shrink = func(chunk, nBytes int64) int64 {
			chunk = channels.Halve(chunk, nBytes, 1, 8*depth, 128<<10)
			chunk = channels.Halve(chunk, nBytes, 1, 4*depth, 64<<10)
			return channels.Halve(chunk, nBytes, 1, depth, 32<<10)
		}
	}
	return channels.Contiguous(c, r, rule)
}

func (treeAlgo) generator(b base) (plan.Generator, error) {
	if err := b.hasChannels(); err != nil {
		return nil, err
	}
	b.perRank = 2
	for ch := b.split.ChannelLo; ch <= b.split.ChannelHi; ch++ {
		if err := checkTree(b.comm, ch); err != nil {
			return nil, err
		}
	}
	return &tree{b}, nil
}

// checkTree returns an error unless the parents and children of a channel agree and it has one root. RCCL
// divides many channels into halves of one tree each, and leaves the last of an odd number out of both
// (graph/connect.cc:599 of RCCL 2.30.4): its nodes have trees of their own, whose sums are not complete.
func checkTree(c *connect.Layout, channel int) error {
	t, n := c.Channels[channel].Tree, int32(c.NRanks)
	if len(t) != int(n) {
		return badRequest("Comm", "channel %d has a tree of %d ranks, not %d", channel, len(t), n)
	}
	bad := func(r int32, what string) error {
		return badRequest("Comm", "channel %d: tree of rank %d: %s", channel, r, what)
	}
	root := int32(-1)
	for r := range n {
		up := t[r].Up
		if up < 0 && root >= 0 {
			return &plan.UnsupportedError{What: "an operation by Tree", Why: fmt.Sprintf("channel %d has "+
				"trees with the roots %d and %d, which nothing joins; NCCL_ALGO=Ring has no trees, "+
				"NCCL_MAX_NCHANNELS=%d leaves the channel out", channel, root, r, channel)}
		} else if up < 0 {
			root = r
		}
		switch {
		case up < -1 || up >= n:
			return bad(r, "parent is no rank")
		case up >= 0 && !isChild(&t[up], r):
			return bad(r, "its parent does not know it")
		case up < 0 && t[r].Down[0] < 0:
			return bad(r, "neither parent nor child")
		case up < 0 && t[r].Down[treeArityTop] >= 0:
			return bad(r, "a root has at most two children")
		}
		for _, d := range children(&t[r]) {
			if d >= n || t[d].Up != r {
				return bad(r, "a child has another parent")
			}
		}
	}
	return nil
}

// children returns the children of a rank, up to the first -1 as NCCL does.
func children(t *connect.TreeLinks) []int32 {
	n := 0
	for n < treeArity && t.Down[n] >= 0 {
		n++
	}
	return t.Down[:n]
}

func isChild(parent *connect.TreeLinks, rank int32) bool {
	for _, d := range children(parent) {
		if d == rank {
			return true
		}
	}
	return false
}

// tree generates the programs of Tree. The first of a rank's two connections leads up to its parent, the
// second from the parent down to it.
type tree struct{ base }

const (
	treeUp = iota
	treeDown
)

// Conn implements plan.Generator.
func (g *tree) Conn(c *plan.Conn) {
	r, place := g.locate(c)
	c.Kind = connect.TreeRoute
	up := g.comm.Channels[c.Channel].Tree[r].Up
	switch {
	case up < 0:
	case place == treeUp:
		c.Src, c.Dst = r, up
	default:
		c.Src, c.Dst = up, r
	}
}

// AppendPrograms implements plan.Generator: the root does everything in one group; other ranks reduce upwards
// and broadcast downwards in two (all_reduce.h:161-245), or all ranks do so one after the other
// (device/all_reduce.h:110 of RCCL 2.30.4).
func (g *tree) AppendPrograms(dst []plan.Program, rank int32) []plan.Program {
	for ch := int32(g.split.ChannelLo); ch <= int32(g.split.ChannelHi); ch++ {
		pr := g.program(rank, ch)
		if pr.Proto == coll.Simple && g.comm.Rules.Plan.TreePasses {
			pr.Role = plan.RoleTreeReduce
			dst = append(dst, g.workers(pr, true))
			pr.Role, pr.Phase, pr.Fused = plan.RoleTreeBroadcast, 1, true
			dst = append(dst, g.workers(pr, true))
			continue
		}
		if g.comm.Channels[ch].Tree[rank].Up < 0 {
			pr.Role = plan.RoleTreeRoot
			dst = append(dst, g.workers(pr, true))
			continue
		}
		up := pr.Threads * 7 / (10 * g.lanes()) * g.lanes()
		if pr.Proto == coll.Simple {
			up = upThreads(pr.Threads)
		}
		dst = g.upDown(dst, pr, up, plan.RoleTreeReduce, plan.RoleTreeBroadcast)
	}
	return dst
}

// upThreads returns the number of threads that reduce in a Simple kernel; the others broadcast.
func upThreads(all int32) int32 {
	up := all / 2
	if up >= 256 {
		up += 64
	}
	return up
}

// upDown appends a group of up threads that reduces and a group of the others that broadcasts. Whether a
// group reserves a warp depends on its kind of primitive only, so leaves reserve it too.
func (b *base) upDown(dst []plan.Program, pr plan.Program, up int32, reduces,
	broadcasts plan.Role) []plan.Program {
	reduce, bcast := pr, pr
	reduce.Role, reduce.Threads = reduces, up
	bcast.Role, bcast.Threads, bcast.Group = broadcasts, pr.Threads-up, 1
	return append(dst, b.workers(reduce, true), b.workers(bcast, true))
}

// NumOps implements plan.Generator: one op per chunk.
func (g *tree) NumOps(pr *plan.Program) int64 {
	s := g.share(pr.Channel)
	return channels.DivUp(s.total, s.chunk)
}

// Open implements plan.Generator.
func (g *tree) Open(pr *plan.Program, old plan.Stream) plan.Stream {
	s := reuse[treeStream](old)
	s.open(pr)
	s.share = g.share(pr.Channel)
	t := &g.comm.Channels[pr.Channel].Tree[pr.Rank]
	kids, self := children(t), g.firstID(pr.Channel, pr.Rank)
	if pr.Role != plan.RoleTreeBroadcast {
		for _, d := range kids {
			s.from = append(s.from, g.firstID(pr.Channel, d)+treeUp)
		}
		if t.Up >= 0 {
			s.to = append(s.to, self+treeUp)
		}
	}
	if pr.Role != plan.RoleTreeReduce {
		if t.Up >= 0 {
			s.from = append(s.from, self+treeDown)
		}
		for _, d := range kids {
			s.to = append(s.to, g.firstID(pr.Channel, d)+treeDown)
		}
	}
	s.src, s.dst, s.own = pr.Role != plan.RoleTreeBroadcast, pr.Role != plan.RoleTreeReduce, false
	switch {
	case t.Up < 0 && pr.Role == plan.RoleTreeReduce:
		s.do, s.dst = plan.Recv|plan.Reduce|plan.Copy|plan.PostOp, true
	case t.Up < 0 && pr.Role == plan.RoleTreeBroadcast:
		s.do, s.dst, s.own = plan.Send, false, true
	case pr.Role == plan.RoleTreeRoot:
		s.do = plan.Recv | plan.Reduce | plan.Copy | plan.Send | plan.PostOp
	case s.src && len(s.from) == 0: // a leaf has no received data to add to
		s.do = plan.Send
	case s.src:
		s.do = plan.Recv | plan.Reduce | plan.Send
	case len(s.to) == 0:
		s.do = plan.Recv | plan.Copy
	default:
		s.do = plan.Recv | plan.Copy | plan.Send
	}
	return s
}

// treeStream is the stream of Tree: it repeats one primitive, chunk after chunk.
type treeStream struct {
	stream
	share
	do       plan.Do
	src, dst bool // the op reads the input, writes the output
	own      bool // the op reads the output
}

func (s *treeStream) Next(op *plan.Op) bool {
	if !s.more() {
		return false
	}
	s.emit(op, s.do, s.left(0))
	switch {
	case s.src:
		op.Src = input(s.begin + s.done)
	case s.own:
		op.Src = output(s.begin + s.done)
	}
	if s.dst {
		op.Dst = output(s.begin + s.done)
	}
	op.Chunk = s.iter
	s.next()
	return true
}
