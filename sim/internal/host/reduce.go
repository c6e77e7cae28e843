package host

import (
	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/sim/internal/event"
	"github.com/simccl/simccl/sim/wire"
	"github.com/simccl/simccl/units"
)

// sharp is the transport of heads' connections, which end in the network. A step
// that the network reduces walks: the kernels of all channels of a batch post →
// the head's sending proxy, which has a slot to receive into, posts the
// collective → when all nodes' have, the bytes go up and the sum comes down →
// the sending proxy polls the completion, gives the slots back to the kernels and
// hands the result to the receiving one → which flushes if it must and raises
// the tails → the kernels read, and the slot is open again
// (transport/coll_net.cc:810, 1061).
type sharp struct{}

func (s *sharp) posted(n *Network, id int32) {
	n.tryCollect(n.Batches[n.Conns[id].batch].Side)
}

// Stages of a batch's step, the Arg of an evReduce; polled is added once the
// proxy thread has polled it.
const (
	collectPost int32 = 16 + iota // the kernels have posted, a slot is open
	collectDone                   // the result is in memory
	collectTake                   // the receiving proxy has it
	collectFree                   // the kernels have read
	collectWire                   // the collective is posted
)

// collectPolls is how many polls a stage costs. The sending proxy takes and
// posts a step in one (coll_net.cc:853, 879) and tests it in another (942); of
// the receiving one, a poll begins the flush (1092), another ends it and raises
// the tail (1123, 1133), a third counts what the kernels have read (1152), a
// fourth opens the slot (1084).
func collectPolls(stage int32) int32 {
	if stage == collectTake || stage == collectFree {
		return 2
	}
	return 1
}

// tryCollect lets a side's sending proxy poll its next collective when every
// channel's step is there, and room for the result.
func (n *Network) tryCollect(si int32) {
	s := &n.Sides[si]
	r := &n.Rails[s.Rail]
	if s.pending {
		return
	}
	bi, k := s.First+int32(s.Posted%r.Batches), s.Posted/r.Batches
	b := &n.Batches[bi]
	if k >= b.opened || n.down != nil && n.down[s.Rank] {
		return
	}
	at := b.open[slot(k)]
	for _, id := range b.To {
		c := &n.Conns[id]
		if c.posted <= k {
			return
		}
		at = max(at, c.ready[slot(k)])
	}
	s.pending = true
	n.pushReduce(at, bi, collectPost)
}

func (n *Network) pushReduce(at units.Time, bi, stage int32) {
	n.queue.Push(max(at, n.queue.Now), event.Done, evReduce, bi, stage)
}

// reduceStage begins a stage of a batch's oldest step that has reached it.
func (n *Network) reduceStage(bi, stage int32) {
	b := &n.Batches[bi]
	thread := n.Sides[b.Side].thread
	switch stage {
	case collectPost, collectDone:
		n.pushReduce(n.pollAt(&b.sendFree, thread, collectPolls(stage)), bi, stage+polled)
	case collectTake, collectFree:
		n.pushReduce(n.pollAt(&b.recvFree, thread, collectPolls(stage)), bi, stage+polled)
	case collectWire:
		n.contribute(b.Side)
	default:
		n.serve(thread, job{conn: bi, stage: stage - polled, order: orderOf(stage-polled, 0, bi),
			cost: n.collectCost(b, stage-polled)})
	}
}

// collectCost is the proxy thread's time for a stage of a batch.
func (n *Network) collectCost(b *Batch, stage int32) units.Time {
	switch stage {
	case collectPost:
		return n.Cost.Post
	case collectDone:
		return n.Cost.Poll
	case collectTake:
		if n.Conns[b.From[0]].Flush {
			return n.Cost.Post
		}
	}
	return 0 // only a note
}

