package host

import (
	"github.com/simccl/simccl/sim/internal/event"
	"github.com/simccl/simccl/sim/wire"
	"github.com/simccl/simccl/units"
)

// Kinds of the network's events; those below Kinds are its caller's.
const (
	Kinds    uint8 = 64
	evRound  uint8 = Kinds + iota // ID: a proxy thread ends its round
	evRepeat                      // ID: a queue pair sends again what was not acknowledged
	evStep                        // ID: connection, Arg: stage
	evReduce                      // ID: batch of heads, Arg: stage, see reduce.go
)

// Stages of a step, the Arg of an evStep.
const (
	stagePost   int32 = iota // sender's proxy may post
	stageSent                // the sender's completion is there
	stageArrive              // the receiver's NIC has it
	stageFree                // the kernel freed a slot: receive and clear-to-send
	numStages
)

// Stages that no thread polls for, and what is added to one that it has polled.
const (
	stageWire  = numStages + iota // the write begins
	stageNext                     // a connection may begin its next message
	stageBegin                    // a part of the run takes a message of another (apart.go)

	polled int32 = 8
)

// Handle handles one of the network's events.
func (n *Network) Handle(ev *event.Event) {
	switch ev.Kind() {
	case evRound:
		n.round(ev.ID)
	case evRepeat:
		n.repeat(ev.ID)
	case evStep:
		n.step(ev.ID, ev.Arg)
	case evReduce:
		n.reduceStage(ev.ID, ev.Arg)
	}
}

func (n *Network) push(at units.Time, id, stage int32) {
	n.queue.Push(max(at, n.queue.Now), event.Done, evStep, id, stage)
}

// pushNamed is push for what may come from another node or the network: its place among what
// is due at one instant does not depend on when it was pushed, so that nodes may run side by
// side.
func (n *Network) pushNamed(at units.Time, id, stage int32) {
	n.queue.PushNamed(max(at, n.queue.Now), event.Done, evStep, id, stage)
}

func (n *Network) pushRound(thread int32) {
	n.queue.Push(n.queue.Now, event.Round, evRound, thread, 0)
}

func (n *Network) pushRepeat(at units.Time, pair int32) {
	n.queue.Push(at, event.Done, evRepeat, pair, 0)
}

// Hold keeps the bytes of a piece that shares its step with the pieces to come
// (PAT).
func (n *Network) Hold(id int32, bytes units.Bytes) { n.Conns[id].part += bytes }

// Post takes a step from the kernel; the proxy can see it at time t.
func (n *Network) Post(id int32, t units.Time, bytes units.Bytes) {
	c := &n.Conns[id]
	k := slot(c.posted)
	c.ready[k], c.bytes[k] = t+n.Cost.Flag, bytes+c.part
	c.part = 0
	c.posted++
	c.via.posted(n, id)
}

// Free notes that the kernel has read a step at time t.
func (n *Network) Free(id int32, t units.Time) { n.Conns[id].via.freed(n, id, t+n.Cost.Flag) }

// tryPost lets the sender's proxy poll the next step when both the step and its
// clear-to-send are there.
func (n *Network) tryPost(id int32) {
	c := &n.Conns[id]
	if c.pending || c.sent >= c.posted || c.sent >= c.allowed || n.down != nil && n.down[c.SrcProxy] {
		return
	}
	c.pending = true
	k := slot(c.sent)
	n.pushNamed(max(c.ready[k], c.allow[k]), id, stagePost)
}

// step begins a stage of the oldest step that has reached it.
func (n *Network) step(id, stage int32) {
	c := &n.Conns[id]
	switch stage {
	case stageWire:
		c.divide(c.sent)
		if obs := n.Observer; obs != nil {
			obs.Step(StepEvent{Point: StepPosted, Conn: id, Step: c.sent})
		}
		c.sent++
		c.pending = false
		if n.apart {
			n.send(n.queue.Now, id, stageBegin)
		} else {
			c.wired++
			n.begin(id)
		}
		n.tryPost(id)
	case stageBegin:
		n.taken++
		c.wired++
		n.begin(id)
	case stageNext:
		c.rest.waiting = false
		n.begin(id)
	case stagePost, stageSent:
		n.push(n.pollAt(&c.srcFree, c.SrcProxy, c.costs[stage].polls), id, stage+polled)
	case stageArrive, stageFree:
		if stage == stageArrive && c.poller == kernelPolls {
			n.done(id, stage, n.queue.Now)
			return
		}
		n.push(n.pollAt(&c.dstFree, c.DstProxy, c.costs[stage].polls), id, stage+polled)
	case stagePost + polled, stageSent + polled:
		n.serve(c.SrcProxy, c.job(id, stage-polled, c.SrcLoad))
	case stageArrive + polled, stageFree + polled:
		n.serve(c.DstProxy, c.job(id, stage-polled, c.DstLoad))
	}
}

