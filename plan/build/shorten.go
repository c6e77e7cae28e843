package build

import (
	"slices"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/plan"
	"github.com/simccl/simccl/plan/internal/channels"
	"github.com/simccl/simccl/units"
)

// loops reports whether each channel of an algorithm has a contiguous part that it processes in equal
// iterations. PAT and the algorithms in which the network reduces are not supported.
func (b *base) loops() bool {
	switch b.req.Algo {
	case coll.Ring, coll.Tree, coll.NVLS, coll.NVLSTree:
		return b.split.NChannels > 0 && !b.split.Striped
	}
	return false
}

// Iterations implements plan.LoopGenerator.
func (b *base) Iterations() int64 {
	if !b.loops() {
		return 0
	}
	return channels.LoopsOf(b.split, b.req.Func, b.comm.NRanks).Iterations()
}

// Shorten implements plan.LoopGenerator.
func (b *base) Shorten(iterations int64, rest, apart bool) (r plan.Request, s plan.Split, g plan.Generator,
	ok bool) {
	s, bytes := channels.LoopsOf(b.split, b.req.Func, b.comm.NRanks).Shorten(iterations, rest)
	r = b.req
	if apart {
		r.Apart = r.BlockStep()
	}
	if r.Count = int64(bytes / r.Type.Size()); units.Bytes(r.Count)*r.Type.Size() != bytes {
		return r, s, nil, false
	}
	g, err := algorithms[r.Algo].generator(base{comm: b.comm, req: r, split: s})
	return r, s, g, err == nil
}

// loop returns the division of the operation's transfers if all have whole steps and equal divisions; else
// false.
func (g *p2p) loop() (t channels.Transfer, ok bool) {
	if g.req.Pairs != nil {
		return t, false
	}
	return g.Loop(g.req.Count*int64(g.req.Type.Size()), g.fixed)
}

// Iterations implements plan.LoopGenerator: an iteration is a chunk of each part of a transfer.
func (g *p2p) Iterations() int64 {
	t, ok := g.loop()
	if !ok {
		return 0
	}
	return t.Iterations()
}

// Shorten implements plan.LoopGenerator.
func (g *p2p) Shorten(iterations int64, rest, apart bool) (r plan.Request, s plan.Split, gen plan.Generator,
	ok bool) {
	t, _ := g.loop()
	t = t.Shortened(iterations, rest)
	r = g.req
	if apart {
		r.Apart = r.BlockStep()
	}
	if r.Count = t.Bytes / int64(r.Type.Size()); r.Count*int64(r.Type.Size()) != t.Bytes {
		return r, s, nil, false
	}
	short := *g
	short.req, short.fixed = r, &t
	return r, s, &short, true
}

// loop is p2p's loop for messages of one size.
func (g *messages) loop() (t channels.Transfer, ok bool) {
	bytes, ok := channels.OneSize(g.list)
	if !ok || g.comm.Rules.Plan.P2PPieces {
		return t, false
	}
	return g.Loop(bytes, g.fixed)
}

// Iterations implements plan.LoopGenerator, as p2p does.
func (g *messages) Iterations() int64 {
	t, ok := g.loop()
	if !ok {
		return 0
	}
	return t.Iterations()
}

// Shorten implements plan.LoopGenerator. Messages keep their places in the buffers of the whole, so apart
// must be true.
func (g *messages) Shorten(iterations int64, rest, apart bool) (r plan.Request, s plan.Split,
	gen plan.Generator, ok bool) {
	t, ok := g.loop()
	if !ok || !apart {
		return r, s, nil, false
	}
	t = t.Shortened(iterations, rest)
	short := *g
	short.list, short.fixed = slices.Clone(g.list), &t
	for i := range short.list {
		short.list[i].Bytes = units.Bytes(t.Bytes)
	}
	return g.req, s, &short, true
}
