package packets

import (
	"slices"

	"github.com/simccl/simccl/sim/wire"
	"github.com/simccl/simccl/units"
)

// With Settings.Hybrid a queue pair is calm or framed. The messages of a calm queue pair are flows: they
// share the payload rate of the cables max-min (rate · payload/(payload+header)), independently of the links
// within hosts. A flow's message arrives when its last frame does: that frame's store-and-forward time over
// the switches (tail) after its last bit has left. The messages of a framed queue pair go frame by frame.
//
//	calm ── a queue on its path reaches half of a switch's threshold (overflow, stir) ──▶ framed
//	calm ◀── all messages have arrived (leave), and the next one finds no reason against (stirs) ── framed
//
// A queue forms where several inputs offer a link more than it carries. It costs no bandwidth until a switch
// marks, pauses or drops, so until then flows end when frames would. Each link therefore has an estimate of
// its queue (backlog.go). Once that passes half of the first threshold, all queue pairs of the link become
// framed, and so do, transitively, all that share with them a link of which more than calmShare is asked, and
// those that come to such a link within sticky. The rest of their messages goes on frame by frame.

// calmShare is the share of a link's rate up to which no queue is expected.
const calmShare = 0.95

// sticky is how long after contention a link still frames the queue pairs that come to it: longer than the
// gaps between messages of one operation, and than the recovery of congestion control.
const sticky = 500 * units.Microsecond

// crossing is the present load of a link between hosts, in a hybrid.
type crossing struct {
	asked  float64 // bit/s that its queue pairs may send together
	active []wire.QueueID
	framed int
	from   []input
	until  units.Time // end of the sticky time after its last contention
	backlog
	sending
}

// input is one of the links that feed a link, with the part of the load that comes over it.
type input struct {
	link    wire.LinkID
	asked   float64 // bit/s that its queue pairs may send together
	offered int64   // bit/s that hosts give them at present
}

// contended reports whether a queue can form at a link: several inputs together, or a single faster one, may
// deliver more than it carries.
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

// crowded reports whether several queue pairs together may ask a link for more than it carries.
func (m *Model) crowded(l wire.LinkID) bool {
	c := &m.cables[l]
	return len(c.active) > 1 && c.asked > calmShare*float64(c.Bits)
}

// enter adds a queue pair that begins to send to the load of its links.
func (m *Model) enter(id wire.QueueID) { m.count(id, 1) }

// leave removes a queue pair whose messages have all arrived from its links; it is calm from then on.
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
	if q.sends { // in the estimate its host still has bytes to send
		port := path[0]
		p := &m.cables[port].sending
		p.move(now)
		m.sentAll(now, p, slices.Index(p.pairs, id))
		m.reshare(now, port)
	}
}

// count adds (by 1) or removes (by -1) a queue pair at the links of its path.
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

// stirs reports whether a queue pair that begins to send must be framed at once: lossy path, reduced rate,
// frames on a crowded link, or a contended link within sticky (or whose control reacts to any queue).
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

// stir frames a queue pair and, transitively, all that share a crowded link with it.
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

// frame makes a queue pair framed: the rest of each message on the cables goes on as frames.
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

// flow starts a calm message's flow over its cables, at most at the payload rate of its queue pair.
func (m *Model) flow(now units.Time, at int32) {
	x := &m.msgs[at]
	q := &m.queues[x.queue]
	f := &m.set.Frames
	most := wire.Rate(q.limit / 8e3 * float64(f.Payload) / float64(f.Payload+f.Header))
	x.flow = m.host.Start(now, m.routes[q.route].net, max(1, most), x.work, 1, least+mostMessages+at)
}

// crossed handles the end of a calm message's flow over the cables: it arrives a tail later, and the next
// message of the queue pair starts.
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

// tail returns the time from a message's last bit leaving the host to its arrival: the delays of the cables
// and, at each switch, the store-and-forward (or cut-through) time of one full frame.
func (m *Model) tail(r *route) units.Time {
	var t units.Time
	f := &m.set.Frames
	for k, l := range r.path {
		c := &m.cables[l]
		t += c.Delay
		if k > 0 {
			t += units.Time(float64(f.Payload+f.Header) * 8e12 / float64(c.Bits))
			// cut-through: a frame is forwarded after its first CutThrough bytes
			if before := m.cables[r.path[k-1]].Bits; m.set.CutThrough > 0 && before >= c.Bits {
				t -= units.Time(float64(max(0, f.Payload+f.Header-m.set.CutThrough)) * 8e12 / float64(before))
			}
		}
	}
	return t
}
