package uec

import (
	"github.com/simccl/simccl/packet/internal/arrivals"
)

// Windows of two delays take turns (docs/adr/0027): hosts and spines are simulated over [t, t+2L),
// then leaves over [t+L, t+3L). Each cable joins a leaf to a host or a spine and has a delay of at
// least L, so all that a side receives in its window was sent before the window of the other ended.

// mayTurn reports whether results do not depend on where windows end, but for what still moves when
// the last flow ends. Flows that several others hold up, or that start at a time of their own after
// another ended, are queued at their host in the order of windows. In three tiers frames
// draw tables of spines all the time.
func (e *engine) mayTurn() bool {
	if e.net.Pods > 0 || 2*e.look > arrivals.Longest {
		return false
	}
	for i := range e.flows {
		if e.missing[i] > 1 || e.missing[i] == 1 && e.flows[i].Start > 0 {
			return false
		}
	}
	return true
}

// untold is how many leaves have frames for spines. The first such frame of each draws its table,
// in the order of windows of one delay: these go on until all tables are there.
func (e *engine) untold() (n int) {
	some := make([]bool, e.net.Leaves)
	for i := range e.flows {
		to, from := e.goals[2*i], e.goals[2*i+1]
		for _, leaf := range [2]uint16{to.leaf, from.leaf} {
			if to.leaf != from.leaf && !some[leaf] {
				some[leaf] = true
				n++
			}
		}
	}
	return n
}

// turns simulates from a time on to the end of the last flow, side by side. It reports false where
// the end of a window would show in what is counted.
func (e *engine) turns(now int64) (bool, error) {
	h := e.net.Hosts()
	e.switches(h, h+e.net.Leaves, now+e.look)
	e.span, e.lead = 2*e.look, e.look
	for e.live > 0 && now != never && e.res.Drops == 0 {
		if err := e.poll(); err != nil {
			return false, err
		}
		now = e.both(now)
	}
	if e.live > 0 || e.res.Drops > 0 {
		return e.res.Drops == 0, nil
	}
	e.both(now) // a window of one delay would not have ended later
	return !e.stirs(), nil
}

// both lets the two sides take their turns from a time on, and returns when the next begin.
func (e *engine) both(now int64) int64 {
	h, end := e.net.Hosts(), now+e.span
	e.upTo = end
	busy := e.runHosts(end)
	busy += e.switches(h+e.net.Leaves, len(e.nodes), end)
	busy += e.switches(h, h+e.net.Leaves, end+e.look)
	if busy > 0 {
		return end
	}
	return e.nextTurn(end)
}

// nextTurn is next where leaves are a delay ahead.
func (e *engine) nextTurn(now int64) int64 {
	t := never
	for i := range e.links {
		due, free := e.ports[i].due, e.ports[i].free
		if e.isLeaf(e.links[i].from) {
			due -= e.look
			free -= e.look
		}
		if t = min(t, due); free >= now {
			t = min(t, free)
		}
	}
	for i := range e.hosts {
		t = min(t, e.hosts[i].nextEvent())
	}
	if t >= never-e.look {
		return never
	}
	return max(t, now)
}

func (e *engine) isLeaf(node int32) bool {
	at := int(node) - e.net.Hosts()
	return at >= 0 && at < e.net.Leaves
}

// stirs reports whether more than acknowledgements moved when the last flow ended: packets sent
// again without need, what they left of them when trimmed, or their NACKs. How much of that is
// counted depends on where the last window ends.
func (e *engine) stirs() bool {
	last := int64(0)
	for i := range e.res.Flows {
		last = max(last, int64(e.res.Flows[i].End))
	}
	if e.res.Drops > 0 || e.again >= last {
		return true
	}
	for i := range e.links {
		if l := &e.links[i]; l.low.holds(flagAck) || l.hi.holds(flagAck) {
			return true
		}
	}
	for i := range e.hosts {
		if e.hosts[i].control.holds(flagAck) {
			return true
		}
	}
	return false
}

// holds reports whether a ring has a frame without a flag.
func (q *fifo) holds(flag uint64) bool {
	for i := q.head; i != q.tail; i++ {
		if !q.at(i).has(flag) {
			return true
		}
	}
	return false
}
