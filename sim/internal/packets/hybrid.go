package packets

import (
	"slices"

	"github.com/simccl/simccl/sim/wire"
	"github.com/simccl/simccl/units"
)

// With Settings.Hybrid a queue pair is calm or framed. The messages of a calm one
// are flows: they share cables max-min at the rate that frames leave of them to
// payload, apart from the links within hosts as frames do, and arrive as long after their last bit left as
// the last frame takes over the switches. The messages of a framed one go frame by frame.
//
// Where several inputs ask a link for more than it carries, a queue forms. As long as
// no switch acts on it (marks, pauses) or has no room, a queue takes no bandwidth away,
// and messages over the link end as those of flows do. So a link has an estimate of its
// queue (backlog.go). Where that passes half of what a switch acts on, all queue pairs
// of the link are framed; with them all that share a link with them, directly or over
// others, which together ask for more than calmShare of it, and those that come to
// such a link within sticky. What is left of their messages goes on frame by frame. A
// queue pair becomes calm again once all of its messages have arrived, its links have
// been calm for that long and its rate is what it was at first.

// calmShare is the share of a link's speed up to which no queue forms.
const calmShare = 0.95

// sticky is for how long after a link was contended the queue pairs that come to it
// are framed. It is longer than the gaps between the messages of one operation, and
// than congestion control takes to recover.
const sticky = 500 * units.Microsecond

// crossing is what a cable's link carries at present.
type crossing struct {
	asked  float64 // bit/s that its queue pairs may send together
	active []wire.QueueID
	framed int
	from   []input
	until  units.Time // it counts as contended, once its queue was too long
	backlog
	sending
}

// input is a link that feeds another, and what comes from it; link -1: a host.
type input struct {
	link    wire.LinkID
	asked   float64 // bit/s that its queue pairs may send together
	offered int64   // bit/s that hosts give them at present
}

// contended says that several inputs together, or a faster one, may ask for more than a
// link carries.
func (m *Model) contended(l wire.LinkID) bool {
	c := &m.cables[l]
	if c.asked <= calmShare*float64(c.Bits) {
		return false
	}
	n, sum := 0, 0.0
	for i := range c.from {
		in := &c.from[i]
		if in.asked > 0 {
			if n++; m.cables[in.link].Bits > c.Bits {
				n++ // a faster one alone is as two
			}
			sum += min(in.asked, float64(m.cables[in.link].Bits))
		}
	}
	return n > 1 && sum > calmShare*float64(c.Bits)
}

// crowded says that a link's queue pairs together may ask for more than it carries.
func (m *Model) crowded(l wire.LinkID) bool {
	c := &m.cables[l]
	return len(c.active) > 1 && c.asked > calmShare*float64(c.Bits)
}

// enter counts a queue pair that begins to send, and leave one that has nothing to
// send any more.
func (m *Model) enter(id wire.QueueID) { m.count(id, 1) }

func (m *Model) leave(now units.Time, id wire.QueueID) {
	q := &m.queues[id]
	path := m.routes[q.route].path
	if q.framed {
		q.framed = false
		for _, l := range path {
			c := &m.cables[l]
			c.framed--
			if now < c.until && m.contended(l) {
				c.until = now + sticky
			}
		}
	}
	m.count(id, -1)
	if q.sends { // the host was given less than it asked for
		port := path[0]
		p := &m.cables[port].sending
		p.move(now)
		m.sentAll(now, p, slices.Index(p.pairs, id))
		m.reshare(now, port)
	}
}

func (m *Model) count(id wire.QueueID, by float64) {
	q := &m.queues[id]
	path := m.routes[q.route].path
	for k, l := range path {
		c := &m.cables[l]
		if by > 0 {
			c.active = append(c.active, id)
		} else if i := slices.Index(c.active, id); i >= 0 {
			c.active = slices.Delete(c.active, i, i+1)
		}
		c.asked += by * q.limit
		if len(c.active) == 0 {
			c.asked = 0
		}
		if k == 0 {
			continue
		}
		if in := &c.from[q.from[k-1]]; in.asked+by*q.limit < 0.5 {
			in.asked = 0
		} else {
			in.asked += by * q.limit
		}
	}
}

// stirs says that a queue pair that begins to send cannot be calm.
func (m *Model) stirs(id wire.QueueID, now units.Time) bool {
	q := &m.queues[id]
	if q.lossy || m.frames.Slowed(int32(id), now) {
		return true
	}
	for _, l := range m.routes[q.route].path {
		c := &m.cables[l]
		if c.framed > 0 && m.crowded(l) {
			return true
		}
		if (now < c.until || c.most == 0) && m.contended(l) {
			c.until = now + sticky
			return true
		}
	}
	return false
}

// stir makes a queue pair framed, and all that it can hold up.
func (m *Model) stir(now units.Time, id wire.QueueID) {
	m.spread = append(m.spread[:0], id)
	for i := 0; i < len(m.spread); i++ {
		id := m.spread[i]
		if m.queues[id].framed {
			continue
		}
		m.frame(now, id)
		for _, l := range m.routes[m.queues[id].route].path {
			if !m.crowded(l) {
				continue
			}
			for _, other := range m.cables[l].active {
				if !m.queues[other].framed {
					m.spread = append(m.spread, other)
				}
			}
		}
	}
}

// frame lets a queue pair's messages go on frame by frame.
func (m *Model) frame(now units.Time, id wire.QueueID) {
	q := &m.queues[id]
	if q.framed, m.stirred = true, true; m.onFramed != nil {
		m.onFramed()
	}
	for _, l := range m.routes[q.route].path {
		m.cables[l].framed++
	}
	for _, at := range q.cross[q.past:] {
		x := &m.msgs[at]
		left := x.work
		if x.flow >= 0 {
			left = m.host.Withdraw(now, x.flow)
			x.flow = -1
		}
		m.send(now, id, left, at)
	}
	q.cross, q.past = q.cross[:0], 0
}

// flow puts a calm message on its cables.
func (m *Model) flow(now units.Time, at int32) {
	x := &m.msgs[at]
	q := &m.queues[x.queue]
	f := &m.set.Frames
	most := wire.Rate(q.limit / 8e3 * float64(f.Payload) / float64(f.Payload+f.Header))
	x.flow = m.host.Start(now, m.routes[q.route].net, max(1, most), x.work, 1, least+mostMessages+at)
}

// crossed: a calm message has crossed its cables but for the last frame, which every
// switch receives before it goes on.
func (m *Model) crossed(now units.Time, at int32) {
	x := &m.msgs[at]
	x.flow = -1
	q := &m.queues[x.queue]
	q.past++
	if q.past == len(q.cross) {
		q.cross, q.past = q.cross[:0], 0
	} else {
		m.flow(now, q.cross[q.past])
	}
	m.lands(now+q.tail, at)
}

// tail is how long after its last bit left the host a calm message is there: its
// last frame is received by every switch before it goes on.
func (m *Model) tail(r *route) units.Time {
	var t units.Time
	f := &m.set.Frames
	for k, l := range r.path {
		c := &m.cables[l]
		t += c.Delay
		if k > 0 {
			t += units.Time(float64(f.Payload+f.Header) * 8e12 / float64(c.Bits))
			// it begins with the first bytes
			if before := m.cables[r.path[k-1]].Bits; m.set.CutThrough > 0 && before >= c.Bits {
				t -= units.Time(float64(max(0, f.Payload+f.Header-m.set.CutThrough)) * 8e12 / float64(before))
			}
		}
	}
	return t
}
