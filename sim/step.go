package sim

import (
	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/plan"
	"github.com/simccl/simccl/sim/event"
	"github.com/simccl/simccl/sim/gpu"
	"github.com/simccl/simccl/sim/internal/chance"
	"github.com/simccl/simccl/sim/wire"
	"github.com/simccl/simccl/units"
)

// try starts the group's next piece if all it needs is there; else it leaves
// the group to whoever brings what is missing.
func (e *engine) try(gi int32) {
	g := &e.groups[gi]
	if g.state != idle && g.state != waiting {
		return
	}
	if e.queue.Now < g.free {
		e.wakeAt(gi, g.free)
		return
	}
	if g.state == idle {
		if !e.fetch(g) {
			e.programEnd(gi)
			return
		}
		g.state, g.since = waiting, max(g.since, g.free)
	}
	at, ok := e.ready(g)
	if !ok {
		return
	}
	if at > e.queue.Now {
		e.wakeAt(gi, at)
		return
	}
	e.begin(gi)
}

// fetch takes the next op of the program.
func (e *engine) fetch(g *group) bool {
	if !g.cur.Next(&g.op) {
		return false
	}
	e.fetched++
	op := &g.op
	g.pass = gpu.Pass{Loads: len(op.From), Stores: len(op.To), Elem: int64(g.job.plan.ElemSize())}
	if g.job.fold != nil {
		g.job.fold.Ends(g, op)
	}
	n, size := g.job.plan.Slices(&g.pr, op.Bytes)
	g.slice, g.slices, g.size = 0, int32(n), size
	g.pass.Local = op.Do&plan.Copy != 0 && op.Dst.Buf != plan.NoBuffer
	if g.joint >= 0 && g.job.plan.Req.Algo >= coll.NVLS {
		// The switch reduces what it pulls and copies what it spreads.
		g.pass.Loads, g.pass.Stores = min(1, g.pass.Loads), min(1, g.pass.Stores)
	}
	align := int64(0)
	if op.Src.Buf != plan.NoBuffer || op.Do&plan.Accum != 0 {
		g.pass.Loads++
		g.pass.User = true
		align = int64(op.Src.Off)
	}
	if g.pass.Local {
		align |= int64(op.Dst.Off)
	}
	g.pass.Astride = align%128 != 0
	g.pack = 16
	if align%16 != 0 {
		g.pack = int64(g.job.plan.ElemSize())
		g.pass.Skew = true
	}
	if g.job.plan.OneRank() == plan.OneRankKernel { // a plain store, no second one beside a peer's
		g.pass.Local, g.pass.Stores = false, 1
	}
	g.pass.Host = false
	for _, id := range op.From {
		g.pass.Host = g.pass.Host || e.conns[id].host
	}
	g.route = e.routeOf(g)
	g.pass.Own = g.route == e.nw.Table.Local && len(op.To) > 0 && e.conns[op.To[0]].net >= 0
	return true
}

// routeOf is the route that the op's loads and stores take.
func (e *engine) routeOf(g *group) wire.RouteID {
	if g.joint >= 0 {
		return g.joint
	}
	if g.job.memory > 0 {
		return g.job.memory
	}
	if len(g.op.To) == 0 {
		return e.nw.Table.Local
	}
	return e.conns[g.op.To[0]].route
}

// ready tells when data and room for the next piece are there; ok is false
// while that is not known.
func (e *engine) ready(g *group) (at units.Time, ok bool) {
	for _, id := range g.awaits(g.op.From) {
		c := &e.conns[id]
		k := c.taken + int64(g.op.RecvAhead)
		if k >= c.posted {
			return 0, false
		}
		at = max(at, c.head[k%plan.FIFOSteps])
	}
	for _, id := range g.awaits(g.op.To) {
		c := &e.conns[id]
		if k := c.sent + int64(g.op.SendAhead) - c.depth; k >= 0 {
			if k >= c.credited {
				return 0, false
			}
			at = max(at, c.credit[k%plan.FIFOSteps])
		}
	}
	return at, true
}

// pieceBytes is the payload of the piece under way.
func (g *group) pieceBytes(slice int32) units.Bytes {
	left := g.op.Bytes - g.size*units.Bytes(slice)
	return max(0, min(left, g.size))
}

