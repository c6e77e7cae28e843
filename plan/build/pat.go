package build

import (
	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/connect"
	"github.com/simccl/simccl/plan"
	"github.com/simccl/simccl/plan/internal/channels"
	"github.com/simccl/simccl/rules"
	"github.com/simccl/simccl/units"
)

// patAlgo is PAT (parallel aggregated trees): rank r exchanges with the ranks at distance 2^d, and small
// blocks of several ranks travel together in one FIFO step.
type patAlgo struct{}

func (patAlgo) supports(c *connect.Layout, r *plan.Request) error {
	if r.Func != coll.AllGather && r.Func != coll.ReduceScatter {
		return noKernel(r, "PAT is for all_gather and reduce_scatter")
	}
	if averages(r) {
		return noKernel(r, "PAT does not scale%s", c.Rules.Aside(rules.AtPATAverage))
	}
	return nil
}

func (patAlgo) split(c *connect.Layout, r *plan.Request) (plan.Split, error) {
	rule := channels.OneStep(c.NChannels)
	times := int32(32)
	if r.Func == coll.ReduceScatter {
		times = 16
	}
	rule.Shrink = func(chunk, nBytes int64) int64 {
		// NCCL computes the product in 32 bits.
		for uint64(int64(int32(chunk)*times)) > uint64(nBytes) && chunk > 65536 {
			chunk /= 2
		}
		return chunk
	}
	return channels.Contiguous(c, r, rule)
}

func (patAlgo) generator(b base) (plan.Generator, error) {
	b.perRank = int32(patDims(b.comm.NRanks))
	return &patTrees{base: b, scatters: b.req.Func == coll.ReduceScatter}, nil
}

// patTrees generates the programs of PAT: one per channel. NCCL distributes the ops among thread groups in
// lockstep, which are one group here, as they share every barrier. A rank has a connection for each distance.
type patTrees struct {
	base
	scatters bool // reduce-scatter; false: all-gather
}

// peer returns the rank at a distance to which (or from which) data flows:
// reduce-scatter sends upwards, all-gather downwards (prims_simple.h:658-671).
func (g *patTrees) peer(rank int32, dim int32, to bool) int32 {
	n := int32(g.comm.NRanks)
	d := int32(1) << dim % n
	if to == g.scatters {
		return (rank + d) % n
	}
	return (rank - d + n) % n
}

// Conn implements plan.Generator.
func (g *patTrees) Conn(c *plan.Conn) {
	rank, dim := g.locate(c)
	c.Kind = connect.TreeRoute
	c.Src, c.Dst = rank, g.peer(rank, dim, true)
}

// AppendPrograms implements plan.Generator.
func (g *patTrees) AppendPrograms(dst []plan.Program, rank int32) []plan.Program {
	for ch := int32(g.split.ChannelLo); ch <= int32(g.split.ChannelHi); ch++ {
		pr := g.program(rank, ch)
		pr.Role, pr.Threads, pr.Workers = plan.RolePAT, patThreads, patThreads
		dst = append(dst, pr)
	}
	return dst
}

// NumOps implements plan.Generator. It counts the ops of one chunk.
func (g *patTrees) NumOps(pr *plan.Program) int64 {
	s := g.share(pr.Channel)
	c := g.config(pr, &s)
	c.End = min(c.End, c.Begin+c.Chunk)
	var w patWalk
	var t patPiece
	w.start(&c)
	n := int64(0)
	for w.next(&t) {
		n++
	}
	return n * channels.DivUp(s.total, s.chunk)
}

// config returns the parameters of a walk through a program's pieces.
func (g *patTrees) config(pr *plan.Program, s *share) patConfig {
	return patConfig{
		Scatters: g.scatters, Rank: int(pr.Rank), Ranks: g.comm.NRanks, Block: s.block / s.es,
		Begin: s.begin / s.es, End: (s.begin + s.total) / s.es, Chunk: s.chunk / s.es,
		ChunkBytes: uint64(s.chunk), ChannelBytes: uint64(s.total),
	}
}

// Open implements plan.Generator.
func (g *patTrees) Open(pr *plan.Program, old plan.Stream) plan.Stream {
	if g.scatters {
		s := reuse[patScatter](old)
		s.open(g, pr)
		return s
	}
	s := reuse[patGather](old)
	s.open(g, pr)
	return s
}

// patStream holds the state that the streams of PAT share.
type patStream struct {
	stream
	share
	g       *patTrees
	inPlace bool
	walk    patWalk
	// send and recv are the two sides of the connections of each distance; local is the number of elements of
	// the rank's own input or output handled so far.
	send, recv [32]patPort
	local      int64
	slot       int64 // elements of a FIFO step
}

