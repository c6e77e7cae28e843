package packets

import (
	"math"

	"github.com/simccl/simccl/sim/wire"
	"github.com/simccl/simccl/sim/wire/packet"
	"github.com/simccl/simccl/units"
)

// backlog estimates the queue of a calm link. Its queue pairs offer what their hosts
// share out to them, each port's in proportion to what they may send; inputs carry no
// more than their speed. What is offered beyond the link's speed waits: no more than
// its share of the bytes that were posted and have not arrived.
type backlog struct {
	most    float64 // bytes, from which on the queue is not calm; 0: none may wait
	bytes   float64 // that wait, at time at
	posted  float64 // bytes that have not arrived
	offered float64 // bit/s
	at      units.Time
	hot     bool // more is offered than the link carries: it is among Model.hot
}

// never is no time.
const never = units.Time(math.MaxInt64)

// act is the length of a queue on which a switch acts, in bytes: the least of where it
// marks, where it pauses its neighbours, and of the room for which senders have credits. 0
// where congestion control acts on any queue.
func (m *Model) act(c *cable) float64 {
	s := &m.set
	most := float64(s.Buffer.Bytes) / float64(int64(1)<<s.Buffer.Shift) / 4
	switch {
	case s.Buffer.Credits > 0:
		most = float64(s.Buffer.Credits)
	case s.Buffer.XOff > 0:
		most = float64(s.Buffer.XOff)
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
	return most / 2
}

// excess is how much more than it carries a link is offered, in bytes a second.
func (c *cable) excess() float64 { return (c.offered - float64(c.Bits)) / 8 }

// bound is the most that can wait: the share of what was posted that comes too fast.
func (c *cable) bound() float64 {
	if c.offered <= 0 {
		return 0
	}
	return max(0, c.posted*(1-float64(c.Bits)/c.offered))
}

// drift moves a link's estimate to a time.
func (c *cable) drift(now units.Time) {
	dt := float64(now-c.at) / float64(units.Second)
	c.at = now
	if x := c.excess(); x > 0 {
		c.bytes = max(c.bytes, min(c.bytes+x*dt, c.bound()))
	} else {
		c.bytes = max(0, c.bytes+x*dt)
	}
}

// soon is before how long a queue that will be too long is simulated: from near its
// beginning, where it grows fast.
const soon = 20 * units.Microsecond

// full is when a link's queue is to be simulated, if all goes on as it is.
func (c *cable) full() units.Time {
	x := c.excess()
	if c.bytes >= c.most && x > 0 {
		return c.at
	}
	if x <= 0 || c.bound() < c.most {
		return never
	}
	return c.at + max(0, units.Time((c.most-c.bytes)/x*float64(units.Second))-soon)
}

// weigh notes what the links are offered that queue pairs cross which share a port
// with one that came or went.
func (m *Model) weigh(now units.Time, id wire.QueueID) {
	path := m.routes[m.queues[id].route].path
	if len(path) < 2 {
		return
	}
	m.around = append(m.around[:0], path[1:]...)
	for _, q := range m.cables[path[0]].active {
		m.around = append(m.around, m.routes[m.queues[q].route].path[1:]...)
	}
	m.turn++
	for _, l := range m.around {
		if c := &m.cables[l]; c.seen != m.turn {
			c.seen = m.turn
			c.drift(now)
			c.offered = m.offer(l)
			m.heed(l)
		}
	}
}

// heed keeps the list of links that are offered more than they carry.
func (m *Model) heed(l wire.LinkID) {
	if c := &m.cables[l]; !c.hot && c.most > 0 && c.excess() > 0 {
		c.hot = true
		m.hot = append(m.hot, l)
	}
	m.full = -1
}

// offer is what a link is offered at present.
func (m *Model) offer(l wire.LinkID) float64 {
	c := &m.cables[l]
	for i := range c.from {
		c.from[i].offered = 0
	}
	for _, id := range c.active {
		q := &m.queues[id]
		path := m.routes[q.route].path
		port := &m.cables[path[0]]
		rate := q.limit
		if port.asked > float64(port.Bits) {
			rate *= float64(port.Bits) / port.asked
		}
		before := path[0]
		for _, x := range path[1:] {
			if x == l {
				break
			}
			before = x
		}
		for i := range c.from {
			if c.from[i].link == before {
				c.from[i].offered += rate
				break
			}
		}
	}
	sum := 0.0
	for i := range c.from {
		sum += min(c.from[i].offered, float64(m.cables[c.from[i].link].Bits))
	}
	return sum
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

// load counts what is posted to the links of a queue pair, and what has arrived.
func (m *Model) load(now units.Time, id wire.QueueID, bytes float64) {
	for k, l := range m.routes[m.queues[id].route].path {
		if c := &m.cables[l]; k > 0 {
			if c.hot {
				c.drift(now)
				m.full = -1
			}
			c.posted = max(0, c.posted+bytes)
		}
	}
}

// OnStir has a function called when a queue pair of a hybrid is framed.
func (m *Model) OnStir(do func()) { m.onStir = do }

// Stirred says whether a queue pair of a hybrid was ever framed.
func (m *Model) Stirred() bool { return m.stirred }
