package packets

import (
	"cmp"
	"slices"

	"github.com/simccl/simccl/packet"
	"github.com/simccl/simccl/sim/wire"
	"github.com/simccl/simccl/units"
)

// Congestion implements wire.Messages.
func (m *Model) Congestion() []wire.Congestion {
	if m.frames == nil {
		return nil
	}
	at := m.directions()
	held, locks := m.held(), m.deadlocks()
	var out []wire.Congestion
	inputs, pairs := m.inputs()
	for i := range m.cables {
		c := &m.cables[i]
		if !c.on {
			continue
		}
		p := m.frames.Port(m.ends(c))
		if from, ok := m.stormed(m.ends(c)); ok && p.Paused > 0 && (p.Pauses == 0 || from < p.First) {
			p.First = from
		}
		x := wire.Congestion{Link: wire.LinkID(i), Peak: units.Bytes(p.Peak), Paused: p.Paused,
			Pauses: p.Pauses, Marks: p.Marks,
			Drops: p.Drops, Trims: p.Trims, Watchdogs: p.Watchdogs, Inputs: inputs[i], QueuePairs: pairs[i],
			Resent: p.Resent, Through: units.Bytes(p.Bytes), First: p.First, Behind: -1,
			Held:      held[[2]string{c.From.Name, c.To.Name}],
			Deadlocks: locks[[2]string{c.From.Name, c.To.Name}], Credits: m.set.Config.Buffer.Credits > 0}
		if p.Behind >= 0 {
			x.Behind = at[p.Behind/2][p.Behind%2]
		}
		if inputs[i] > 1 && p.Peak > 0 {
			x.From = m.streams(wire.LinkID(i))
		}
		out = append(out, x)
	}
	return out
}

// stormed returns the start of the earliest pause storm on a cable's direction; ok is false without one.
func (m *Model) stormed(number int32, back bool) (from units.Time, ok bool) {
	for i := range m.set.Faults {
		if f := &m.set.Faults[i]; f.Storm && f.Cable == int(number) && f.Back == back &&
			(!ok || f.From < from) {
			from, ok = f.From, true
		}
	}
	return from, ok
}

// streams returns the bytes that crossed a link by source and destination port, most first. With adaptive
// routing only the first and last hop of a queue pair are certain, so other links get no entries.
func (m *Model) streams(l wire.LinkID) (out []wire.Stream) {
	sum := map[[2]string]int{}
	for i := range m.queues {
		q := &m.queues[i]
		path := m.routes[q.route].path
		k := slices.Index(path, l)
		if q.sent == 0 || k < 0 || m.Whole() && k > 0 && k < len(path)-1 {
			continue
		}
		ends := [2]string{m.cables[path[0]].From.Name, m.cables[path[len(path)-1]].To.Name}
		n, ok := sum[ends]
		if !ok {
			n = len(out)
			sum[ends] = n
			out = append(out, wire.Stream{From: ends[0], To: ends[1]})
		}
		out[n].Bytes += units.Bytes(q.sent / wire.NanoBytes)
	}
	slices.SortStableFunc(out, func(a, b wire.Stream) int { return cmp.Compare(b.Bytes, a.Bytes) })
	return out
}

// held returns head-of-line blocking by link, keyed by the names of the link's ends.
func (m *Model) held() map[[2]string][]wire.Held {
	out := map[[2]string][]wire.Held{}
	for _, b := range m.frames.Blocked() {
		path := m.routes[m.queues[b.Flow].route].path
		on := [2]string{m.nodes[b.Link[0]].Name, m.nodes[b.Link[1]].Name}
		h := wire.Held{From: m.cables[path[0]].From.Name, To: m.cables[path[len(path)-1]].To.Name,
			Behind: m.nodes[b.Behind[0]].Name + "→" + m.nodes[b.Behind[1]].Name, Time: b.Time}
		list := out[on]
		if i := slices.IndexFunc(list, func(x wire.Held) bool {
			return x.From == h.From && x.To == h.To && x.Behind == h.Behind
		}); i >= 0 {
			list[i].Time = max(list[i].Time, h.Time) // queue pairs wait at the same time
			continue
		}
		out[on] = append(list, h)
	}
	return out
}

// deadlocks returns the PFC deadlocks, keyed by the names of the ends of each cycle's first link.
func (m *Model) deadlocks() map[[2]string][]wire.Deadlock {
	out := map[[2]string][]wire.Deadlock{}
	for _, d := range m.frames.Deadlocks() {
		x := wire.Deadlock{At: d.At}
		for _, n := range d.Nodes {
			x.Nodes = append(x.Nodes, m.nodes[n].Name)
		}
		on := [2]string{x.Nodes[0], x.Nodes[1%len(x.Nodes)]}
		out[on] = append(out[on], x)
	}
	return out
}

// inputs returns, by link, the number of cables that fed it and the number of queue pairs that used it.
func (m *Model) inputs() (out, pairs []int32) {
	out, pairs = make([]int32, len(m.cables)), make([]int32, len(m.cables))
	for i := range m.queues {
		for _, l := range m.routes[m.queues[i].route].path {
			if m.routes[m.queues[i].route].used {
				pairs[l]++
			}
		}
	}
	seen := map[[2]wire.LinkID]bool{}
	for i := range m.routes {
		r := &m.routes[i]
		for k := 1; k < len(r.path) && r.used; k++ {
			if pair := [2]wire.LinkID{r.path[k-1], r.path[k]}; !seen[pair] {
				seen[pair] = true
				out[pair[1]]++
			}
		}
	}
	return out, pairs
}

// directions returns the links of each cable of m.net, A to B and back; -1: that direction is no link of the
// model.
func (m *Model) directions() [][2]wire.LinkID {
	at := make([][2]wire.LinkID, len(m.net.Cables))
	for i := range at {
		at[i] = [2]wire.LinkID{-1, -1}
	}
	for i := range m.cables {
		if c := &m.cables[i]; c.on {
			number, back := m.ends(c)
			k := 0
			if back {
				k = 1
			}
			at[number][k] = wire.LinkID(i)
		}
	}
	return at
}

// Observe implements wire.Messages.
func (m *Model) Observe(report func(wire.PortState)) {
	if m.frames == nil {
		return
	}
	at := m.directions()
	m.frames.Watch(func(s packet.State) {
		out := wire.PortState{At: s.At, Link: -1, Queue: wire.QueueID(s.Queue), Queued: units.Bytes(s.Queued),
			Marks: s.Marks, Paused: s.Paused, Credits: m.set.Config.Buffer.Credits > 0,
			Rate: wire.Rate(s.Rate / 8000)}
		if s.Queue < 0 {
			k := 0
			if s.Back {
				k = 1
			}
			out.Link = at[s.Cable][k]
		}
		if out.Queue >= 0 || out.Link >= 0 {
			report(out)
		}
	})
}
