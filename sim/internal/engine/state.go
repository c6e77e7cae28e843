package engine

import (
	"math"

	"github.com/simccl/simccl/plan"
	"github.com/simccl/simccl/units"
)

// lineBytes is what alignment matters to (fetch).
const lineBytes = 128

// ahead is a time relative to now: what is over is over, whenever that was.
func ahead(t, now units.Time) int64 { return int64(max(0, t-now)) }

// appendState appends all that decides what the run does from now on, with
// times relative to now, and counts of pieces relative to each other. The
// positions of programs are not part of it.
func (e *Engine) appendState(dst []int64) []int64 {
	now := e.Queue.Now
	for i := range e.Devices {
		dst = append(dst, int64(e.Devices[i].Done), int64(e.Devices[i].left))
	}
	for i := range e.SMs {
		m := &e.SMs[i]
		dst = append(dst, int64(m.active), int64(m.from), int64(m.left))
	}
	for i := range e.Groups {
		dst = e.Groups[i].appendState(dst, now)
	}
	for i := range e.Conns {
		dst = e.Conns[i].appendState(dst, now, e.Cost.llTrip)
	}
	for i := range e.given {
		if a := &e.given[i]; a.wanted > 0 {
			dst = append(dst, a.wanted-a.given, ahead(a.at, now))
		}
	}
	dst = e.appendQueue(dst)
	dst = e.Net.AppendState(dst, now)
	return e.steady.wire.AppendState(dst, now)
}

// appendQueue appends the events that wait, in their order.
func (e *Engine) appendQueue(dst []int64) []int64 {
	s := &e.steady
	s.queued = e.Queue.AppendAll(s.queued[:0])
	for i := range s.queued {
		ev := &s.queued[i]
		dst = append(dst, int64(ev.At-e.Queue.Now), int64(ev.Class())<<8|int64(ev.Kind()),
			int64(ev.ID)<<32|int64(ev.Arg))
	}
	return dst
}

func (g *Group) appendState(dst []int64, now units.Time) []int64 {
	wake := int64(-1)
	if g.wake >= 0 {
		wake = int64(g.wake - now)
	}
	dst = append(dst, int64(g.state), int64(g.slice), int64(g.Bytes), bits(g.posted, g.streams, g.flow >= 0,
		g.held.on), wake, ahead(g.Free, now), int64(math.Float64bits(g.left)))
	if g.state == ended {
		return dst
	}
	if h := &g.held; h.on {
		dst = append(dst, int64(now-h.at), int64(h.bytes), int64(h.chunk%g.perRound))
		dst = appendIDs(dst, h.peers())
	}
	if g.state == opening || g.state == moving {
		dst = append(dst, int64(now-g.metAt))
	}
	for _, x := range g.round {
		dst = append(dst, int64(x.conn), int64(x.chunk%g.perRound), int64(x.bytes))
	}
	op := &g.Op
	if op.Rank < 0 || op.Bytes == 0 && op.Do == 0 { // none was taken up yet
		return dst
	}
	dst = append(dst, int64(op.Do), int64(op.Bytes), int64(op.RecvAhead), int64(op.SendAhead),
		int64(op.Chunk%g.perRound),
		int64(op.Src.Buf)<<8|int64(op.Src.Off%lineBytes), int64(op.Dst.Buf)<<8|int64(op.Dst.Off%lineBytes))
	return appendIDs(appendIDs(dst, op.From), op.To)
}

func appendIDs(dst []int64, ids []int32) []int64 {
	dst = append(dst, int64(len(ids)))
	for _, id := range ids {
		dst = append(dst, int64(id))
	}
	return dst
}

// bits packs booleans.
func bits(of ...bool) int64 {
	n := int64(0)
	for i, set := range of {
		if set {
			n |= 1 << i
		}
	}
	return n
}

// appendState appends a FIFO's state: what is in it, and when it can be read
// and written. Times that are over are equal, save that the last data of LL is
// read a trip after it has come (complete).
func (c *Conn) appendState(dst []int64, now, trip units.Time) []int64 {
	dst = append(dst, c.posted-c.Taken, c.tails-c.Taken, c.sent-c.Taken, c.credited-c.Taken)
	for i := int64(1); i <= plan.FIFOSteps; i++ {
		dst = append(dst, ahead(c.before(c.posted-i).Head, now), ahead(c.before(c.tails-i).tail+trip, now),
			ahead(c.before(c.credited-i).credit, now))
	}
	return dst
}

// before is the slot of the k-th piece, empty where there was none.
func (c *Conn) before(k int64) Slot {
	if k < 0 {
		return Slot{}
	}
	return *c.slot(k)
}
