package sim

import (
	"math"

	"github.com/simccl/simccl/plan"
	"github.com/simccl/simccl/sim/internal/chance"
	"github.com/simccl/simccl/units"
)

// mtu is the payload of a packet: the largest that InfiniBand and RoCE have,
// which NCCL takes where the port does.
const mtu = units.Bytes(4096)

// Reliability is how a reliable connection (RC) repeats what is not
// acknowledged: go back to the first packet missing. The zero value is NCCL's.
type Reliability struct {
	// Timeout is the exponent of the wait for an acknowledgement, 4.096 us times
	// two to it (NCCL_IB_TIMEOUT): 20, that is 4.3 s. 0 waits for hours.
	Timeout units.Opt[int]
	// Retries is how often a queue pair repeats without getting further
	// (NCCL_IB_RETRY_CNT): 7.
	Retries units.Opt[int]
}

func (r *Reliability) wait() units.Time {
	exponent := r.Timeout.Or(20)
	if exponent <= 0 {
		exponent = 31
	}
	return units.FromMicros(4.096) << min(exponent, 31)
}

// repeat is what a queue pair has to send again, and why it waits.
type repeat struct {
	loss  float64     // share of its packets that are lost on its way
	draws uint64      // so far, for the stream of chances
	left  units.Bytes // to send again once this attempt is over
	stall units.Time  // after which
	tries int32       // in a row that got no further
	asked units.Time  // when the first of them began
}

// transmit puts a write, or what is left of one, on the wire. A packet that is
// lost shows when a later one comes in out of order: the receiver refuses it,
// and all since the lost one is sent again. In the meantime the sender has gone
// on for as long as the refusal takes. Where nothing follows the lost packet,
// only the timeout shows it.
func (n *network) transmit(li int32, bytes units.Bytes) {
	l := &n.lanes[li]
	c := &n.conns[l.conn]
	send, bound := bytes, l.bound
	switch {
	case c.tcp && l.again.loss >= 1:
		n.cutOff(li)
		return
	case c.tcp:
		bound = n.taskRate(c, l, l.part, c.parts(l.step))
	case l.again.loss > 0:
		send = n.lose(li, bytes)
	}
	work := n.work(c, send)
	l.since, l.sent = n.e.queue.Now, work
	n.e.net.Carry(l.route, work)
	n.e.net.Start(n.e.queue.Now, l.route, bound, work, 1, ^li)
}

// lose decides which packet of an attempt is the first to be lost, and returns
// how many bytes are sent until the sender knows.
func (n *network) lose(li int32, bytes units.Bytes) units.Bytes {
	l := &n.lanes[li]
	c, r := &n.conns[l.conn], &l.again
	packet := mtu
	packets := int64((bytes + packet - 1) / packet)
	k := packets
	if r.loss >= 1 {
		k = 0
	} else {
		r.draws++
		k = min(k, int64(math.Log(chance.Uniform(n.e.seed, uint64(li), r.draws))/math.Log1p(-r.loss)))
	}
	r.left, r.stall = 0, 0
	if k >= packets {
		r.tries = 0
		return bytes
	}
	if k > 0 || r.tries == 0 {
		r.tries, r.asked = 0, n.e.queue.Now
	}
	r.tries++
	r.left = bytes - units.Bytes(k)*packet
	one := units.Time(n.work(c, packet)) / units.Time(max(1, l.bound))
	round := 2 * n.way(c)
	follows := c.sent > c.begun+int64(c.lanes)
	more := n.burst(li)
	if k+more >= packets-1 && !follows || more >= plan.FIFOSteps*packets {
		r.stall = n.rc.wait()
		return bytes
	}
	sent := k + more + 1 + int64(round/max(1, one))
	if follows {
		return units.Bytes(sent) * packet // of the steps behind it too, in vain
	}
	sent = min(packets, sent)
	r.stall = max(0, round-one*units.Time(sent-k-more-1))
	return min(bytes, units.Bytes(sent)*packet)
}

// burst is how many packets behind a lost one are lost as well: none of them
// tells the receiver that one is missing.
func (n *network) burst(li int32) int64 {
	r := &n.lanes[li].again
	if r.loss >= 1 {
		return math.MaxInt32
	}
	return int64(min(math.MaxInt32, math.Log(chance.Uniform(n.e.seed, 1<<32|uint64(li), r.draws))/math.Log(r.loss)))
}

// repeat goes back to the first packet missing, or gives up.
func (n *network) repeat(li int32) {
	l := &n.lanes[li]
	if n.conns[l.conn].tcp {
		pc := n.e.plan.Conn(n.conns[l.conn].conn)
		n.e.err = &TimedOutError{Src: int(pc.Src), Dst: int(pc.Dst), Channel: int(pc.Channel), SrcNet: int(pc.Route.SrcNet), DstNet: int(pc.Route.DstNet), After: GiveUp}
		return
	}
	if l.again.tries > int32(n.rc.Retries.Or(7)) {
		pc := n.e.plan.Conn(n.conns[l.conn].conn)
		n.e.err = &RetryError{Src: int(pc.Src), Dst: int(pc.Dst), Channel: int(pc.Channel), SrcNet: int(pc.Route.SrcNet), DstNet: int(pc.Route.DstNet),
			Tries: int(l.again.tries), After: n.e.queue.Now - l.again.asked}
		return
	}
	n.transmit(li, l.again.left)
}