// patPort is one side of the connection of one distance.
type patPort struct {
	steps int64 // steps posted or released so far
	mark  int64 // position up to which data was written or read, in elements of an endless FIFO
}

func (s *patStream) open(g *patTrees, pr *plan.Program) {
	s.stream.open(pr)
	s.share = g.share(pr.Channel)
	s.g, s.inPlace = g, g.req.InPlace
	s.from, s.to = s.from[:1], s.to[:1]
	clear(s.send[:])
	clear(s.recv[:])
	s.local, s.slot = 0, int64(g.comm.BuffSizes[g.req.Proto])/plan.FIFOSteps/s.es
	c := g.config(pr, &s.share)
	s.walk.start(&c)
}

// emitPiece turns a piece into an op and counts posted and released steps.
func (s *patStream) emitPiece(op *plan.Op, t *patPiece, do plan.Do, step int64) {
	if t.RecvDim >= 0 {
		do |= plan.Recv
		dim := int32(t.RecvDim)
		s.from[0] = s.g.firstID(s.channel, s.g.peer(s.rank, dim, false)) + dim
		if !t.PostRecv {
			do |= plan.HoldRecv
		}
	}
	if t.SendDim >= 0 {
		do |= plan.Send
		s.to[0] = s.g.firstID(s.channel, s.rank) + int32(t.SendDim)
		if !t.PostSend {
			do |= plan.HoldSend
		}
	}
	s.emit(op, do, t.Elems*s.es)
	op.Step = int32(step)
	op.Chunk = int32((t.Offset*s.es - s.begin) / max(s.chunk, 1))
	if t.RecvDim >= 0 {
		op.RecvOff = units.Bytes(t.RecvOff * s.es)
		if t.PostRecv {
			s.recv[t.RecvDim].steps++
		}
	}
	if t.SendDim >= 0 {
		op.SendOff = units.Bytes(t.SendOff * s.es)
		if t.PostSend {
			s.send[t.SendDim].steps++
		}
	}
}

// patGather is the stream of all-gather by PAT: blocks travel the largest distance first, so that every rank
// soon has a block to pass on.
type patGather struct{ patStream }

// Next makes the op of the next piece. A piece that arrives for the first time is also copied to the output.
func (s *patGather) Next(op *plan.Op) bool {
	var t patPiece
	if !s.walk.next(&t) {
		return false
	}
	var do plan.Do
	var src, dst plan.Ref
	step, fresh := int64(0), false
	if t.RecvDim >= 0 {
		port := &s.recv[t.RecvDim]
		step = port.steps
		reach := t.RecvOff + t.Elems + (port.steps+t.Ahead)*s.slot
		fresh = port.mark < reach
		port.mark = max(port.mark, reach)
	} else {
		src = input(t.In * s.es)
		fresh = s.local < t.In+t.Elems && !s.inPlace
		s.local = max(s.local, t.In+t.Elems)
	}
	if t.SendDim >= 0 {
		step = s.send[t.SendDim].steps
	}
	if fresh {
		do |= plan.Copy
		dst = output(t.Out * s.es)
	}
	s.emitPiece(op, &t, do, step)
	op.Src, op.Dst = src, dst
	if t.RecvDim >= 0 {
		op.RecvAhead = int32(t.Ahead)
	}
	return true
}

// patScatter is the stream of reduce-scatter by PAT: blocks for far ranks go first, and every rank on the
// path adds its own part.
type patScatter struct{ patStream }

// Next makes the op of the next piece. If its destination already holds a piece, it is added to that instead
// of the input.
func (s *patScatter) Next(op *plan.Op) bool {
	var t patPiece
	if !s.walk.next(&t) {
		return false
	}
	var do plan.Do
	if t.RecvDim >= 0 {
		do |= plan.Reduce
	}
	src, dst := input(t.In*s.es), plan.Ref{}
	step := int64(0)
	if t.SendDim >= 0 {
		port := &s.send[t.SendDim]
		step = port.steps
		reach := t.SendOff + t.Elems + (port.steps+t.Ahead)*s.slot
		if port.mark >= reach {
			do |= plan.Accum
			src = plan.Ref{}
		}
		port.mark = max(port.mark, reach)
	} else {
		do |= plan.Copy
		dst = output(t.Out * s.es)
		if s.local >= t.Out+t.Elems {
			do |= plan.Accum
			src = plan.Ref{}
		}
		s.local = max(s.local, t.Out+t.Elems)
		if t.RecvDim >= 0 {
			step = s.recv[t.RecvDim].steps
		}
	}
	s.emitPiece(op, &t, do, step)
	op.Src, op.Dst = src, dst
	if t.SendDim >= 0 {
		op.SendAhead = int32(t.Ahead)
	}
	return true
}
