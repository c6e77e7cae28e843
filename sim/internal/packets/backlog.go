package packets

import (
	"math"

	"github.com/simccl/simccl/packet"
	"github.com/simccl/simccl/sim/wire"
	"github.com/simccl/simccl/units"
)

// The queue estimate of a hybrid. Flows say when calm messages arrive; beside them this estimate says how
// long the queues would be in which their frames wait. A host is taken to send what was posted at the rate of
// its port, whatever the links beyond can carry, divided among its queue pairs in proportion to their limits.
// The excess over a link's rate waits at that link; an input delivers at most its own rate.
//
//	port 100, queue pairs limited to 100 and 100: each offers 50
//	link of 100 fed by three such ports, each with 50 for it: excess 150 - 100, its queue grows by 50
//
// Ports are processor sharing: all queue pairs of a port get the same fraction (share) of their limits. So a
// queue pair's end is fixed when its bytes are posted, in units of the port's virtual time (turn): seconds
// that it would need at its full limit. Later arrivals change how fast turn runs, not the order of the ends.

// sending is the processor-sharing state of a host's port: the queue pairs with bytes left to send.
type sending struct {
	pairs  []wire.QueueID
	wanted int64      // bit/s: sum of their limits
	share  float64    // fraction of its limit that each gets, at most 1
	turn   float64    // virtual time at since, in seconds: the integral of share
	since  units.Time // time of the last update of turn
	next   units.Time // when the first of them has sent all its bytes
}

// backlog estimates the queue of a link.
type backlog struct {
	most    float64 // bytes from which on the link's queue pairs are framed; 0: any queue frames them
	bytes   float64 // estimated queue at time at
	offered int64   // bit/s that the inputs deliver together
	at      units.Time
	hot     bool // the link is listed in Model.hot, as more is offered than it carries
}

// never is the time of an event that is not scheduled.
const never = units.Time(math.MaxInt64)

// act returns the queue in bytes above which a link's queue pairs are framed: half of the lowest threshold at
// which a switch acts (ECN marking, PFC or trimming, the credits of senders), at most what drains in deep. It
// is 0 for controls that react to any queue, as those by delay do.
func (m *Model) act(c *cable) float64 {
	s := &m.set
	most := float64(s.Buffer.Bytes) / float64(int64(1)<<max(0, s.Buffer.Shift)) / 4
	switch {
	case s.Buffer.Credits > 0:
		most = float64(s.Buffer.Credits)
	case s.Buffer.XOff > 0:
		most = float64(s.Buffer.XOff)
	case s.Buffer.Trim > 0:
		most = float64(s.Buffer.Trim)
	}
	switch s.CC.Kind {
	case packet.NoCC:
	case packet.DCQCN, packet.DCTCP:
		for _, x := range s.Marking {
			if x.Rate == c.Bits {
				most = min(most, float64(x.KMin))
			}
		}
	default:
		return 0
	}
	return min(most/2, float64(c.Bits)/8*float64(deep)/float64(units.Second))
}

// deep bounds the time that frames wait in a queue of a calm link. Flows share a link fairly while frames go
// first come, first served: in a longer queue the two orders give visibly different times.
const deep = 10 * units.Microsecond

// excess returns the bytes a second offered to a link beyond its rate; negative: the queue drains.
func (c *cable) excess() float64 { return float64(c.offered-c.Bits) / 8 }

// drift advances a link's queue estimate to a time at the present excess.
func (c *cable) drift(now units.Time) {
	if x := c.excess(); x > 0 || c.bytes > 0 {
		c.bytes = max(0, c.bytes+x*float64(now-c.at)/float64(units.Second))
	}
	c.at = now
}

// full returns when a link's queue reaches most at the present excess; never if not within a second.
func (c *cable) full() units.Time {
	x := c.excess()
	switch {
	case x <= 0:
		return never
	case c.bytes >= c.most:
		return c.at
	}
	wait := (c.most - c.bytes) / x * float64(units.Second)
	if wait > float64(units.Second) {
		return never
	}
	return c.at + units.Time(wait)
}

// offer adds payload bytes that a queue pair's host has to send; on the wire they have headers too.
func (m *Model) offer(now units.Time, id wire.QueueID, bytes float64) {
	m.serve(now)
	q := &m.queues[id]
	f := &m.set.Frames
	port := m.routes[q.route].path[0]
	p := &m.cables[port].sending
	p.move(now)
	more := bytes * 8 * float64(f.Payload+f.Header) / float64(f.Payload) / q.limit
	if q.sends {
		q.ends += more
		m.first(port)
		return
	}
	q.sends, q.ends = true, p.turn+more
	p.pairs = append(p.pairs, id)
	p.wanted += int64(q.limit)
	m.reshare(now, port)
}

