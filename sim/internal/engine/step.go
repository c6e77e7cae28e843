package engine

import (
	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/plan"
	"github.com/simccl/simccl/sim/gpu"
	"github.com/simccl/simccl/sim/internal/event"
	"github.com/simccl/simccl/sim/wire"
	"github.com/simccl/simccl/units"
)

// A group walks its program op by op, and each op slice by slice (Simple) or in
// one piece (LL, LL128):
//
//	tryStart  fetches the op; waits until data and room are there
//	begin     the piece's overhead runs
//	join      its bytes are on their links
//	finish    they have moved: the slice's flag goes up, or a cut-through op waits
//	          for the last data it reads (complete)
//
// Example: on a ring of LL, rank 1 begins when the first data of rank 0 has come,
// and its own first data reaches rank 2 a hop later, long before the op is
// through; the op ends when the last data of rank 0 has come.

// goOn has a group start its next piece, whose bytes move with an event of their own.
func (e *Engine) goOn(gi int32) {
	if e.tryStart(gi) {
		e.Queue.Push(e.Queue.Now, event.Done, evJoin, gi, 0)
	}
}

// tryStart starts the group's next piece if all it needs is there; else the group
// waits, and what is missing wakes it: deliver, postHead or giveCredit. It reports
// whether the piece's bytes are to join their links in this instant.
func (e *Engine) tryStart(gi int32) (joins bool) {
	g := &e.Groups[gi]
	if g.state != idle && g.state != waiting {
		return false
	}
	if e.Queue.Now < g.Free {
		e.wakeAt(gi, g.Free)
		return false
	}
	if g.state == idle {
		if !e.fetch(g) {
			e.programEnd(gi)
			return false
		}
		if g.taken++; e.steady.on {
			e.took(gi)
		}
		g.state, g.Since = waiting, max(g.Since, g.Free)
		if g.Free += e.entry(g); e.Queue.Now < g.Free {
			e.wakeAt(gi, g.Free)
			return false
		}
	}
	at, ok := e.ready(g)
	if !ok {
		return false
	}
	if at > e.Queue.Now {
		e.wakeAt(gi, at)
		return false
	}
	return e.begin(gi)
}

// entry is what a group takes before an op that its wait for data hides: of LL128, an
// op that reduces user data and a peer's.
func (e *Engine) entry(g *Group) units.Time {
	if g.proto != coll.LL128 || !g.pass.User || g.pass.Loads < 2 {
		return 0
	}
	return e.Cost.ll128Both
}

// ready reports when data and room for the next piece are there; ok is false
// while that is not known. What was there when it was asked before is not looked
// at again: only the group itself takes it away.
func (e *Engine) ready(g *Group) (at units.Time, ok bool) {
	from, to := g.Awaits(g.Op.From), g.Awaits(g.Op.To)
	for ; int(g.met) < len(from); g.met++ {
		c := &e.Conns[from[g.met]]
		k := c.Taken + int64(g.Op.RecvAhead)
		if k >= c.posted {
			return 0, false
		}
		g.metAt = max(g.metAt, c.slot(k).Head)
	}
	for ; int(g.met)-len(from) < len(to); g.met++ {
		c := &e.Conns[to[int(g.met)-len(from)]]
		if e.addresses != nil {
			a := &e.given[to[int(g.met)-len(from)]]
			if a.given < a.wanted {
				return 0, false
			}
			g.metAt = max(g.metAt, a.at)
		}
		if k := c.sent + int64(g.Op.SendAhead) - int64(c.Depth); k >= 0 {
			if k >= c.credited {
				return 0, false
			}
			g.metAt = max(g.metAt, c.slot(k).credit)
		}
	}
	return g.metAt, true
}

// pieceBytes is the payload of the piece in progress.
func (g *Group) pieceBytes(slice int32) units.Bytes {
	left := g.Op.Bytes - g.size*units.Bytes(slice)
	return max(0, min(left, g.size))
}