// job is a stage of a connection, of so many messages at once.
func (c *Conn) job(id, stage, load int32) job {
	return job{conn: id, stage: stage, order: orderOf(stage, c.Channel, c.ID),
		cost: c.costs[stage].time * units.Time(load)}
}

// Latency is how long a small message of a connection takes.
func (n *Network) Latency(c *Conn) units.Time { return c.msg.latency() + c.Later }

// Behind is how long after a message's last byte has crossed the cables it is in
// memory: all of its latency where the model of links has none.
func (n *Network) Behind(c *Conn) units.Time { return max(0, n.Latency(c)-c.trip) }

// Ack is how long after a message's last byte the sender's completion is there.
func (n *Network) Ack(c *Conn) units.Time { return c.msg.ack(c) }

// LastCopy is how long the receiver copies when all of the k-th step has come.
func (n *Network) LastCopy(c *Conn, k int64) units.Time { return c.msg.lastCopy(c, k) }

// done ends what a proxy thread did for a step at time t.
func (n *Network) done(id, stage int32, t units.Time) {
	c := &n.Conns[id]
	switch stage {
	case stagePost:
		n.push(c.msg.issued(c, t), id, stageWire)
	case stageArrive:
		n.raise(id, c, t)
	case stageSent:
		if obs := n.Observer; obs != nil {
			obs.Step(StepEvent{Point: StepAcked, Conn: id, Step: c.acked, At: t})
		}
		c.acked++
		n.kernels.Credit(c.ID, t+n.Cost.Flag)
	case stageFree:
		if obs := n.Observer; obs != nil {
			obs.Step(StepEvent{Point: StepOffered, Conn: id, Step: c.allowed, At: t})
		}
		if at := c.msg.offered(c, t); n.apart {
			n.send(at, id, stageFree)
		} else {
			n.allow(id, at)
		}
	}
}

// allow lets the sender's proxy post one more step from a time on.
func (n *Network) allow(id int32, at units.Time) {
	c := &n.Conns[id]
	c.allow[slot(c.allowed)] = at
	c.allowed++
	n.tryPost(id)
}

// raise makes the oldest step that has arrived visible to its kernel: with the
// next poll, and once it is read back where it has to be.
func (n *Network) raise(id int32, c *Conn, t units.Time) {
	raised := t
	if c.poller == proxyPolls {
		raised += n.interval(c.DstProxy)
	}
	if n.Flushes(c, c.arrived) {
		raised = max(raised, t+n.Cost.Flush)
	}
	if obs := n.Observer; obs != nil {
		obs.Step(StepEvent{Point: StepArrived, Conn: id, Step: c.arrived, At: t, Raised: raised})
	}
	if c.poller != kernelPolls {
		raised += n.Cost.Flag
	}
	c.arrived++
	n.kernels.Deliver(c.ID, raised)
}

// Flushes reports whether the k-th step's data is read back: an empty one's is
// not (net.cc:1529). Its size is that of the message: the kernel may have filled
// the sender's slot again.
func (n *Network) Flushes(c *Conn, k int64) bool {
	return c.Flush && (c.batch >= 0 || c.StepBytes(k) > 0)
}

// work is what so many bytes of a connection's are on the wire, flags included.
func (n *Network) work(c *Conn, bytes units.Bytes) wire.Work {
	return wire.Work(float64(bytes) * wire.NanoBytes / c.share)
}

// Alone is how long the k-th step's bytes last where nothing shares the ports.
func (n *Network) Alone(c *Conn, k int64) units.Time {
	return units.Time(n.work(c, c.Part(k, 0))) / units.Time(max(1, n.Pairs[c.Pair(k, 0)].bound))
}