// serve takes queue pairs that have sent all their bytes by a time off their ports, in order of time.
func (m *Model) serve(now units.Time) {
	for {
		at, ok := m.ported.Next()
		if !ok || at > now {
			return
		}
		m.ported.Pop(&m.popped)
		port := wire.LinkID(m.popped.ID)
		p := &m.cables[port].sending
		if p.next != at {
			continue // outdated: the port was rescheduled (first) since
		}
		p.move(at)
		for i := 0; i < len(p.pairs); {
			if q := &m.queues[p.pairs[i]]; q.ends <= p.turn+1e-12 {
				m.sentAll(at, p, i)
				continue
			}
			i++
		}
		m.reshare(at, port)
	}
}

// sentAll takes the i-th queue pair off its port: it offers nothing any more.
func (m *Model) sentAll(now units.Time, p *sending, i int) {
	id := p.pairs[i]
	q := &m.queues[id]
	q.sends = false
	p.wanted -= int64(q.limit)
	last := len(p.pairs) - 1
	p.pairs[i] = p.pairs[last]
	p.pairs = p.pairs[:last]
	m.rate(now, id, 0)
}

// move advances a port's virtual time.
func (p *sending) move(now units.Time) {
	p.turn += p.share * float64(now-p.since) / float64(units.Second)
	p.since = now
}

// reshare divides a port's rate anew after a queue pair came or went.
func (m *Model) reshare(now units.Time, port wire.LinkID) {
	c := &m.cables[port]
	p := &c.sending
	p.share = min(1, float64(c.Bits)/float64(max(1, p.wanted)))
	for _, id := range p.pairs {
		m.rate(now, id, int64(m.queues[id].limit*p.share))
	}
	m.first(port)
}

// first schedules the time at which the first queue pair of a port has sent all its bytes.
func (m *Model) first(port wire.LinkID) {
	p := &m.cables[port].sending
	p.next = never
	if len(p.pairs) == 0 {
		p.turn = 0
		return
	}
	least := math.Inf(1)
	for _, id := range p.pairs {
		least = min(least, m.queues[id].ends)
	}
	p.next = p.since + max(1, units.Time((least-p.turn)/p.share*float64(units.Second))+1)
	m.ported.Push(p.next, 0, 0, int32(port), 0)
}

// rate sets what a queue pair offers (bit/s) to the links after its port. Each input counts at most its own
// rate, so that several slow queue pairs over one input do not add up beyond it.
func (m *Model) rate(now units.Time, id wire.QueueID, to int64) {
	q := &m.queues[id]
	by := to - q.rate
	if by == 0 {
		return
	}
	q.rate = to
	for k, l := range m.routes[q.route].path[1:] {
		c := &m.cables[l]
		c.drift(now)
		in := &c.from[q.from[k]]
		most := m.cables[in.link].Bits
		before := min(in.offered, most)
		in.offered += by
		c.offered += min(in.offered, most) - before
		if !c.hot && c.most > 0 && c.excess() > 0 {
			c.hot = true
			m.hot = append(m.hot, l)
		}
		if c.hot {
			m.full = -1
		}
	}
}

// due returns when the first link with calm queue pairs reaches its limit (full), and drops links without
// excess from hot. The result is cached in Model.full until an offer to a hot link changes.
func (m *Model) due() units.Time {
	if m.full >= 0 {
		return m.full
	}
	m.full = never
	keep := m.hot[:0]
	for _, l := range m.hot {
		c := &m.cables[l]
		if c.excess() <= 0 {
			c.hot = false
			continue
		}
		keep = append(keep, l)
		if c.framed < len(c.active) {
			m.full = min(m.full, c.full())
		}
	}
	m.hot = keep
	return m.full
}

// overflow frames the queue pairs of all links whose queues have reached their limit by now.
func (m *Model) overflow(now units.Time) {
	m.serve(now)
	if m.due() > now {
		return
	}
	m.full = -1
	for _, l := range m.hot {
		c := &m.cables[l]
		if c.drift(now); c.full() > now {
			continue
		}
		c.until = now + sticky
		for _, id := range c.active {
			if !m.queues[id].framed {
				m.stir(now, id)
			}
		}
	}
}

// OnFramed sets a function that is called when a hybrid's queue pair changes from flows to frames.
func (m *Model) OnFramed(do func()) { m.onFramed = do }

// Stirred reports whether any queue pair of a hybrid was ever framed.
func (m *Model) Stirred() bool { return m.stirred }