// begin starts a piece: its overhead first, then its bytes. It reports whether there is
// no overhead.
func (e *Engine) begin(gi int32) (joins bool) {
	g := &e.Groups[gi]
	g.streams = g.posted && e.Queue.Now == g.Free
	if g.Bytes = g.pieceBytes(g.slice); g.idle {
		g.Bytes = 0
	}
	g.state, g.met, g.metAt = opening, 0, e.Queue.Now
	g.count++
	if e.Observer != nil {
		e.Observer.Piece(PieceEvent{Point: PieceBegun, Group: gi})
	}
	if g.Op.Do&plan.HoldSend == 0 {
		for _, id := range g.Op.To {
			e.Conns[id].sent++
		}
	}
	var over units.Time
	switch g.proto {
	case coll.Simple:
		over = e.sliceOverhead(g)
		if g.Program.Role == plan.RoleBlock && len(g.Op.From) > 0 {
			over += e.Cost.blockTurn
		}
	case coll.LL:
		over = e.Cost.llOp
	}
	if e.Slow != nil {
		over = units.Time(float64(over) * e.Slow[g.Program.Rank])
	}
	if g.proto != coll.Simple {
		// Cut-through: the peer sees the first data a hop after the first trip.
		for _, id := range g.Op.To {
			e.postHead(id, e.Queue.Now+over+e.Cost.Hop[g.proto])
		}
	}
	if g.Bytes == 0 {
		e.Queue.Push(e.Queue.Now+over, event.Done, evDone, gi, 0)
		return false
	}
	if over == 0 {
		return true
	}
	e.Queue.Push(e.Queue.Now+over, event.Done, evJoin, gi, 0)
	return false
}

// join puts the piece on its links.
func (e *Engine) join(gi int32) {
	g := &e.Groups[gi]
	g.state = moving
	e.size(g)
	work := e.work(g)
	sm := &e.SMs[g.Sm]
	if g.proto == coll.Simple {
		sm.active += g.Program.Workers
		if sm.Groups > 1 {
			e.reshare(g.Sm, gi)
		}
	}
	e.carry(g)
	rate := e.rate(g, sm.active)
	if e.Observer != nil {
		e.Observer.Piece(PieceEvent{Point: PieceJoined, Group: gi, Work: work, Rate: rate})
	}
	g.left = work
	e.flow(gi, rate)
}

// size sets what depends on a piece's size; it keeps the values where the piece before had the same size.
func (e *Engine) size(g *Group) {
	if g.sized == g.Bytes {
		return
	}
	g.sized, g.load = g.Bytes, e.carried(g)
	if g.proto != coll.Simple {
		g.bound = e.findRate(g, 0)
	}
}

// maxFlow is what one flow carries at most, in nano-bytes: 4 GiB and more. A
// flow's work is counted in 63 bits, and a piece may be larger: a copy is one
// piece of any size.
const maxFlow = 1 << 62

// flow starts the rest of a piece's bytes, or as much as a flow carries.
func (e *Engine) flow(gi int32, rate wire.Rate) {
	g := &e.Groups[gi]
	part := min(g.left, maxFlow)
	g.left -= part
	g.flow = e.Wire.Start(e.Queue.Now, g.Route, rate, wire.Work(part), 1, gi)
}

// carry counts the piece's bytes on its links.
func (e *Engine) carry(g *Group) {
	for left := g.load; left > 0; left -= maxFlow {
		e.Wire.Carry(g.Route, wire.Work(min(left, maxFlow)))
	}
}

// work is how long the piece takes, as the bytes that would take so long
// without jitter.
func (e *Engine) work(g *Group) float64 {
	w := g.load
	jit := [...]float64{e.Jitter.LL, e.Jitter.LL128, e.Jitter.Slice}[g.proto]
	if jit > 0 {
		f := 1 + jit*g.draws.Normal(uint64(g.count))
		w *= max(0.2, f+g.drift)
	}
	if g.Joint >= 0 && g.Plan.Req.Algo.IsNVLS() {
		w /= e.Class.MulticastEff
	}
	return w
}

// rate is the group's own bound on the link.
func (e *Engine) rate(g *Group, active int32) wire.Rate {
	if g.proto != coll.Simple && e.Slow == nil { // which may change
		return g.bound
	}
	if g.kind < 0 {
		return e.findRate(g, active)
	}
	k := &e.kinds[g.kind]
	if int(active) >= len(k.rates) {
		k.rates = append(k.rates, make([]wire.Rate, int(active)+1-len(k.rates))...)
	}
	if k.rates[active] == 0 {
		k.rates[active] = e.findRate(g, active)
	}
	return k.rates[active]
}

// kind is what the rate of a slice of Simple depends on, with that rate by how many
// threads are active on the SM, 0 where it was not asked for, and what loops cost on top by size.
type kind struct {
	pass    gpu.Pass
	pack    int64
	workers int32
	block   bool // of a schedule
	slow    float64
	rates   []wire.Rate
	loops   [keptSizes]loops
}

// loops is an entry of the cache of loopsOverhead. size is the slice's bytes + 1: 0 is an empty entry.
type loops struct {
	size units.Bytes
	over float64
}

