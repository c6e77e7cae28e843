package engine

import (
	"github.com/simccl/simccl/plan"
	"github.com/simccl/simccl/sim/internal/event"
	"github.com/simccl/simccl/units"
)

// What becomes visible to other ranks when a step is complete.

// post makes a slice visible to its receivers at time t.
func (e *Engine) post(gi int32, h *heldSlice, t units.Time) {
	if e.Groups[gi].inRounds() {
		e.holdRound(gi, h, t)
		return
	}
	for _, id := range h.peers() {
		c := &e.Conns[id]
		if c.Net >= 0 {
			k := e.Net.Conns[c.Net].Posted()
			e.Net.Post(c.Net, t, h.bytes)
			if e.Observer != nil {
				e.sentHeld(gi, id, k, h, 0)
			}
			continue
		}
		k := c.posted
		end := e.deliver(id, t)
		if e.Observer != nil {
			e.sentHeld(gi, id, k, h, end)
		}
	}
}

// sentAtOnce reports the k-th piece of a connection, of a cut-through op.
func (e *Engine) sentAtOnce(gi, id int32, k int64, end units.Time) {
	g := &e.Groups[gi]
	e.Observer.Sent(SendEvent{As: SentAtOnce, Group: gi, Conn: id, Piece: k, First: true, Bytes: g.Bytes,
		Chunk: g.Op.Chunk, End: end})
}

// sentHeld reports the k-th piece of a connection, a slice whose flag goes up.
func (e *Engine) sentHeld(gi, id int32, k int64, h *heldSlice, end units.Time) {
	e.Observer.Sent(SendEvent{As: SentHeld, Group: gi, Conn: id, Piece: k, First: h.first, Bytes: h.bytes,
		Chunk: h.chunk, End: end})
}

// deliver makes the next piece of a connection readable at time t, never
// before the piece ahead of it, and says when that is.
func (e *Engine) deliver(id int32, t units.Time) units.Time {
	c := &e.Conns[id]
	t += e.Extra(c)
	if c.posted > 0 {
		t = max(t, c.slot(c.posted-1).Head)
	}
	s := c.slot(c.posted)
	s.Head, s.tail = t, t
	c.posted++
	c.tails = c.posted
	e.wake(c.Rcv, t)
	return t
}

// postHead notes when the first data of a piece arrives.
func (e *Engine) postHead(id int32, t units.Time) {
	c := &e.Conns[id]
	if c.Net >= 0 {
		return
	}
	t += e.Extra(c)
	c.slot(c.posted).Head = t
	c.posted++
	e.wake(c.Rcv, t)
}

// postTail notes when the last data of a piece arrives, and says
// when that is.
func (e *Engine) postTail(id int32, t units.Time) units.Time {
	c := &e.Conns[id]
	t += e.Extra(c)
	c.slot(c.tails).tail = t
	c.tails++
	if c.Rcv >= 0 {
		if g := &e.Groups[c.Rcv]; g.state == closing {
			e.Queue.Push(max(t, e.Queue.Now), event.Done, evEnd, c.Rcv, 0)
		}
	}
	return t
}

// release returns the room of the piece just read.
func (e *Engine) release(g *Group, t units.Time) {
	if g.Op.Do&plan.HoldRecv != 0 {
		return
	}
	if g.inRounds() {
		if len(g.Op.From) > 0 {
			e.releaseRound(g, t)
		}
		return
	}
	for _, id := range g.Op.From {
		c := &e.Conns[id]
		c.Taken++
		if c.Net >= 0 {
			e.Net.Free(c.Net, t)
			continue
		}
		e.giveCredit(id, t)
	}
}

// giveCredit lets the sender use one more piece of room from time t.
func (e *Engine) giveCredit(id int32, t units.Time) {
	c := &e.Conns[id]
	t += e.Extra(c)
	c.slot(c.credited).credit = t
	c.credited++
	e.wake(c.Snd, t)
}

// wake lets a waiting group try again.
func (e *Engine) wake(gi int32, t units.Time) {
	if gi >= 0 && e.Groups[gi].state == waiting {
		e.wakeAt(gi, t)
	}
}