// begin puts the next writes of a connection on the wire. Writes of one queue
// pair keep their order and do not share the wire with each other; several queue
// pairs take steps in rotation, or parts of each where NCCL splits them.
func (n *Network) begin(id int32) {
	c := &n.Conns[id]
	for c.begun < c.wired {
		k := slot(c.begun)
		parts := c.Parts(c.begun)
		if !c.msg.next(n, id, c) {
			return
		}
		for q := range parts {
			if l := &n.Pairs[c.Pair(c.begun, q)]; l.busy && l.queue < 0 {
				return
			}
		}
		if obs := n.Observer; obs != nil {
			obs.Step(StepEvent{Point: StepBegun, Conn: id, Step: c.begun})
		}
		if c.bytes[k] > 0 {
			c.split[k].left = int16(parts)
			for q := range parts {
				p := c.Pair(c.begun, q)
				if n.Pairs[p].queue >= 0 {
					n.post(p, c.begun, q, c.Part(c.begun, q))
					continue
				}
				n.Pairs[p].busy, n.Pairs[p].Step, n.Pairs[p].Part = true, c.begun, q
				n.transmit(p, c.Part(c.begun, q))
			}
		}
		c.begun++
		n.land(id)
	}
}

// FlowDone ends a write, or its part, on a queue pair, or a collective on a rail.
func (n *Network) FlowDone(p int32) {
	if int(p) >= len(n.Pairs) {
		n.reduced(p - int32(len(n.Pairs)))
		return
	}
	l := &n.Pairs[p]
	if l.queue >= 0 {
		n.crossed(l)
	}
	n.noteDelay(l)
	if l.again.left > 0 {
		n.pushRepeat(n.queue.Now+l.again.stall, p)
		return
	}
	l.busy = false
	if obs := n.Observer; obs != nil {
		obs.Step(StepEvent{Point: PartCrossed, Conn: l.Conn, Step: l.Step, QP: l})
	}
	n.Conns[l.Conn].split[slot(l.Step)].left--
	n.land(l.Conn)
	n.begin(l.Conn)
}

// land completes the steps that are through, in order.
func (n *Network) land(id int32) {
	c := &n.Conns[id]
	for c.landed < c.begun && c.split[slot(c.landed)].left == 0 {
		if obs := n.Observer; obs != nil {
			obs.Step(StepEvent{Point: StepLanded, Conn: id, Step: c.landed})
		}
		c.landed++
		c.msg.through(n, c)
		n.send(n.queue.Now+n.Behind(c)+c.msg.lastCopy(c, c.landed-1), id, stageArrive)
		n.send(n.queue.Now+max(0, c.msg.ack(c)-c.trip), id, stageSent)
	}
}

// repeat is what a queue pair has to send again, and why it waits.
type repeat struct {
	loss  float64     // share of its packets that are lost on its route
	draws uint64      // so far, for the stream of chances
	left  units.Bytes // to send again once this attempt is over
	stall units.Time  // after which
	tries int32       // in a row that got no further
	since units.Time  // when the first of them began
}

// transmit puts a write, or the rest of one, on the wire.
func (n *Network) transmit(p int32, bytes units.Bytes) {
	l := &n.Pairs[p]
	c := &n.Conns[l.Conn]
	send, bound, ok := c.msg.attempt(p, bytes)
	if !ok {
		return
	}
	work := n.work(c, send)
	l.Since, l.Sent = n.queue.Now, work
	n.model.Carry(l.Route, work)
	n.model.Start(n.queue.Now, l.Route, bound, work, 1, ^p)
}

// post gives a message, or its part, to a queue pair that carries it frame by frame:
// NCCL posts a write as soon as it may, and does not wait for the one before.
func (n *Network) post(p int32, step int64, part int32, bytes units.Bytes) {
	l := &n.Pairs[p]
	work := n.work(&n.Conns[l.Conn], bytes)
	l.flight = append(l.flight, inFlight{step, part, n.queue.Now, work})
	n.model.Carry(l.Route, work)
	n.frames.Post(n.queue.Now, l.queue, l.bound, work, ^p)
}

// crossed takes the oldest message of a queue pair, which has arrived.
func (n *Network) crossed(l *QueuePair) {
	x := l.flight[0]
	l.flight = l.flight[:copy(l.flight, l.flight[1:])]
	l.Step, l.Part, l.Sent = x.step, x.part, x.sent
	l.Since = max(x.since, l.last) + n.Conns[l.Conn].trip
	l.last = n.queue.Now - n.Conns[l.Conn].trip
}

// repeat goes back to the first packet missing, or gives up.
func (n *Network) repeat(p int32) {
	l := &n.Pairs[p]
	if err := n.Conns[l.Conn].msg.failure(l); err != nil {
		n.kernels.Fail(err)
		return
	}
	n.transmit(p, l.again.left)
}