// keptSizes is the number of cached sizes in a kind, a power of two: the heads of an NVLS channel have
// up to 8 at a time. NVLSTree of 32 and 64 MiB over 65 nodes takes 9 % less of a processor with them.
const keptSizes = 8

// maxKinds bounds the kinds whose rates are cached, as each straggler has its own; slices of further kinds
// have the number manyKinds and no cache.
const (
	maxKinds  = 64
	manyKinds = -2
)

// kindOf finds the kind of a group's slices.
func (e *Engine) kindOf(g *Group) int8 {
	slow := 1.0
	if e.Slow != nil {
		slow = e.Slow[g.Program.Rank]
	}
	for i := range e.kinds {
		if k := &e.kinds[i]; k.pass == g.pass && k.pack == g.pack && k.workers == g.Program.Workers &&
			k.block == (g.Program.Role == plan.RoleBlock) && k.slow == slow {
			return int8(i)
		}
	}
	if len(e.kinds) == maxKinds {
		return manyKinds
	}
	e.kinds = append(e.kinds, kind{pass: g.pass, pack: g.pack, workers: g.Program.Workers,
		block: g.Program.Role == plan.RoleBlock, slow: slow})
	return int8(len(e.kinds) - 1)
}

func (e *Engine) findRate(g *Group, active int32) wire.Rate {
	var r float64
	switch g.proto {
	case coll.Simple:
		if g.Job.Plan.OneRank() == plan.DeviceCopy {
			r = e.Class.One.L2Rate // the memory holds it up
			break
		}
		r = e.Class.SimpleRate(g.pass, int(g.Program.Workers), int(active), g.pack)
		if g.Program.Role == plan.RoleBlock {
			r *= e.Class.Simple.BlockRate
		}
		if g.Plan.Req.Func.IsP2P() {
			r /= 1 + e.Class.Simple.P2PMore
		}
	case coll.LL:
		r = float64(g.Bytes) * 1e-3 / e.Class.LLTime(g.pass, int(g.Program.Workers),
			int(e.SMs[g.Sm].threads-g.Program.Workers), int64(g.Bytes), g.Job.miss)
	default:
		r = float64(g.Bytes) * 1e-3 / e.Class.LL128Time(g.pass, int(g.Program.Workers), int64(g.Bytes),
			g.Job.miss)
	}
	if e.Slow != nil {
		r /= e.Slow[g.Program.Rank]
	}
	return wire.RateOf(r / e.share(g))
}

// reshare gives the other moving groups of an SM their new rate.
func (e *Engine) reshare(si, except int32) {
	sm := &e.SMs[si]
	for i := sm.from; i < sm.to; i++ {
		if g := &e.Groups[i]; i != except && g.state == moving && g.flow >= 0 && g.kind != -1 {
			e.Wire.SetRate(e.Queue.Now, g.flow, e.rate(g, sm.active))
		}
	}
}

// finish ends a piece whose bytes have moved.
func (e *Engine) finish(gi int32) {
	g := &e.Groups[gi]
	if g.state == moving && g.left >= 1 {
		e.flow(gi, e.rate(g, e.SMs[g.Sm].active))
		return
	}
	if e.Observer != nil {
		e.Observer.Piece(PieceEvent{Point: PieceMoved, Group: gi})
	}
	if g.state == moving && g.proto == coll.Simple {
		sm := &e.SMs[g.Sm]
		sm.active -= g.Program.Workers
		g.state = closing
		if sm.Groups > 1 {
			e.reshare(g.Sm, gi)
		}
	}
	g.state = closing
	if g.proto == coll.Simple {
		e.finishSlice(gi)
		return
	}
	e.complete(gi)
}

