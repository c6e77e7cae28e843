package host

import (
	"math"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/internal/variates"
	"github.com/simccl/simccl/plan"
	"github.com/simccl/simccl/sim/wire"
	"github.com/simccl/simccl/units"
)

// MaxQPs is NCCL_IB_MAX_QPS (transport/net_ib.cc:975).
const MaxQPs = 128

// mtu is the payload of a packet: the largest that InfiniBand and RoCE have,
// which NCCL takes where the port does.
const mtu = units.Bytes(4096)

// rdma is the transport of writes with an immediate over reliable queue pairs.
type rdma struct {
	n      *Network
	gap    units.Time  // between messages of a connection
	card   wire.Rate   // payload rate of one of a net's cards; 0: there is one
	stripe units.Bytes // least part of a message that a card gets
	costs  stageCosts
}

func newRDMA(n *Network) rdma {
	p := &n.class.Net
	x := rdma{n: n, gap: units.FromMicros(p.Gap), stripe: units.Bytes(max(1, p.Stripe)), costs: stageCosts{
		stagePost:   {2, n.Cost.Post}, // offer the slot to the kernel; post the write
		stageSent:   {1, n.Cost.Poll}, // retire the completion
		stageArrive: {2, n.Cost.Poll}, // take the completion, begin the flush; raise the tail
		stageFree:   {1, n.Cost.Post}, // post the receive: the same poll sees what the kernel has read
	}}
	if p.Card > 0 {
		x.card = wire.RateOf(p.Card * p.Eff)
	}
	return x
}

// join makes a connection one of RDMA: it has a queue pair for each of the ports
// of the side that has more of them, times NCCL_IB_QPS_PER_CONNECTION
// (net_ib.cc:1421, 1595). A message goes over one for each port, or over all with
// NCCL_IB_SPLIT_DATA_ON_QPS.
func (r *rdma) join(nc *Conn, c *plan.Conn, pr *plan.Program) {
	n := r.n
	nc.via, nc.msg, nc.costs = r, r, &r.costs
	if c.Route.DstGDR && pr.Proto != coll.Simple {
		nc.poller = kernelPolls
	}
	nc.srcPorts = n.Fused(n.Table.Comm.NodeOf[c.Src], c.Route.SrcNet)
	nc.dstPorts = n.Fused(n.Table.Comm.NodeOf[c.Dst], c.Route.DstNet)
	nc.stripe = max(nc.srcPorts, nc.dstPorts)
	nc.pairs = nc.stripe * int32(max(1, n.Settings.QPs))
	if n.Split {
		nc.stripe = nc.pairs
	}
}

func (r *rdma) posted(n *Network, id int32) { n.tryPost(id) }

func (r *rdma) freed(n *Network, id int32, t units.Time) { n.push(t, id, stageFree) }

func (r *rdma) latency() units.Time { return r.n.Cost.Wire }

func (r *rdma) issued(_ *Conn, t units.Time) units.Time { return t }

// offered: a clear-to-send is a message of its own.
func (r *rdma) offered(c *Conn, t units.Time) units.Time { return t + r.n.Latency(c) }

func (r *rdma) ack(c *Conn) units.Time { return 2 * r.n.Latency(c) }

// divide: parts are equal, though NCCL's are multiples of 128 bytes: traffic that
// uses all ports equally then stays equal.
func (r *rdma) divide(c *Conn, n units.Bytes) (parts int32, each units.Bytes) {
	return c.stripe, (n + units.Bytes(c.stripe) - 1) / units.Bytes(c.stripe)
}

func (r *rdma) part(s *split, _ int32) units.Bytes { return units.Bytes(s.each) }

// next: where messages of a connection do not overlap, one begins a gap after the
// one before it is through.
func (r *rdma) next(n *Network, id int32, c *Conn) bool {
	return r.gap == 0 || c.landed >= c.begun && n.rested(id, c)
}

func (r *rdma) through(n *Network, c *Conn) {
	if r.gap > 0 {
		c.rest.until = n.queue.Now + r.gap
	}
}

