package build

import (
	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/plan"
	"github.com/simccl/simccl/plan/internal/cells"
	"github.com/simccl/simccl/plan/internal/transfer"
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

// Iterations implements plan.LoopGenerator.
func (b *base) Iterations() int64 {
	if !b.loops() {
		return 0
	}
	return cells.LoopsOf(b.split, b.req.Func, b.comm.NRanks).Iterations()
}

// Shorten implements plan.LoopGenerator.
func (b *base) Shorten(iterations int64, rest, apart bool) (r plan.Request, s plan.Split, g plan.Generator, ok bool) {
	s, bytes := cells.LoopsOf(b.split, b.req.Func, b.comm.NRanks).Shorten(iterations, rest)
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

// loop returns the operation's transfers as they are where every one has whole
// steps, in the network and within nodes; false where some have not.
func (g *p2p) loop() (t transfer.Transfer, ok bool) {
	t.Bytes = g.req.Count * int64(g.req.Type.Size())
	if g.req.Direct || t.Bytes < 8*int64(g.comm.P2PChunkSize) || t.Bytes <= int64(g.ChMax)*g.req.Params.P2PLLThreshold.Or(16384) {
		return t, false
	}
	g.size(&t, 0, 0, 0) // to itself: no network, no LL
	if t.Piece > 0 {    // each of several steps, and none by LL
		last := t.Bytes - int64(t.Parts-1)*t.Piece
		return t, last >= 8*int64(g.comm.P2PChunkSize) && last > g.req.Params.P2PLLThreshold.Or(16384)
	}
	return t, t.Chunk%4096 == 0 // as parts begin
}

// Iterations implements plan.LoopGenerator: an iteration is a chunk of each part of
// a transfer. The last part of a transfer may be shorter than the others.
func (g *p2p) Iterations() int64 {
	t, ok := g.loop()
	if !ok {
		return 0
	}
	begin, end := t.Bounds(t.Parts - 1)
	return (end - begin) / t.Chunk
}

// Shorten implements plan.LoopGenerator.
func (g *p2p) Shorten(iterations int64, rest, apart bool) (r plan.Request, s plan.Split, gen plan.Generator, ok bool) {
	t, _ := g.loop()
	bytes := int64(t.Parts) * iterations * t.Chunk
	if rest {
		bytes = t.Bytes - int64(t.Parts)*(g.Iterations()-iterations)*t.Chunk
	}
	r = g.req
	if apart {
		r.Apart = r.BlockStep()
	}
	if r.Count = bytes / int64(r.Type.Size()); r.Count*int64(r.Type.Size()) != bytes {
		return r, s, nil, false
	}
	if t.Piece > 0 {
		t.Piece -= (g.Iterations() - iterations) * t.Chunk
		if !rest {
			t.Piece = iterations * t.Chunk
		}
	}
	short := *g
	short.req, short.fixed = r, &t
	return r, s, &short, true
}
