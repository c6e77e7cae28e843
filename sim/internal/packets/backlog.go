package packets

import (
	"math"

	"github.com/simccl/simccl/packet"
	"github.com/simccl/simccl/sim/wire"
	"github.com/simccl/simccl/units"
)

// Of a hybrid, flows say when calm messages arrive, and an estimate beside them how
// long the queues are that their frames would wait in. A host does not wait for what
// lies beyond its port: it sends what was posted as fast as the port goes, each queue
// pair in proportion to what it may send. What so comes to a link beyond its speed
// waits there. An input carries no more than its own speed.
//
// Hosts are served in processor sharing: the share of a port that its queue pairs get
// is one number, and so the order in which they have sent all is known when they are
// posted.

// sending is a port of a host, of which queue pairs have bytes left to send.
type sending struct {
	pairs  []wire.QueueID
	wanted int64      // bit/s that they may send together
	share  float64    // of that, which the port gives them
	turn   float64    // seconds that a queue pair with a share of 1 was served, at time since
	since  units.Time //
	next   units.Time // when the first of them has sent all
}

// backlog estimates the queue of a link.
type backlog struct {
	most    float64 // bytes, from which on the queue is not calm; 0: none may wait
	bytes   float64 // that wait, at time at
	offered int64   // bit/s
	at      units.Time
	hot     bool // more is offered than the link carries: it is among Model.hot
}

// never is no time.
const never = units.Time(math.MaxInt64)

// act is the length of a queue on which a switch acts, in bytes: the least of where it
// marks, where it pauses its neighbours or cuts frames, and of the room for which senders have credits. 0
// where congestion control acts on any queue.
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

// deep is for how long frames wait at most in a queue of a calm link. Flows share a link,
// frames go first come, first served; in a long queue that makes a difference of its own.
const deep = 10 * units.Microsecond

// excess is how much more than it carries a link is offered, in bytes a second.
func (c *cable) excess() float64 { return float64(c.offered-c.Bits) / 8 }

// drift moves a link's estimate to a time.
func (c *cable) drift(now units.Time) {
	if x := c.excess(); x > 0 || c.bytes > 0 {
		c.bytes = max(0, c.bytes+x*float64(now-c.at)/float64(units.Second))
	}
	c.at = now
}

// full is when a link's queue is to be simulated, if all goes on as it is.
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

// offer notes that a queue pair's host has so many more bytes to send.
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

// serve lets hosts send up to a time.
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
			continue // it was served otherwise since
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

// sentAll takes the i-th queue pair off its port.
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

// move serves a port up to a time.
func (p *sending) move(now units.Time) {
	p.turn += p.share * float64(now-p.since) / float64(units.Second)
	p.since = now
}

// reshare finds what each queue pair of a port is given.
func (m *Model) reshare(now units.Time, port wire.LinkID) {
	c := &m.cables[port]
	p := &c.sending
	p.share = min(1, float64(c.Bits)/float64(max(1, p.wanted)))
	for _, id := range p.pairs {
		m.rate(now, id, int64(m.queues[id].limit*p.share))
	}
	m.first(port)
}

// first finds when the first queue pair of a port has sent all.
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

// rate notes what a queue pair offers the links behind its port.
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

// due is when the first of the links' queues is too long.
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

// overflow frames what crosses links whose queues are too long.
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

// OnFramed sets a function that is called when a queue pair of a hybrid changes from flows to frames.
func (m *Model) OnFramed(do func()) { m.onFramed = do }

// Stirred says whether a queue pair of a hybrid was ever framed.
func (m *Model) Stirred() bool { return m.stirred }
