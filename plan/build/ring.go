package build

import (
	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/connect"
	"github.com/simccl/simccl/plan"
	"github.com/simccl/simccl/plan/internal/channels"
)

// ringAlgo is Ring: the ranks of a channel form a cycle, and each sends only to the next. It has a kernel for
// all five collectives.
type ringAlgo struct{}

func (ringAlgo) supports(*connect.Layout, *plan.Request) error { return nil }

func (ringAlgo) split(c *connect.Layout, r *plan.Request) (plan.Split, error) {
	rule := channels.OneStep(c.NChannels)
	n := int64(c.NRanks)
	switch r.Func {
	case coll.AllReduce:
		rule.StepsPerLoop, rule.ChunksPerLoop = 2*(n-1), n
	case coll.AllGather, coll.ReduceScatter:
		rule.StepsPerLoop, rule.ChunksPerLoop = n-1, n
	default: // a chain from or to the root
		if p := &c.Rules.Plan; r.Proto == coll.Simple && p.ChainHalves {
			rule.Shrink = func(chunk, nBytes int64) int64 {
				for few, least := int64(64), int64(256<<10); few >= 8; few, least = few/2, least/2 {
					chunk = channels.Halve(chunk, nBytes, 1, few, least)
				}
				return chunk
			}
		}
		return channels.Contiguous(c, r, rule)
	}
	if r.Proto == coll.Simple {
		rule.ChunkSteps, rule.SliceSteps = c.Rules.Plan.RingSteps(c.Arch(), c.NNodes)
	}
	return channels.Contiguous(c, r, rule)
}

func (ringAlgo) generator(b base) (plan.Generator, error) {
	if err := b.hasChannels(); err != nil {
		return nil, err
	}
	b.perRank = 1
	g := &ring{base: b, pos: make([][]int32, b.split.NChannels), turns: int64(b.comm.NRanks)}
	for i := range g.pos {
		ch := b.split.ChannelLo + i
		if i > 0 && sameRing(&b.comm.Channels[ch-1], &b.comm.Channels[ch]) {
			g.pos[i] = g.pos[i-1]
			continue
		}
		var err error
		if g.pos[i], err = positions(b.comm, ch); err != nil {
			return nil, err
		}
	}
	return g, nil
}

// ring generates the programs of Ring.
type ring struct {
	base
	pos   [][]int32 // by channel of the split and rank: position in the ring, counted from rank 0
	turns int64     // blocks that a rank starts with in an iteration: all, or fewer (InTurns)
}

// Turns implements plan.TurnGenerator. Chains (broadcast, reduce) have no turns.
func (g *ring) Turns() int64 {
	if g.req.Func.Rooted() {
		return 0
	}
	return g.turns
}

// InTurns implements plan.TurnGenerator.
func (g *ring) InTurns(turns int64) plan.Generator {
	short := *g
	short.turns = turns
	return &short
}

// sameRing reports whether two channels share the memory of their order.
func sameRing(a, b *connect.Channel) bool {
	return len(a.Order) > 0 && len(a.Order) == len(b.Order) && &a.Order[0] == &b.Order[0]
}

// positions returns the position of each rank in the ring of a channel, and
// checks that neighbours agree with it.
func positions(c *connect.Layout, channel int) ([]int32, error) {
	n, ch := c.NRanks, &c.Channels[channel]
	if len(ch.Order) != n || len(ch.Ring) != n || ch.Order[0] != 0 {
		return nil, badRequest("Comm", "channel %d has no ring of %d ranks in order from rank 0", channel, n)
	}
	pos := ch.Pos
	if len(pos) != n {
		pos = make([]int32, n)
		for k, r := range ch.Order {
			if r >= 0 && int(r) < n {
				pos[r] = int32(k)
			}
		}
	}
	for k, r := range ch.Order {
		if r < 0 || int(r) >= n || int(pos[r]) != k || ch.Ring[r].Next != ch.Order[(k+1)%n] ||
			ch.Ring[r].Prev != ch.Order[(k+n-1)%n] {
			return nil, badRequest("Comm", "channel %d: neighbours of rank %d disagree with the ring order",
				channel, r)
		}
	}
	return pos, nil
}

