package plan

import (
	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/units"
)

// Layout is the memory of one rank. If Shared, input and output lie in one buffer, as nccl-tests places them
// in place; otherwise they are separate and the offsets are zero. A buffer that an operation does not use on
// the rank has size 0.
type Layout struct {
	Input, Output     units.Bytes
	InputAt, OutputAt units.Bytes
	Shared            bool
	Scratch           units.Bytes // separate from input and output
}

// Size returns the bytes of the shared buffer.
func (l Layout) Size() units.Bytes { return max(l.InputAt+l.Input, l.OutputAt+l.Output) }

// Layout returns the memory of a rank.
func (p *Plan) Layout(rank int32) Layout {
	if p.members != nil {
		return p.joinedLayout(rank)
	}
	r := &p.Req
	count := units.Bytes(r.Count) * r.Type.Size()
	all := count * units.Bytes(p.Comm.NRanks)
	mine := count * units.Bytes(rank)
	root := rank == r.Root
	l := Layout{Input: count, Output: count, Shared: r.InPlace}
	switch r.Func {
	case coll.AllGather:
		l.Output, l.InputAt = all, mine
	case coll.ReduceScatter:
		l.Input, l.OutputAt = all, mine
	case coll.AllToAll:
		l.Input, l.Output = all, all
		if r.Same {
			l.Input, l.InputAt = count, mine
		}
		if x := r.Pairs; x != nil {
			l.Input, l.Output = units.Bytes(x.Sent(rank))*r.Type.Size(),
				units.Bytes(x.Received(rank))*r.Type.Size()
		}
	case coll.Gather:
		l.Output, l.InputAt = all, mine
		if !root {
			l.Output, l.InputAt = 0, 0
		}
	case coll.Scatter:
		l.Input, l.OutputAt = all, mine
		if !root {
			l.Input, l.OutputAt = 0, 0
		}
	case coll.Broadcast:
		if !root {
			l.Input = 0
		}
	case coll.Reduce:
		if !root {
			l.Output = 0
		}
	}
	if g, ok := p.gen.(ScratchGenerator); ok {
		l.Scratch = g.Scratch(rank)
	}
	if !l.Shared {
		l.InputAt, l.OutputAt = 0, 0
	}
	return l
}

// ScratchGenerator is a Generator of plans that need scratch memory besides input and output.
type ScratchGenerator interface {
	Generator
	// Scratch returns the bytes of scratch memory of a rank.
	Scratch(rank int32) units.Bytes
}

// Places is a source of bytes: offset Off in the input of one rank or of all ranks.
type Places struct {
	Rank int32 // the rank, or AllRanks
	Off  units.Bytes
}

// AllRanks in Places means the reduction of every rank's bytes.
const AllRanks = -1

// Want yields the required content of a rank's output: for each block of bytes, in order and without gaps,
// the source of its data.
func (p *Plan) Want(rank int32, yield func(off, n units.Bytes, from Places)) {
	r := &p.Req
	count := units.Bytes(r.Count) * r.Type.Size()
	n := int32(p.Comm.NRanks)
	if count == 0 {
		return
	}
	switch r.Func {
	case coll.AllReduce:
		yield(0, count, Places{AllRanks, 0})
	case coll.ReduceScatter:
		yield(0, count, Places{AllRanks, count * units.Bytes(rank)})
	case coll.Reduce:
		if rank == r.Root {
			yield(0, count, Places{AllRanks, 0})
		}
	case coll.Broadcast:
		yield(0, count, Places{r.Root, 0})
	case coll.Send:
		if rank == r.Peer {
			yield(0, count, Places{r.Root, 0})
		}
	case coll.SendRecv:
		yield(0, count, Places{(rank - 1 + n) % n, 0})
	case coll.Scatter:
		yield(0, count, Places{r.Root, count * units.Bytes(rank)})
	case coll.AllGather, coll.Gather, coll.AllToAll:
		off := units.Bytes(0)
		if r.Func == coll.AllToAll && r.Pairs != nil {
			r.wantPairs(rank, n, yield)
			return
		}
		if r.Func == coll.AllToAll && !r.Same {
			off = count * units.Bytes(rank)
		}
		if r.Func == coll.Gather && rank != r.Root {
			return
		}
		for q := range n {
			yield(count*units.Bytes(q), count, Places{q, off})
		}
	}
}

// Misplaced lists the rank of each NVLS head if NCCL's result is wrong because it uses head numbers as ranks:
// all_gather writes the block of head i at place i, reduce_scatter gives head i block i (all_gather.h:260,
// reduce_scatter.h:232 of v2.28.9; NVIDIA/nccl 1906). This happens without registered buffers, on one node
// whose GPUs are not in the order of ranks. nil: the result is right.
func (p *Plan) Misplaced() []int32 {
	r, c := &p.Req, p.Comm
	if r.Algo != coll.NVLS || r.Direct || c.NNodes != 1 || len(c.NVLS) == 0 ||
		r.Func != coll.AllGather && r.Func != coll.ReduceScatter {
		return nil
	}
	heads := c.NVLS[0].Heads
	for i, rank := range heads {
		if int(rank) != i && len(heads) == c.NRanks {
			return heads
		}
	}
	return nil
}

// Delivers yields the actual content of a rank's output under NCCL: that of Want, with misplaced blocks where
// Misplaced is not nil.
func (p *Plan) Delivers(rank int32, yield func(off, n units.Bytes, from Places)) {
	heads := p.Misplaced()
	if heads == nil {
		p.Want(rank, yield)
		return
	}
	count := units.Bytes(p.Req.Count) * p.Req.Type.Size()
	p.Want(rank, func(off, n units.Bytes, from Places) {
		if p.Req.Func == coll.AllGather {
			from.Rank = heads[off/count]
		} else {
			from.Off = count * units.Bytes(p.Comm.NVLS[0].HeadIndex[rank])
		}
		yield(off, n, from)
	})
}

// Wrong returns the number of output elements, over all ranks, that NCCL takes from a wrong place.
func (p *Plan) Wrong() (n int64) {
	moved := int64(0)
	for i, rank := range p.Misplaced() {
		if int(rank) != i {
			moved++
		}
	}
	if p.Req.Func == coll.AllGather {
		moved *= int64(p.Comm.NRanks)
	}
	return moved * p.Req.Count
}

// wantPairs is Want for an alltoall of unequal counts.
func (r *Request) wantPairs(rank, n int32, yield func(off, n units.Bytes, from Places)) {
	size := r.Type.Size()
	for q := range n {
		if count := r.Pairs.At(q, rank); count > 0 {
			yield(units.Bytes(r.Pairs.To(q, rank))*size, units.Bytes(count)*size,
				Places{q, units.Bytes(r.Pairs.From(q, rank)) * size})
		}
	}
}

// DataDefined reports whether the output is determined. In place, sendrecv and alltoall read memory that they
// overwrite; nccl-tests does not verify them.
func (p *Plan) DataDefined() bool {
	return !p.Req.InPlace || p.Req.Same ||
		(p.Req.Func != coll.SendRecv && p.Req.Func != coll.AllToAll) ||
		p.Comm.NRanks == 1
}