// finishSlice ends a Simple slice: its flag goes up behind a fence
// (prims_simple.h: the last warp fences and posts while the workers continue).
// Within an op that fence has to wait for the stores of the next slice too,
// and where the group continues without a pause the barrier after the next slice
// waits for the fence to drain.
func (e *Engine) finishSlice(gi int32) {
	g := &e.Groups[gi]
	hop := e.Cost.Hop[coll.Simple]
	free := e.Queue.Now
	if g.streams {
		free += e.drain(g)
	}
	if g.held.on {
		g.held.on = false
		wait := units.Time(e.Class.Simple.Fence * float64(e.Queue.Now-g.held.at))
		e.post(gi, &g.held, g.held.at+wait+hop)
	}
	if e.Observer != nil {
		e.Observer.Piece(PieceEvent{Point: PieceRead, Group: gi})
	}
	e.release(g, e.Queue.Now+e.Cost.credit[coll.Simple])
	g.posted = len(g.Op.To) > 0 && g.Op.Do&plan.HoldSend == 0
	if g.posted {
		g.held.set(g, e.Queue.Now)
		if e.Observer != nil {
			e.Observer.Piece(PieceEvent{Point: PieceHeld, Group: gi})
		}
		if g.slice+1 >= g.slices || g.pieceBytes(g.slice+1) == 0 {
			g.held.on = false
			e.post(gi, &g.held, e.Queue.Now+e.flush(g)+hop)
		}
	} else {
		e.holdBack(g)
	}
	g.slice++
	g.Free, g.Since = free, free
	if e.Observer != nil {
		e.Observer.Piece(PieceEvent{Point: PieceDone, Group: gi})
	}
	g.state = waiting
	if g.slice == g.slices {
		g.state = idle
	}
	e.goOn(gi)
}

// drain is how long the fence holds the group up: stores into the GPU's own
// memory, which a NIC will read, are through at once.
func (e *Engine) drain(g *Group) units.Time {
	if g.Route == g.local {
		return 0
	}
	return e.Cost.drain
}

// flush returns how long the fence behind an op's last slice takes after its bytes. For stores through a
// multicast address the class's multicast_slice contains it.
func (e *Engine) flush(g *Group) units.Time {
	if g.Route == g.local || g.pass.Multicast {
		return 0
	}
	return units.Time(e.Class.Simple.Flush * float64(e.Queue.Now-g.metAt))
}

// heldSlice is a slice whose flag is not up yet.
type heldSlice struct {
	on    bool
	first bool // of its op
	n     uint8
	chunk int32
	bytes units.Bytes
	at    units.Time // when its bytes were through
	to    [4]int32
	more  []int32 // of ops with more peers, which never change
}

func (h *heldSlice) set(g *Group, now units.Time) {
	*h = heldSlice{on: true, first: g.slice == 0, bytes: g.Bytes, at: now, chunk: g.Op.Chunk,
		more: h.more[:0]}
	if len(g.Op.To) > len(h.to) {
		h.more = append(h.more, g.Op.To...)
		return
	}
	h.n = uint8(copy(h.to[:], g.Op.To))
}

func (h *heldSlice) peers() []int32 {
	if len(h.more) > 0 {
		return h.more
	}
	return h.to[:h.n]
}

// holdBack keeps the bytes of a piece that shares its network step with the
// pieces to come (PAT).
func (e *Engine) holdBack(g *Group) {
	for _, id := range g.Op.To {
		if c := &e.Conns[id]; c.Net >= 0 {
			e.Net.Hold(c.Net, g.Bytes)
		}
	}
}

// complete ends a cut-through op, once the last data it reads has come.
func (e *Engine) complete(gi int32) {
	g := &e.Groups[gi]
	if g.state != closing {
		return // an earlier event has ended it
	}
	for _, id := range g.Op.From {
		c := &e.Conns[id]
		if c.tails <= c.Taken {
			return // postTail brings us back
		}
		last := c.slot(c.Taken).tail
		if g.Bytes > 0 && g.proto == coll.LL {
			last += e.Cost.llTrip
		}
		if last > e.Queue.Now {
			e.Queue.Push(last, event.Done, evEnd, gi, 0)
			return
		}
	}
	p := g.proto
	for _, id := range g.Op.To {
		c := &e.Conns[id]
		if c.Net >= 0 { // the proxy sends whole steps only
			k := e.Net.Conns[c.Net].Posted()
			e.Net.Post(c.Net, e.Queue.Now, g.Bytes)
			if e.Observer != nil {
				e.sentAtOnce(gi, id, k, 0)
			}
			continue
		}
		k := c.tails
		end := e.postTail(id, e.Queue.Now+e.Cost.Hop[p])
		if e.Observer != nil {
			e.sentAtOnce(gi, id, k, end)
		}
	}
	if e.Observer != nil {
		e.Observer.Piece(PieceEvent{Point: PieceRead, Group: gi})
	}
	e.release(g, e.Queue.Now+e.Cost.credit[p])
	g.Free, g.Since = e.Queue.Now, e.Queue.Now
	if p == coll.LL128 && g.Bytes > 0 {
		g.Free += e.Cost.ll128Op
	}
	if e.Observer != nil {
		e.Observer.Piece(PieceEvent{Point: PieceDone, Group: gi})
	}
	g.state = idle
	e.goOn(gi)
}
