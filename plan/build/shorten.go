package build

import (
	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/plan"
	"github.com/simccl/simccl/units"
)

// loops reports whether an algorithm's channels have a contiguous part each, which
// they do in equal iterations. PAT and the algorithms in which the network reduces
// are not looked at.
func (b *base) loops() bool {
	switch b.req.Algo {
	case coll.Ring, coll.Tree, coll.NVLS, coll.NVLSTree:
		return b.split.NChannels > 0 && !b.split.Striped
	}
	return false
}

// perIteration is how many elements of a part's Count an iteration does.
func (b *base) perIteration(part *plan.Part) int64 {
	n := part.LoopSize / b.split.ElemSize
	if b.req.Func == coll.AllGather || b.req.Func == coll.ReduceScatter {
		n /= units.Bytes(b.comm.NRanks)
	}
	return int64(n)
}

// parts lists the kinds of parts of a division, and how many channels have each.
func parts(s *plan.Split) (list []*plan.Part, channels []int64) {
	list, channels = append(list, &s.Lo), append(channels, 1)
	if s.NChannels > 2 {
		list, channels = append(list, &s.Mid), append(channels, int64(s.NChannels-2))
	}
	if s.NChannels > 1 {
		list, channels = append(list, &s.Hi), append(channels, 1)
	}
	return list, channels
}

// Iterations implements plan.LoopGenerator. Channels whose chunks differ have none
// in common.
func (b *base) Iterations() int64 {
	if !b.loops() {
		return 0
	}
	least := int64(-1)
	list, _ := parts(&b.split)
	for _, part := range list {
		per := b.perIteration(part)
		if per < 1 || part.ChunkSize != b.split.Lo.ChunkSize {
			return 0
		}
		if n := part.Count / per; least < 0 || n < least {
			least = n
		}
	}
	return least
}

// Shorten implements plan.LoopGenerator.
func (b *base) Shorten(iterations int64, rest bool) (r plan.Request, s plan.Split, g plan.Generator, ok bool) {
	fewer := b.Iterations() - iterations
	r, s = b.req, b.split
	count := int64(0)
	list, channels := parts(&s)
	for i, part := range list {
		per := b.perIteration(part)
		all := divUp(part.Count, per)
		left := iterations * per
		if rest {
			left = part.Count - fewer*per
		}
		part.NSteps = int(int64(part.NSteps) / all * divUp(left, per))
		part.Count = left
		count += channels[i] * left
	}
	_, es := b.req.Elements()
	if r.Count = count * int64(es) / int64(r.Type.Size()); r.Count*int64(r.Type.Size()) != count*int64(es) {
		return r, s, nil, false
	}
	g, err := algorithms[r.Algo].generator(base{comm: b.comm, req: r, split: s})
	return r, s, g, err == nil
}

// bytes is what a transfer of the operation moves.
func (g *p2p) bytes() int64 { return g.req.Count * int64(g.req.Type.Size()) }

// loop returns the operation's transfers as they are where every one has whole
// steps, in the network and within nodes; false where some have not.
func (g *p2p) loop() (t transfer, ok bool) {
	t.bytes = g.bytes()
	if t.bytes < 8*int64(g.comm.P2PChunkSize) || t.bytes <= int64(g.chMax)*g.req.Params.P2PLLThreshold.Or(16384) {
		return t, false
	}
	g.sizeTransfer(&t, 0, 0, 0) // to itself: no network, no LL
	return t, t.chunk%partGrain == 0
}

// Iterations implements plan.LoopGenerator: an iteration is a chunk of each part of
// a transfer. The last part of a transfer may be shorter than the others.
func (g *p2p) Iterations() int64 {
	t, ok := g.loop()
	if !ok {
		return 0
	}
	begin, end := t.bounds(t.parts - 1)
	return (end - begin) / t.chunk
}

// Shorten implements plan.LoopGenerator.
func (g *p2p) Shorten(iterations int64, rest bool) (r plan.Request, s plan.Split, gen plan.Generator, ok bool) {
	t, _ := g.loop()
	bytes := int64(t.parts) * iterations * t.chunk
	if rest {
		bytes = t.bytes - int64(t.parts)*(g.Iterations()-iterations)*t.chunk
	}
	r = g.req
	if r.Count = bytes / int64(r.Type.Size()); r.Count*int64(r.Type.Size()) != bytes {
		return r, s, nil, false
	}
	short := *g
	short.req, short.fixed = r, &t
	return r, s, &short, true
}