// AppendPrograms implements plan.Generator: one thread group per channel.
func (g *ring) AppendPrograms(dst []plan.Program, rank int32) []plan.Program {
	part := &g.split.Lo
	for ch := int32(g.split.ChannelLo); ch <= int32(g.split.ChannelHi); ch++ {
		pr := g.program(rank, ch)
		pr.Role = plan.RoleRing
		pr.Slices, pr.SliceSteps = int32(part.ChunkSteps/part.SliceSteps), int32(part.SliceSteps)
		dst = append(dst, g.workers(pr, true))
	}
	return dst
}

// NumOps implements plan.Generator.
func (g *ring) NumOps(pr *plan.Program) int64 {
	s, n := g.share(pr.Channel), int64(g.comm.NRanks)
	switch g.req.Func {
	case coll.AllReduce:
		return channels.DivUp(s.total, n*s.chunk) * (2*g.turns - 1)
	case coll.AllGather, coll.ReduceScatter:
		return channels.DivUp(s.total, s.chunk) * g.turns
	}
	return channels.DivUp(s.total, s.chunk)
}

// Conn implements plan.Generator: a rank's connection leads to the next rank.
func (g *ring) Conn(c *plan.Conn) {
	c.Src, _ = g.locate(c)
	c.Kind = connect.RingRoute
	c.Dst = g.comm.Channels[c.Channel].Ring[c.Src].Next
}

// Open implements plan.Generator.
func (g *ring) Open(pr *plan.Program, old plan.Stream) plan.Stream {
	switch g.req.Func {
	case coll.AllReduce:
		s := reuse[ringAllReduce](old)
		s.open(g, pr)
		s.loop, s.rounding = int64(s.n)*s.chunk, g.lastGrain(ringGrain)
		s.shorten(int64(s.n), s.rounding)
		return s
	case coll.AllGather:
		s := reuse[ringAllGather](old)
		s.open(g, pr)
		s.at = s.pos
		return s
	case coll.ReduceScatter:
		s := reuse[ringReduceScatter](old)
		s.open(g, pr)
		return s
	case coll.Broadcast:
		s := reuse[ringBroadcast](old)
		s.open(g, pr)
		return s
	}
	s := reuse[ringReduce](old)
	s.open(g, pr)
	return s
}

// ringGrain is the multiple to which blocks of a last, incomplete iteration are rounded up (all_reduce.h:35).
const ringGrain = 16

// ringStream holds the state that the streams of Ring share. In an iteration, op j handles the block with
// which the rank j positions back began: blocks travel forwards.
type ringStream struct {
	stream
	share
	order               []int32 // the ring from rank 0 on
	n, pos, root, turns int32
	inPlace             bool
	j                   int32 // op within the iteration
	at                  int32 // block of the op, as a position in the ring
	rounding            int64 // multiple for blocks of a last, incomplete iteration
}

func (s *ringStream) open(g *ring, pr *plan.Program) {
	s.stream.open(pr)
	s.share = g.share(pr.Channel)
	ch := &g.comm.Channels[pr.Channel]
	s.order, s.n, s.turns, s.pos = ch.Order, int32(g.comm.NRanks), int32(g.turns),
		g.pos[g.index(pr.Channel)][pr.Rank]
	s.root, s.inPlace = g.req.Root, g.req.InPlace
	s.from = append(s.from, g.firstID(pr.Channel, ch.Ring[pr.Rank].Prev))
	s.to = append(s.to, g.firstID(pr.Channel, pr.Rank))
	s.j, s.at = 0, s.back(s.pos)
}

// back returns the position before pos.
func (s *ringStream) back(pos int32) int32 {
	if pos == 0 {
		return s.n - 1
	}
	return pos - 1
}

// nextIteration begins with the block at a position.
func (s *ringStream) nextIteration(at int32) {
	s.next()
	s.j, s.at = 0, at
}

// step advances to the next block of the iteration.
func (s *ringStream) step() {
	s.j++
	s.at = s.back(s.at)
}

// ringAllReduce is the stream of AllReduce: each block goes round the ring once to be reduced and once more
// to be copied. Of n ranks, op 0 sends, ops 1 to n-2 add and pass on, op n-1 completes a block and begins the
// second round, ops n to 2n-3 copy and pass on, op 2n-2 copies.
type ringAllReduce struct{ ringStream }

