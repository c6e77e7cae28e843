package collector

import (
	"encoding/binary"
	"slices"

	"github.com/simccl/simccl/units"
	"github.com/simccl/simccl/workload"
	"github.com/simccl/simccl/workload/calls"
)

// segment is a stretch of a stream: what runs there takes an unknown time until the GPU has
// done it. It may begin when its predecessor has ended and the host has begun to launch it.
func (c *Core) segment(t *thread, s *stream, number uint64, opened int64) {
	o := c.newOp(opened, s, segment)
	t.p.live.segments[number] = o
	o.record = -1
	if r := c.known(s.dev); r != nil {
		o.record, o.calls = len(r.events), r.calls
		r.events = append(r.events, calls.Event{Kind: calls.Work, Thread: t.id, Host: r.since(t, opened),
			Stream: r.streamOf(s)})
	}
	c.clock.Begin(&o.Operation)
}

func (c *Core) segmentDone(t *thread, q *request) reply {
	for b := q.payload; len(b) >= 16; b = b[16:] {
		id, took := binary.LittleEndian.Uint64(b), int64(binary.LittleEndian.Uint64(b[8:]))
		o := t.p.live.segments[id]
		if o == nil || took < 0 {
			continue
		}
		delete(t.p.live.segments, id)
		o.took, o.timed = took, true
		if r := c.known(o.st.dev); r != nil && o.record >= 0 {
			r.events[o.record].Time = min(max(units.Time(took), 0), workload.MaxTime)
		}
		if o.Arrived {
			c.segmentEnds(o)
		}
	}
	c.clock.Settle()
	return reply{}
}

// launched is a unit with its number among the launches of its GPU, which segments wait for.
type launched struct {
	*unit
	number int
}

// spans bounds the kernels' spans that a GPU keeps for segments that run beside them.
const spans = 64

// communicates records the span in which a communicator's kernel holds a GPU's SMs: from the time that its
// stream reaches it, so also while it waits for other ranks.
func (c *Core) communicates(u *unit, begin, end int64) {
	if !c.set.Live() || c.set.Clock != Measured {
		return
	}
	r := c.gpus[u.m.gpu()]
	if r.busy = append(r.busy, busySpan{From: int64(u.o.Ready), Begin: begin, To: end}); len(r.busy) > spans {
		r.busy = r.busy[len(r.busy)-spans:]
	}
}

// segmentEnds ends a segment that is timed and could begin, once all calls of its GPU that the
// host made before it are carried out: they may run beside it. (Ranks may call in different
// orders on streams of their own; tick goes on with those that would wait for each other.)
func (c *Core) segmentEnds(o *op) {
	if r := c.known(o.st.dev); r != nil && c.set.Clock == Measured && o.took > 0 && r.unfinished(o.calls) {
		r.held = append(r.held, o)
		return
	}
	c.finish(o, c.computed(o))
}

// unfinished reports whether one of a GPU's first n launches has not been carried out.
func (r *rank) unfinished(n int) bool {
	for len(r.open) > 0 && (r.open[0].o.Ended || r.open[0].dropped) {
		r.open = r.open[1:]
	}
	return len(r.open) > 0 && r.open[0].number < n
}

// carried ends the segments that waited for a launch.
func (c *Core) carried(u *unit) {
	if c.set.Clock != Measured || !c.set.Live() {
		return
	}
	r := c.gpus[u.m.gpu()]
	r.stalled = 0
	for i := 0; i < len(r.held); {
		if r.unfinished(r.held[i].calls) {
			i++
			continue
		}
		c.letGo(r, i)
	}
}

// letGo ends the i-th segment that waits for launches of its GPU.
func (c *Core) letGo(r *rank, i int) {
	o := r.held[i]
	r.held = slices.Delete(r.held, i, i+1)
	c.finish(o, c.computed(o))
}

// computed is when a segment ends that has taken o.took alone: on the cluster it shares its
// GPU with the kernels of communicators. What is called later begins later, so all that run
// beside a segment are known.
func (c *Core) computed(o *op) int64 {
	r := c.known(o.st.dev)
	if c.set.Prices == nil || r == nil {
		return int64(o.Ready) + o.took
	}
	compute, calls := c.set.Prices.Beside()
	return besideEnd(int64(o.Ready), o.took, r.busy, compute, calls)
}