// begin starts a piece: its overhead first, then its bytes.
func (e *engine) begin(gi int32) {
	g := &e.groups[gi]
	g.streams = g.posted && e.queue.Now == g.free
	g.bytes = g.pieceBytes(g.slice)
	g.state = opening
	g.count++
	if e.obs != nil {
		e.obs.Piece(PieceEvent{Point: PieceBegun, Group: gi})
	}
	if g.op.Do&plan.HoldSend == 0 {
		for _, id := range g.op.To {
			e.conns[id].sent++
		}
	}
	var over units.Time
	switch g.pr.Proto {
	case coll.Simple:
		over = e.sliceOverhead(g)
	case coll.LL:
		over = e.cost.llOp
	}
	if e.slow != nil {
		over = units.Time(float64(over) * e.slow[g.pr.Rank])
	}
	if g.pr.Proto != coll.Simple {
		// Cut-through: the peer sees the first data a hop after the first trip.
		for _, id := range g.op.To {
			e.postHead(id, e.queue.Now+over+e.cost.hop[g.pr.Proto])
		}
	}
	if g.bytes == 0 {
		e.queue.Push(e.queue.Now+over, event.Done, evDone, gi, 0)
		return
	}
	e.queue.Push(e.queue.Now+over, event.Done, evJoin, gi, 0)
}

// join puts the piece on its links.
func (e *engine) join(gi int32) {
	g := &e.groups[gi]
	g.state = moving
	work := e.work(g)
	sm := &e.sms[g.sm]
	if g.pr.Proto == coll.Simple {
		sm.active += g.pr.Workers
		if sm.n > 1 {
			e.reshare(g.sm, gi)
		}
	}
	e.carry(g)
	rate := e.rate(g, sm.active)
	if e.obs != nil {
		e.obs.Piece(PieceEvent{Point: PieceJoined, Group: gi, Work: work, Rate: rate})
	}
	g.rest = work
	e.flow(gi, rate)
}

// maxFlow is what one flow carries at most, in nano-bytes: 4 GiB and more. A
// flow's work is counted in 63 bits, and a piece may be larger: a copy is one
// piece whatever its size.
const maxFlow = 1 << 62

// flow starts what is left of a piece's bytes, or as much as a flow carries.
func (e *engine) flow(gi int32, rate wire.Rate) {
	g := &e.groups[gi]
	part := min(g.rest, maxFlow)
	g.rest -= part
	g.flow = e.net.Start(e.queue.Now, g.route, rate, wire.Work(part), 1, gi)
}

// carry counts the piece's bytes on its links.
func (e *engine) carry(g *group) {
	for left := e.carried(g); left > 0; left -= maxFlow {
		e.net.Carry(g.route, wire.Work(min(left, maxFlow)))
	}
}

// carried is what the links carry for the piece, flags included, in nano-bytes.
func (e *engine) carried(g *group) float64 {
	return float64(g.bytes) * wire.NanoBytes / e.class.LinkShare[g.pr.Proto]
}

// work is how long the piece takes, as the bytes that would take so long
// without jitter.
func (e *engine) work(g *group) float64 {
	w := e.carried(g)
	jit := [...]float64{e.jitter.LL, e.jitter.LL128, e.jitter.Slice}[g.pr.Proto]
	if jit > 0 {
		f := 1 + jit*chance.Normal(e.seed, uint64(g.rank), uint64(g.pr.Channel)<<32|uint64(g.pr.Group), uint64(g.count))
		w *= max(0.2, f+g.drift)
	}
	if g.joint >= 0 && g.job.plan.Req.Algo >= coll.NVLS {
		w /= e.class.CastEff
	}
	return w
}

// rate is the group's own bound on the link.
func (e *engine) rate(g *group, active int32) wire.Rate {
	var r float64
	switch g.pr.Proto {
	case coll.Simple:
		if g.job.plan.OneRank() == plan.DeviceCopy {
			r = e.class.One.L2Rate // the memory holds it up
			break
		}
		r = e.class.SimpleRate(g.pass, int(g.pr.Workers), int(active), g.pack)
	case coll.LL:
		r = float64(g.bytes) * 1e-3 / e.class.LLTime(g.pass, int(g.pr.Workers), int(e.sms[g.sm].threads-g.pr.Workers), int64(g.bytes), g.job.miss)
	default:
		r = float64(g.bytes) * 1e-3 / e.class.LL128Time(g.pass, int(g.pr.Workers), int64(g.bytes), g.job.miss)
	}
	if e.slow != nil {
		r /= e.slow[g.pr.Rank]
	}
	return wire.RateOf(r / e.class.LinkShare[g.pr.Proto])
}

// reshare gives the other moving groups of an SM their new rate.
func (e *engine) reshare(si, except int32) {
	sm := &e.sms[si]
	for i := sm.first; i < sm.first+sm.n; i++ {
		if g := &e.groups[i]; i != except && g.state == moving && g.flow >= 0 && g.pr.Proto == coll.Simple {
			e.net.SetRate(e.queue.Now, g.flow, e.rate(g, sm.active))
		}
	}
}