func (r *rdma) lastCopy(*Conn, int64) units.Time { return 0 }

func (r *rdma) attempt(p int32, bytes units.Bytes) (units.Bytes, wire.Rate, bool) {
	l := &r.n.Pairs[p]
	l.rate = r.rate(l, bytes)
	if l.again.loss > 0 {
		bytes = r.lose(p, bytes)
	}
	return bytes, l.rate, true
}

// rate bounds a message: a plugin that shows several cards as one net cuts a message
// into as many equal parts as there are whole stripes, rounded up, and such that their
// number divides that of the cards (aws-ofi-nccl, nccl_ofi_scheduler.cpp:30). Cards
// take turns, so other messages use the others.
func (r *rdma) rate(l *QueuePair, bytes units.Bytes) wire.Rate {
	if r.card == 0 || l.bound <= r.card {
		return l.bound
	}
	cards := units.Bytes((l.bound + r.card/2) / r.card)
	parts := min(cards, max(1, (bytes+r.stripe-1)/r.stripe))
	for cards%parts != 0 {
		parts--
	}
	if parts == cards {
		return l.bound
	}
	return wire.Rate(parts) * r.card
}

// lose decides which packet of an attempt is the first to be lost, and returns
// how many bytes are sent until the sender knows. A packet that is lost shows
// when a later one comes in out of order: the receiver refuses it, and all since
// the lost one is sent again. In the meantime the sender has continued for as long
// as the refusal takes. Where nothing follows the lost packet, only the timeout
// shows it.
func (r *rdma) lose(p int32, bytes units.Bytes) units.Bytes {
	n := r.n
	l := &n.Pairs[p]
	c, a := &n.Conns[l.Conn], &l.again
	packets := int64((bytes + mtu - 1) / mtu)
	k := packets
	if a.loss >= 1 {
		k = 0
	} else {
		a.draws++
		k = min(k, int64(math.Log(variates.Uniform(n.seed, uint64(p), a.draws))/math.Log1p(-a.loss)))
	}
	a.left, a.stall = 0, 0
	if k >= packets {
		a.tries = 0
		return bytes
	}
	if k > 0 || a.tries == 0 {
		a.tries, a.since = 0, n.queue.Now
	}
	a.tries++
	a.left = bytes - units.Bytes(k)*mtu
	one := units.Time(n.work(c, mtu)) / units.Time(max(1, l.bound))
	round := 2 * n.Latency(c)
	follows := c.sent > c.begun+int64(c.pairs)
	more := r.burst(p)
	if k+more >= packets-1 && !follows || more >= plan.FIFOSteps*packets {
		a.stall = n.RC.Wait()
		return bytes
	}
	sent := k + more + 1 + int64(round/max(1, one))
	if follows {
		return units.Bytes(sent) * mtu // of the steps behind it too, in vain
	}
	sent = min(packets, sent)
	a.stall = max(0, round-one*units.Time(sent-k-more-1))
	return min(bytes, units.Bytes(sent)*mtu)
}

// burst is how many packets behind a lost one are lost as well: none of them
// shows the receiver that one is missing.
func (r *rdma) burst(p int32) int64 {
	a := &r.n.Pairs[p].again
	if a.loss >= 1 {
		return math.MaxInt32
	}
	return int64(min(math.MaxInt32, math.Log(variates.Uniform(r.n.seed, 1<<32|uint64(p), a.draws))/
		math.Log(a.loss)))
}

func (r *rdma) failure(l *QueuePair) error {
	n := r.n
	if l.again.tries <= int32(n.RC.Retries.Or(7)) {
		return nil
	}
	c := n.kernels.Describe(n.Conns[l.Conn].ID)
	return &RetryError{Src: int(c.Src), Dst: int(c.Dst), Channel: int(c.Channel), SrcNet: int(c.Route.SrcNet),
		DstNet: int(c.Route.DstNet),
		Tries:  int(l.again.tries), After: n.queue.Now - l.again.since}
}