func (s *ringAllReduce) Next(op *plan.Op) bool {
	if !s.more() {
		return false
	}
	off := int64(s.at) * s.chunk
	bytes, place := s.left(off), s.begin+s.done+off
	op.Chunk = s.iter*s.n + s.at
	switch last := s.turns - 1; {
	case s.j == 0:
		s.emit(op, plan.Send, bytes)
		op.Src = input(place)
	case s.j < last:
		s.emit(op, plan.Recv|plan.Reduce|plan.Send, bytes)
		op.Src = input(place)
	case s.j == last:
		s.emit(op, plan.Recv|plan.Reduce|plan.Copy|plan.Send|plan.PostOp, bytes)
		op.Src, op.Dst = input(place), output(place)
	case s.j < 2*last:
		s.emit(op, plan.Recv|plan.Copy|plan.Send, bytes)
		op.Dst = output(place)
	default:
		s.emit(op, plan.Recv|plan.Copy, bytes)
		op.Dst = output(place)
		s.nextIteration(s.back(s.pos))
		s.shorten(int64(s.n), s.rounding)
		return true
	}
	s.step()
	return true
}

// ringAllGather is the stream of AllGather: each rank's block goes round the ring once.
type ringAllGather struct{ ringStream }

func (s *ringAllGather) Next(op *plan.Op) bool {
	if !s.more() {
		return false
	}
	bytes, place := s.left(0), s.begin+s.done
	to := output(place + int64(s.order[s.at])*s.block)
	op.Chunk = s.iter*s.n + s.at
	switch {
	case s.j == 0 && s.inPlace: // the rank's own block is already where it belongs
		s.emit(op, plan.Send, bytes)
		op.Src = input(place)
	case s.j == 0:
		s.emit(op, plan.Copy|plan.Send, bytes)
		op.Src, op.Dst = input(place), to
	case s.j < s.turns-1:
		s.emit(op, plan.Recv|plan.Copy|plan.Send, bytes)
		op.Dst = to
	default:
		s.emit(op, plan.Recv|plan.Copy, bytes)
		op.Dst = to
		s.nextIteration(s.pos)
		return true
	}
	s.step()
	return true
}

// ringReduceScatter is the stream of ReduceScatter: each rank's block goes round the ring to it, and every
// rank on the path adds its part.
type ringReduceScatter struct{ ringStream }

func (s *ringReduceScatter) Next(op *plan.Op) bool {
	if !s.more() {
		return false
	}
	bytes, place := s.left(0), s.begin+s.done
	op.Chunk = s.iter*s.n + s.at
	from := input(place + int64(s.order[s.at])*s.block)
	switch {
	case s.j == 0:
		s.emit(op, plan.Send, bytes)
	case s.j < s.turns-1:
		s.emit(op, plan.Recv|plan.Reduce|plan.Send, bytes)
	default:
		s.emit(op, plan.Recv|plan.Reduce|plan.Copy|plan.PostOp, bytes)
		op.Src, op.Dst = from, output(place)
		s.nextIteration(s.back(s.pos))
		return true
	}
	op.Src = from
	s.step()
	return true
}

// ringBroadcast is the stream of Broadcast: a chain from the root round the ring to the rank before it.
type ringBroadcast struct{ ringStream }

func (s *ringBroadcast) Next(op *plan.Op) bool {
	if !s.more() {
		return false
	}
	bytes, place := s.left(0), s.begin+s.done
	op.Chunk = s.iter
	switch {
	case s.rank == s.root && s.inPlace:
		s.emit(op, plan.Send, bytes)
		op.Src = input(place)
	case s.rank == s.root:
		s.emit(op, plan.Copy|plan.Send, bytes)
		op.Src, op.Dst = input(place), output(place)
	case s.order[(s.pos+1)%s.n] == s.root:
		s.emit(op, plan.Recv|plan.Copy, bytes)
		op.Dst = output(place)
	default:
		s.emit(op, plan.Recv|plan.Copy|plan.Send, bytes)
		op.Dst = output(place)
	}
	s.next()
	return true
}

// ringReduce is the stream of Reduce: a chain from the rank after the root round the ring to it.
type ringReduce struct{ ringStream }

func (s *ringReduce) Next(op *plan.Op) bool {
	if !s.more() {
		return false
	}
	bytes, place := s.left(0), s.begin+s.done
	op.Chunk = s.iter
	switch {
	case s.order[s.back(s.pos)] == s.root:
		s.emit(op, plan.Send, bytes)
		op.Src = input(place)
	case s.rank == s.root:
		s.emit(op, plan.Recv|plan.Reduce|plan.Copy|plan.PostOp, bytes)
		op.Src, op.Dst = input(place), output(place)
	default:
		s.emit(op, plan.Recv|plan.Reduce|plan.Send, bytes)
		op.Src = input(place)
	}
	s.next()
	return true
}