// finish ends a piece whose bytes have moved.
func (e *engine) finish(gi int32) {
	g := &e.groups[gi]
	if g.state == moving && g.rest >= 1 {
		e.flow(gi, e.rate(g, e.sms[g.sm].active))
		return
	}
	if e.obs != nil {
		e.obs.Piece(PieceEvent{Point: PieceMoved, Group: gi})
	}
	if g.state == moving && g.pr.Proto == coll.Simple {
		sm := &e.sms[g.sm]
		sm.active -= g.pr.Workers
		g.state = closing
		if sm.n > 1 {
			e.reshare(g.sm, gi)
		}
	}
	g.state = closing
	if g.pr.Proto == coll.Simple {
		e.finishSlice(gi)
		return
	}
	e.complete(gi)
}

// finishSlice ends a Simple slice: its flag goes up behind a fence
// (prims_simple.h: the last warp fences and posts while the workers go on).
// Within an op that fence has to wait for the stores of the next slice too,
// and where the group goes on without a pause the barrier after the next slice
// waits for the fence to drain.
func (e *engine) finishSlice(gi int32) {
	g := &e.groups[gi]
	hop := e.cost.hop[coll.Simple]
	free := e.queue.Now
	if g.streams {
		free += e.drain(g)
	}
	if g.held.on {
		g.held.on = false
		wait := units.Time(e.class.Simple.Fence * float64(e.queue.Now-g.held.at))
		e.post(gi, &g.held, g.held.at+wait+hop)
	}
	if e.obs != nil {
		e.obs.Piece(PieceEvent{Point: PieceRead, Group: gi})
	}
	e.release(g, e.queue.Now+e.cost.credit[coll.Simple])
	g.posted = len(g.op.To) > 0 && g.op.Do&plan.HoldSend == 0
	if g.posted {
		g.held.set(g, e.queue.Now)
		if e.obs != nil {
			e.obs.Piece(PieceEvent{Point: PieceHeld, Group: gi})
		}
		if g.slice+1 >= g.slices || g.pieceBytes(g.slice+1) == 0 {
			g.held.on = false
			e.post(gi, &g.held, e.queue.Now+hop)
		}
	} else {
		e.holdBack(g)
	}
	g.slice++
	g.free, g.since = free, free
	if e.obs != nil {
		e.obs.Piece(PieceEvent{Point: PieceDone, Group: gi})
	}
	g.state = waiting
	if g.slice == g.slices {
		g.state = idle
	}
	e.try(gi)
}

// drain is how long the fence holds the group up: stores into the GPU's own
// memory, which a NIC will read, are through at once.
func (e *engine) drain(g *group) units.Time {
	if g.route == e.nw.Table.Local {
		return 0
	}
	return e.cost.drain
}

// heldSlice is a slice whose flag is not up yet.
type heldSlice struct {
	on    bool
	first bool // of its op
	n     uint8
	bytes units.Bytes
	at    units.Time // when its bytes were through
	chunk int32
	to    [4]int32
	more  []int32 // of ops with more peers, which never change
}

func (h *heldSlice) set(g *group, now units.Time) {
	*h = heldSlice{on: true, first: g.slice == 0, bytes: g.bytes, at: now, chunk: g.op.Chunk, more: h.more[:0]}
	if len(g.op.To) > len(h.to) {
		h.more = append(h.more, g.op.To...)
		return
	}
	h.n = uint8(copy(h.to[:], g.op.To))
}

func (h *heldSlice) peers() []int32 {
	if len(h.more) > 0 {
		return h.more
	}
	return h.to[:h.n]
}

// holdBack keeps the bytes of a piece that shares its network step with the
// pieces to come (PAT).
func (e *engine) holdBack(g *group) {
	for _, id := range g.op.To {
		if c := &e.conns[id]; c.net >= 0 {
			e.nw.Hold(c.net, g.bytes)
		}
	}
}

