package sim

import (
	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/plan"
	"github.com/simccl/simccl/sim/wire"
	"github.com/simccl/simccl/units"
)

// A step that the network reduces walks: the kernels of all channels of a batch
// post → the head's sending proxy, which has a slot to receive into, posts the
// collective → when all nodes' have, the bytes go up and the sum comes down →
// the sending proxy polls the completion, gives the slots back to the kernels
// and tells the receiving one → which flushes if it must and raises the tails →
// the kernels read, and the slot is open again (transport/coll_net.cc:810,
// 1061).

// Stages of a batch's step, the Arg of an evCollect; seen is added once the
// proxy thread has come to look.
const (
	collectPost int32 = 16 + iota // the kernels have posted, a slot is open
	collectDone                   // the result is in memory
	collectTake                   // the receiving proxy is told
	collectFree                   // the kernels have read
	collectWire                   // the collective is posted
)

// Looks that a step costs: a visit of the sending proxy takes and posts it
// (coll_net.cc:853, 879), another tests it (942); of the receiving one a visit
// begins the flush (1092), another ends it and raises the tail (1123, 1133), a
// third counts what the kernels have read (1152), a fourth opens the slot
// (1084).
const (
	looksCollectPost = 1
	looksCollectDone = 1
	looksCollectTake = 2
	looksCollectFree = 2
)

// tryCollect lets a side's sending proxy look at its next collective when every
// channel's step is there, and room for the result.
func (n *network) tryCollect(si int32) {
	s := &n.sides[si]
	r := &n.rails[s.rail]
	if s.pending {
		return
	}
	bi, k := s.first+int32(s.posted%r.batches), s.posted/r.batches
	b := &n.batches[bi]
	if k >= b.opened || n.e.gone != nil && n.e.gone[s.rank] {
		return
	}
	at := b.open[k%plan.FIFOSteps]
	for _, id := range b.to {
		c := &n.conns[id]
		if c.posted <= k {
			return
		}
		at = max(at, c.ready[k%plan.FIFOSteps])
	}
	s.pending = true
	n.pushCollect(at, bi, collectPost)
}

func (n *network) pushCollect(at units.Time, bi, stage int32) {
	n.e.queue.Push(max(at, n.e.queue.Now), classDone, evCollect, bi, stage)
}

// collect begins a stage of a batch's oldest step that is there.
func (n *network) collect(bi, stage int32) {
	b := &n.batches[bi]
	thread := n.sides[b.side].thread
	switch stage {
	case collectPost:
		n.lookCollect(bi, stage, &b.sendFree, thread, looksCollectPost)
	case collectDone:
		n.lookCollect(bi, stage, &b.sendFree, thread, looksCollectDone)
	case collectTake:
		n.lookCollect(bi, stage, &b.recvFree, thread, looksCollectTake)
	case collectFree:
		n.lookCollect(bi, stage, &b.recvFree, thread, looksCollectFree)
	case collectWire:
		n.contribute(b.side)
	default:
		cost := n.cost.poll
		switch stage - seen {
		case collectPost:
			cost = n.cost.post
		case collectFree:
			cost = 0 // a note
		case collectTake:
			if cost = 0; n.conns[b.from[0]].flush {
				cost = n.cost.post
			}
		}
		if n.threads[thread].Add(Job{Conn: bi, Stage: stage - seen}, cost) {
			n.e.queue.Push(n.e.queue.Now, classRound, evRound, thread, 0)
		}
	}
}

// lookCollect is look for a batch.
func (n *network) lookCollect(bi, stage int32, free *units.Time, thread, looks int32) {
	turn := n.turn(thread)
	at := max(n.e.queue.Now+turn/2, *free)
	*free = at + turn*units.Time(looks)
	n.pushCollect(at, bi, stage+seen)
}