// collected ends what a proxy thread did for a batch at time t.
func (n *Network) collected(bi, stage int32, t units.Time) {
	b := &n.Batches[bi]
	round := n.interval(n.Sides[b.Side].thread)
	switch stage {
	case collectPost:
		n.pushReduce(t, bi, collectWire)
	case collectDone:
		if obs := n.Observer; obs != nil {
			obs.Reduction(ReductionEvent{Point: SumAcked, Batch: bi, Step: b.retired, At: t})
		}
		for _, id := range b.To {
			n.kernels.Credit(n.Conns[id].ID, t+round+n.Cost.Flag)
		}
		b.retired++
		n.pushReduce(t, bi, collectTake)
	case collectTake:
		raised := t + round
		if n.Conns[b.From[0]].Flush {
			raised = max(raised, t+n.Cost.Flush)
		}
		if obs := n.Observer; obs != nil {
			obs.Reduction(ReductionEvent{Point: SumTaken, Batch: bi, Step: b.received, At: t, Raised: raised})
		}
		for _, id := range b.From {
			n.kernels.Deliver(n.Conns[id].ID, raised+n.Cost.Flag)
		}
		b.received++
	case collectFree:
		if obs := n.Observer; obs != nil {
			obs.Reduction(ReductionEvent{Point: RoomOpened, Batch: bi, Step: b.opened, At: t})
		}
		b.open[slot(b.opened)] = t
		b.opened++
		n.tryCollect(b.Side)
	}
}

// freed: the kernel of one channel has read a step. What the last channel of a
// batch has read is free.
func (s *sharp) freed(n *Network, id int32, t units.Time) {
	c := &n.Conns[id]
	c.ready[slot(c.posted)] = t
	c.posted++
	b := &n.Batches[c.batch]
	at := t
	for _, id := range b.From {
		o := &n.Conns[id]
		if o.posted <= b.freed {
			return
		}
		at = max(at, o.ready[slot(b.freed)])
	}
	b.freed++
	n.pushReduce(at, c.batch, collectFree)
}

// contribute counts a side's next collective as posted: the last side lets it
// begin.
func (n *Network) contribute(si int32) {
	s := &n.Sides[si]
	r := &n.Rails[s.Rail]
	if obs := n.Observer; obs != nil {
		obs.Reduction(ReductionEvent{Point: SidePosted, Batch: s.First + int32(s.Posted%r.Batches)})
	}
	came := &r.came[s.Posted%int64(len(r.came))]
	s.Posted++
	s.pending = false
	if *came++; int(*came) == len(r.Sides) {
		*came = 0
		if obs := n.Observer; obs != nil {
			obs.Reduction(ReductionEvent{Point: AllPosted, Side: s})
		}
		r.ready++
		n.beginCollective(s.Rail)
	}
	n.tryCollect(si)
}

// beginCollective puts a rail's next collective on the wire: a switch passes on
// the sum of what has come from below, so nothing is faster than the slowest of
// all links.
func (n *Network) beginCollective(ri int32) {
	r := &n.Rails[ri]
	if r.busy || r.Begun >= r.ready || r.stuck != nil {
		return
	}
	r.busy = true
	work := n.carry(r)
	if obs := n.Observer; obs != nil {
		obs.Reduction(ReductionEvent{Point: SumBegun, Rail: ri})
	}
	r.Begun++
	n.model.Start(n.queue.Now, r.Route, r.bound, work, 1, ^(int32(len(n.Pairs)) + ri))
}

// carry counts the bytes of a rail's next collective on its links and returns
// how many the fullest carries. A sum is as large as what is summed; a gathered
// block comes from one node and goes to all, a scattered one in the other direction
// round.
func (n *Network) carry(r *Rail) wire.Work {
	p := n.plan
	group := r.Group + int32(r.Begun%r.Batches)
	if p.Req.Func == coll.AllReduce {
		send, _ := p.NetBytes(group, 0, 0)
		work := wire.Work(send) * wire.NanoBytes
		n.model.Carry(r.Route, work)
		return work
	}
	step := r.Begun / r.Batches % int64(max(1, p.Split.Lo.NSteps))
	most := units.Bytes(0)
	for _, si := range r.Sides {
		s := &n.Sides[si]
		send, recv := p.NetBytes(group, s.Node, step)
		n.model.Carry(s.up, wire.Work(send)*wire.NanoBytes)
		n.model.Carry(s.down, wire.Work(recv)*wire.NanoBytes)
		most = max(most, send, recv)
	}
	return wire.Work(most) * wire.NanoBytes
}

// reduced ends a rail's collective on the wire.
func (n *Network) reduced(ri int32) {
	r := &n.Rails[ri]
	r.busy = false
	if obs := n.Observer; obs != nil {
		obs.Reduction(ReductionEvent{Point: SumLanded, Rail: ri})
	}
	for _, si := range r.Sides {
		n.pushReduce(n.queue.Now+r.Later, n.Sides[si].First+int32(r.Ended%r.Batches), collectDone)
	}
	r.Ended++
	n.beginCollective(ri)
}
