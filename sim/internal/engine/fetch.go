package engine

import (
	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/plan"
	"github.com/simccl/simccl/sim/gpu"
	"github.com/simccl/simccl/sim/wire"
)

// opShape is what the pieces of an op depend on, beside their size. Connections
// differ where the plan keeps them elsewhere.
type opShape struct {
	from, to       *int32
	nFrom, nTo     uint8
	do             plan.Do
	src, dst       plan.Buffer
	srcOff, dstOff uint8 // within a line
}

func shapeOf(op *plan.Op) opShape {
	s := opShape{nil, nil, uint8(min(len(op.From), 255)), uint8(min(len(op.To), 255)), op.Do, op.Src.Buf,
		op.Dst.Buf, uint8(op.Src.Off % lineBytes), uint8(op.Dst.Off % lineBytes)}
	if len(op.From) > 0 {
		s.from = &op.From[0]
	}
	if len(op.To) > 0 {
		s.to = &op.To[0]
	}
	return s
}

// fetch takes the next op of the program.
func (e *Engine) fetch(g *Group) bool {
	if !g.cur.Next(&g.Op) {
		return false
	}
	e.fetched++
	op := &g.Op
	if g.slice, g.slices, g.size = 0, max(1, g.Program.Slices), op.Bytes; g.proto == coll.Simple {
		n, size := g.Plan.Slices(&g.Program, op.Bytes)
		g.slices, g.size = int32(n), size
	}
	shape := shapeOf(op)
	if n := int(shape.nFrom); g.known && shape == g.last {
		op.From, op.To = g.peers[:n], g.peers[n:n+int(shape.nTo)]
		return true
	}
	e.look(g)
	if g.keeps() {
		n := copy(g.peers[:], op.From)
		copy(g.peers[n:], op.To)
		g.known, g.last = true, shape
	}
	return true
}

// keeps reports whether the next op may be known by its shape alone: its connections
// are the program's own, and few.
func (g *Group) keeps() bool {
	return g.Job.Fold == nil && !g.Program.Role.VariesConns() && len(g.Op.From)+len(g.Op.To) <= len(g.peers)
}

// look sets the group's pass (loads, stores, alignment, memory), pack and route for an op: what the rate of
// its pieces depends on, beside their size.
func (e *Engine) look(g *Group) {
	op, pass, pack := &g.Op, g.pass, g.pack
	g.pass = gpu.Pass{Loads: len(op.From), Stores: len(op.To), Elem: int64(g.Plan.ElemSize()),
		Miss: g.Job.crowded}
	if g.Job.Fold != nil {
		g.Job.Fold.Ends(g, op)
	}
	g.idle = false
	g.pass.Local = op.Do&plan.Copy != 0 && op.Dst.Buf != plan.NoBuffer
	if g.Joint >= 0 && g.Plan.Req.Algo.IsNVLS() {
		g.pass.Multicast = true
		// The switch reduces what it pulls and copies what it spreads.
		g.pass.Loads, g.pass.Stores = min(1, g.pass.Loads), min(1, g.pass.Stores)
	}
	align, base := int64(0), g.Plan.Req.Misalign
	if op.Src.Buf != plan.NoBuffer || op.Do&plan.Accum != 0 {
		g.pass.Loads++
		g.pass.User = true
		align = int64(op.Src.Off) + base
	}
	if op.Do&plan.Accum != 0 && g.Program.Role == plan.RoleBlock { // adds Src to Dst
		g.pass.Loads++
	}
	if g.pass.Local {
		align |= int64(op.Dst.Off) + base
	}
	if op.Do&(plan.Reduce|plan.Accum) != 0 && g.pass.Elem == 1 {
		g.pass.Sums = max(0, g.pass.Loads-1)
	}
	if op.Do&(plan.Reduce|plan.Accum) != 0 && g.pass.Elem == 1 && (g.Plan.Req.Op == coll.Min ||
		g.Plan.Req.Op == coll.Max) {
		g.pass.Extremes = max(0, g.pass.Loads-1)
	}
	g.pass.Unaligned128 = align%128 != 0
	g.pack = 16
	if g.Plan.Req.Direct && g.Program.Role == plan.RoleSend { // it stores at the receiver's offset
		align |= int64(g.Program.Transfer.Dst)
	}
	if align%16 != 0 {
		g.pack = int64(g.Plan.ElemSize())
		g.pass.Skew = true
	}
	if g.Job.Plan.OneRank() == plan.OneRankKernel { // a plain store, no second one beside a peer's
		g.pass.Local, g.pass.Stores = false, 1
		g.pass.Miss = 0 // as fast from HBM as from L2: testdata/measured/h200x1/onerank.txt
	}
	g.pass.From = e.source(g)
	if g.Plan.Req.Direct {
		e.direct(g)
	}
	g.Route = e.routeOf(g)
	g.pass.Own = e.storesOwn(g)
	changed := g.pass != pass || g.pack != pack
	if changed {
		g.sized = -1
	}
	if g.proto == coll.Simple && (changed || g.kind == -1) {
		g.kind = e.kindOf(g)
	}
}

// direct is an op of registered buffers, whose stores go to the peers' own: nothing is
// copied out of a FIFO. What is received and not reduced is in place already, and is
// read from there by what passes it on (prims_simple.h:205-260).
func (e *Engine) direct(g *Group) {
	op, req := &g.Op, &g.Plan.Req
	switch {
	case g.proto != coll.Simple:
		return
	case !req.Func.IsP2P() && req.Algo.IsNVLS(): // the switch reads and writes the user's buffers
		g.idle = g.Program.Role == plan.RoleScatter || g.Program.Role == plan.RoleGather
		return
	}
	for _, ids := range [...][]int32{op.From, op.To} {
		for _, id := range ids {
			if c := &e.Conns[id]; c.Net >= 0 || c.FromHost {
				return
			}
		}
	}
	g.pass.Direct = len(op.To) > 0
	if op.Do&plan.Recv != 0 && op.Do&(plan.Reduce|plan.PostOp) == 0 && g.pass.Local {
		g.pass.Local = false
		g.idle = len(op.To) == 0
	}
}

// source returns the memory from which the group loads what it receives: the slowest of its FIFOs'.
func (e *Engine) source(g *Group) gpu.Place {
	place := gpu.OwnMemory
	for _, id := range g.Op.From {
		switch c := &e.Conns[id]; {
		case c.FromHost:
			return gpu.HostMemory
		case c.Read && g.proto == coll.Simple:
			place = gpu.PeerMemory
		}
	}
	return place
}

// storesOwn reports whether the group stores all that it sends to its own GPU's memory: to the FIFO
// of a NIC, or one that its peer reads.
func (e *Engine) storesOwn(g *Group) bool {
	own := len(g.Op.To) > 0 && g.Route == g.local // nothing of the op crosses a link
	for _, id := range g.Op.To {
		switch c := &e.Conns[id]; {
		case c.Read && g.proto == coll.Simple:
			own = true
		case c.Net < 0 || c.Route != e.Net.Table.Local:
			return false
		}
	}
	return own
}

// routeOf is the route that the op's loads and stores take.
func (e *Engine) routeOf(g *Group) wire.RouteID {
	if g.Joint >= 0 {
		return g.Joint
	}
	if g.Job.memory > 0 {
		return g.Job.memory
	}
	if len(g.Op.To) == 0 {
		return g.local
	}
	if r := e.Conns[g.Op.To[0]].Route; r != e.Net.Table.Local {
		return r
	}
	return g.local
}
