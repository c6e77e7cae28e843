package host

import (
	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/plan"
	"github.com/simccl/simccl/units"
)

// Repeats reports whether what the network does next is a function of
// AppendState: it is not where packets are lost by chance, where ranks are down,
// and where a network that reduces has steps of different sizes.
func (n *Network) Repeats() bool {
	if n.down != nil {
		return false
	}
	for i := range n.Pairs {
		if n.Pairs[i].again.loss > 0 {
			return false
		}
	}
	for i := range n.Rails {
		if n.Rails[i].stuck != nil {
			return false
		}
	}
	return len(n.Rails) == 0 || n.plan.Req.Func == coll.AllReduce
}

// ahead is a time relative to now: what is over is over, whenever that was.
func ahead(t, now units.Time) int64 { return int64(max(0, t-now)) }

// AppendState appends all that decides what the network does from now on, with
// times relative to now and counts of steps relative to each other.
func (n *Network) AppendState(dst []int64, now units.Time) []int64 {
	for i := range n.Conns {
		dst = n.Conns[i].appendState(dst, now)
	}
	for i := range n.Pairs {
		if l := &n.Pairs[i]; l.busy {
			dst = append(dst, int64(i), l.Step-n.Conns[l.Conn].landed, int64(l.Part), int64(now-l.Since),
				int64(l.Sent))
		}
	}
	for i := range n.proxy.threads {
		t := &n.proxy.threads[i]
		dst = append(dst, ahead(t.busy, now), int64(len(t.batch)))
	}
	for i := range n.Rails {
		dst = n.appendRail(dst, &n.Rails[i], now)
	}
	return dst
}

func (c *Conn) appendState(dst []int64, now units.Time) []int64 {
	dst = append(dst, c.posted-c.sent, c.sent-c.begun, c.begun-c.landed, c.landed-c.arrived, c.landed-c.acked,
		c.allowed-c.sent, flags(c.pending, c.rest.waiting),
		ahead(c.srcFree, now), ahead(c.dstFree, now), ahead(c.rest.until, now), int64(c.part), int64(c.next))
	if c.batch >= 0 {
		for k := c.posted - 1; k >= 0 && k >= c.posted-plan.FIFOSteps; k-- {
			dst = append(dst, ahead(c.ready[slot(k)], now))
		}
		return dst
	}
	for k := c.sent; k < c.posted; k++ {
		dst = append(dst, ahead(c.ready[slot(k)], now))
	}
	for k := c.begun; k < c.posted; k++ {
		dst = append(dst, int64(c.bytes[slot(k)]))
	}
	for k := c.sent; k < c.allowed; k++ {
		dst = append(dst, ahead(c.allow[slot(k)], now))
	}
	for k := c.arrived; k < c.sent; k++ {
		s := &c.split[slot(k)]
		dst = append(dst, int64(s.first), int64(s.parts), int64(s.left), int64(s.bytes), int64(s.each))
	}
	return dst
}

// appendRail appends the state of a rail, its sides and their batches.
func (n *Network) appendRail(dst []int64, r *Rail, now units.Time) []int64 {
	dst = append(dst, r.ready-r.Begun, r.Begun-r.Ended, r.Begun%r.Batches, flags(r.busy, false))
	for i := range int64(len(r.came)) {
		dst = append(dst, int64(r.came[(r.Begun+i)%int64(len(r.came))]))
	}
	for _, si := range r.Sides {
		s := &n.Sides[si]
		dst = append(dst, s.Posted-r.Begun, flags(s.pending, false))
		for bi := s.First; bi < s.First+int32(r.Batches); bi++ {
			b := &n.Batches[bi]
			dst = append(dst, ahead(b.sendFree, now), ahead(b.recvFree, now), b.opened*r.Batches-s.Posted,
				b.opened-b.freed, b.opened-b.retired, b.opened-b.received)
			for k := b.opened - 1; k >= 0 && k >= b.opened-plan.FIFOSteps; k-- {
				dst = append(dst, ahead(b.open[slot(k)], now))
			}
			for _, id := range b.To {
				dst = append(dst, b.opened-n.Conns[id].posted)
			}
			for _, id := range b.From {
				dst = append(dst, b.opened-n.Conns[id].posted)
			}
		}
	}
	return dst
}

// flags packs two booleans.
func flags(a, b bool) int64 {
	n := int64(0)
	if a {
		n |= 1
	}
	if b {
		n |= 2
	}
	return n
}

// Waits are the integrals that Queues is made of, at one time of a run.
type Waits []integral

// KeepWaits copies them.
func (n *Network) KeepWaits(w Waits) Waits { return append(w[:0], n.waits...) }

// RepeatWaits adds what they have grown by since they were kept, so many times.
func (n *Network) RepeatWaits(since Waits, times int64) {
	for r := range n.waits {
		by := n.waits[r]
		if r < len(since) {
			by = by.minus(since[r])
		}
		n.waits[r].grow(by, uint64(times))
	}
}