// complete ends a cut-through op, once the last data it reads has come.
func (e *engine) complete(gi int32) {
	g := &e.groups[gi]
	if g.state != closing {
		return // an earlier look has ended it
	}
	for _, id := range g.op.From {
		c := &e.conns[id]
		if c.tails <= c.taken {
			return // postTail brings us back
		}
		last := c.tail[c.taken%plan.FIFOSteps]
		if g.bytes > 0 && g.pr.Proto == coll.LL {
			last += e.cost.llTrip
		}
		if last > e.queue.Now {
			e.queue.Push(last, event.Done, evEnd, gi, 0)
			return
		}
	}
	p := g.pr.Proto
	for _, id := range g.op.To {
		c := &e.conns[id]
		if c.net >= 0 { // the proxy sends whole steps only
			k := e.nw.Conns[c.net].Posted()
			e.nw.Post(c.net, e.queue.Now, g.bytes)
			e.sentAtOnce(gi, id, k, 0)
			continue
		}
		k := c.tails
		e.sentAtOnce(gi, id, k, e.postTail(id, e.queue.Now+e.cost.hop[p]))
	}
	if e.obs != nil {
		e.obs.Piece(PieceEvent{Point: PieceRead, Group: gi})
	}
	e.release(g, e.queue.Now+e.cost.credit[p])
	g.free, g.since = e.queue.Now, e.queue.Now
	if p == coll.LL128 && g.bytes > 0 {
		g.free += e.cost.ll128Op
	}
	if e.obs != nil {
		e.obs.Piece(PieceEvent{Point: PieceDone, Group: gi})
	}
	g.state = idle
	e.try(gi)
}

// post makes a slice visible to its receivers at time t.
func (e *engine) post(gi int32, h *heldSlice, t units.Time) {
	if e.groups[gi].spreads() {
		e.holdTurn(gi, h, t)
		return
	}
	for _, id := range h.peers() {
		c := &e.conns[id]
		if c.net >= 0 {
			k := e.nw.Conns[c.net].Posted()
			e.nw.Post(c.net, t, h.bytes)
			e.sentHeld(gi, id, k, h, 0)
			continue
		}
		k := c.posted
		e.sentHeld(gi, id, k, h, e.deliver(id, t))
	}
}

// sentAtOnce reports the k-th piece of a connection, of a cut-through op.
func (e *engine) sentAtOnce(gi, id int32, k int64, end units.Time) {
	if e.obs != nil {
		g := &e.groups[gi]
		e.obs.Sent(SendEvent{As: SentAtOnce, Group: gi, Conn: id, Piece: k, First: true, Bytes: g.bytes, Chunk: g.op.Chunk, End: end})
	}
}

// sentHeld reports the k-th piece of a connection, a slice whose flag goes up.
func (e *engine) sentHeld(gi, id int32, k int64, h *heldSlice, end units.Time) {
	if e.obs != nil {
		e.obs.Sent(SendEvent{As: SentHeld, Group: gi, Conn: id, Piece: k, First: h.first, Bytes: h.bytes, Chunk: h.chunk, End: end})
	}
}

// deliver makes the next piece of a connection readable at time t, never
// before the piece ahead of it, and says when that is.
func (e *engine) deliver(id int32, t units.Time) units.Time {
	c := &e.conns[id]
	t += c.far
	if c.posted > 0 {
		t = max(t, c.head[(c.posted-1)%plan.FIFOSteps])
	}
	c.head[c.posted%plan.FIFOSteps] = t
	c.tail[c.posted%plan.FIFOSteps] = t
	c.posted++
	c.tails = c.posted
	e.nudge(c.rcv, t)
	return t
}

// postHead tells the receiver when the first data of a piece arrives.
func (e *engine) postHead(id int32, t units.Time) {
	c := &e.conns[id]
	if c.net >= 0 {
		return
	}
	t += c.far
	c.head[c.posted%plan.FIFOSteps] = t
	c.posted++
	e.nudge(c.rcv, t)
}

// postTail tells the receiver when the last data of a piece arrives, and says
// when that is.
func (e *engine) postTail(id int32, t units.Time) units.Time {
	c := &e.conns[id]
	t += c.far
	c.tail[c.tails%plan.FIFOSteps] = t
	c.tails++
	if c.rcv >= 0 {
		if g := &e.groups[c.rcv]; g.state == closing {
			e.queue.Push(max(t, e.queue.Now), event.Done, evEnd, c.rcv, 0)
		}
	}
	return t
}

// release returns the room of the piece just read.
func (e *engine) release(g *group, t units.Time) {
	if g.op.Do&plan.HoldRecv != 0 {
		return
	}
	if g.spreads() {
		if len(g.op.From) > 0 {
			e.releaseTurn(g, t)
		}
		return
	}
	for _, id := range g.op.From {
		c := &e.conns[id]
		c.taken++
		if c.net >= 0 {
			e.nw.Free(c.net, t)
			continue
		}
		e.giveCredit(id, t)
	}
}

// giveCredit lets the sender use one more piece of room from time t.
func (e *engine) giveCredit(id int32, t units.Time) {
	c := &e.conns[id]
	t += c.far
	c.credit[c.credited%plan.FIFOSteps] = t
	c.credited++
	e.nudge(c.snd, t)
}

// nudge lets a waiting group look again.
func (e *engine) nudge(gi int32, t units.Time) {
	if gi >= 0 && e.groups[gi].state == waiting {
		e.wakeAt(gi, t)
	}
}