// collected ends what a proxy thread did for a batch at time t.
func (n *network) collected(bi, stage int32, t units.Time) {
	e, b := n.e, &n.batches[bi]
	turn := n.turn(n.sides[b.side].thread)
	switch stage {
	case collectPost:
		n.pushCollect(t, bi, collectWire)
	case collectDone:
		if obs := n.obs; obs != nil {
			obs.Reduction(ReductionEvent{Point: SumAcked, Batch: bi, Step: b.retired, At: t})
		}
		for _, id := range b.to {
			e.giveCredit(n.conns[id].conn, t+turn+n.cost.flag)
		}
		b.retired++
		n.pushCollect(t, bi, collectTake)
	case collectTake:
		raised := t + turn
		if n.conns[b.from[0]].flush {
			raised = max(raised, t+n.cost.flush)
		}
		if obs := n.obs; obs != nil {
			obs.Reduction(ReductionEvent{Point: SumTaken, Batch: bi, Step: b.received, At: t, Raised: raised})
		}
		for _, id := range b.from {
			e.deliver(n.conns[id].conn, raised+n.cost.flag)
		}
		b.received++
	case collectFree:
		if obs := n.obs; obs != nil {
			obs.Reduction(ReductionEvent{Point: RoomOpened, Batch: bi, Step: b.opened, At: t})
		}
		b.open[b.opened%plan.FIFOSteps] = t
		b.opened++
		n.tryCollect(b.side)
	}
}

// drained notes that a kernel has read a step of a head's connection, which the
// proxy can see at time t. What the last channel of a batch has read is free.
func (n *network) drained(id int32, t units.Time) {
	c := &n.conns[id]
	c.ready[c.posted%plan.FIFOSteps] = t
	c.posted++
	b := &n.batches[c.batch]
	at := t
	for _, id := range b.from {
		o := &n.conns[id]
		if o.posted <= b.freed {
			return
		}
		at = max(at, o.ready[b.freed%plan.FIFOSteps])
	}
	b.freed++
	n.pushCollect(at, c.batch, collectFree)
}

// contribute counts a side's next collective as posted: the last side lets it
// begin.
func (n *network) contribute(si int32) {
	s := &n.sides[si]
	r := &n.rails[s.rail]
	if obs := n.obs; obs != nil {
		obs.Reduction(ReductionEvent{Point: SidePosted, Batch: s.first + int32(s.posted%r.batches)})
	}
	came := &r.came[s.posted%int64(len(r.came))]
	s.posted++
	s.pending = false
	if *came++; int(*came) == len(r.sides) {
		*came = 0
		if obs := n.obs; obs != nil {
			obs.Reduction(ReductionEvent{Point: AllPosted, Side: s})
		}
		r.ready++
		n.beginCollective(s.rail)
	}
	n.tryCollect(si)
}

// beginCollective puts a rail's next collective on the wire: a switch passes on
// the sum of what has come from below, so nothing is faster than the slowest of
// all links.
func (n *network) beginCollective(ri int32) {
	r := &n.rails[ri]
	if r.busy || r.begun >= r.ready || r.stuck != nil {
		return
	}
	r.busy = true
	work := n.carry(r)
	if obs := n.obs; obs != nil {
		obs.Reduction(ReductionEvent{Point: SumBegun, Rail: ri})
	}
	r.begun++
	n.e.net.Start(n.e.queue.Now, r.route, r.bound, work, 1, ^(int32(len(n.lanes)) + ri))
}

// carry counts the bytes of a rail's next collective on its links and returns
// how many the fullest carries. A sum is as large as what is summed; a gathered
// block comes from one node and goes to all, a scattered one the other way
// round.
func (n *network) carry(r *rail) wire.Work {
	p := n.e.plan
	group := r.group + int32(r.begun%r.batches)
	if p.Req.Func == coll.AllReduce {
		send, _ := p.NetBytes(group, 0, 0)
		work := wire.Work(send) * wire.NanoBytes
		n.e.net.Carry(r.route, work)
		return work
	}
	step := r.begun / r.batches % int64(max(1, p.Split.Lo.NSteps))
	most := units.Bytes(0)
	for _, si := range r.sides {
		s := &n.sides[si]
		send, recv := p.NetBytes(group, s.node, step)
		n.e.net.Carry(s.up, wire.Work(send)*wire.NanoBytes)
		n.e.net.Carry(s.down, wire.Work(recv)*wire.NanoBytes)
		most = max(most, send, recv)
	}
	return wire.Work(most) * wire.NanoBytes
}

// reduced ends a rail's collective on the wire.
func (n *network) reduced(ri int32) {
	r := &n.rails[ri]
	r.busy = false
	if obs := n.obs; obs != nil {
		obs.Reduction(ReductionEvent{Point: SumLanded, Rail: ri})
	}
	for _, si := range r.sides {
		n.pushCollect(n.e.queue.Now+r.later, n.sides[si].first+int32(r.ended%r.batches), collectDone)
	}
	r.ended++
	n.beginCollective(ri)
}
