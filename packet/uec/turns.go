package uec

import (
	"github.com/simccl/simccl/packet/internal/arrivals"
)

// Windows of two delays take turns (docs/adr/0027): hosts and spines are simulated over [t, t+2L), then
// leaves over [t+L, t+3L). Each cable joins a leaf to a host or a spine and has a delay of at least L, so all
// frames that a side receives in its window were sent before the other side's window ended.

// mayTurn reports whether windows of two delays give the same results. They do not where a flow waits for
// several others, or for one and a start time of its own (such flows queue at their host in the order of
// windows), nor in three tiers, where frames keep drawing spines' tables.
func (e *engine) mayTurn() bool {
	if e.net.Pods > 0 || 2*e.lookahead > arrivals.Longest {
		return false
	}
	for i := range e.flows {
		if e.missing[i] > 1 || e.missing[i] == 1 && e.flows[i].Start > 0 {
			return false
		}
	}
	return true
}

// undrawnTables counts the leaves that will draw a table of uplinks: the first frame to a spine draws it, in
// the order of windows of one delay, so windows of one delay are used until all tables are drawn.
func (e *engine) undrawnTables() (n int) {
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

// runTurns simulates from now to the end of the last flow in windows of two delays. It returns false if a
// result depends on where windows end.
func (e *engine) runTurns(now int64) (bool, error) {
	h := e.net.Hosts()
	e.switches(h, h+e.net.Leaves, now+e.lookahead)
	e.span, e.lead = 2*e.lookahead, e.lookahead
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
	return !e.stillMoving(), nil
}

// both simulates a window of hosts and spines, then one of leaves, and returns the start of the next.
func (e *engine) both(now int64) int64 {
	h, end := e.net.Hosts(), now+e.span
	e.upTo = end
	busy := e.runHosts(end)
	busy += e.switches(h+e.net.Leaves, len(e.nodes), end)
	busy += e.switches(h, h+e.net.Leaves, end+e.lookahead)
	if busy > 0 {
		return end
	}
	return e.nextInTurns(end)
}

// nextInTurns is next for windows in which leaves are one delay ahead.
func (e *engine) nextInTurns(now int64) int64 {
	t := never
	for i := range e.links {
		due, free := e.ports[i].due, e.ports[i].free
		if e.isLeaf(e.links[i].from) {
			due -= e.lookahead
			free -= e.lookahead
		}
		if t = min(t, due); free >= now {
			t = min(t, free)
		}
	}
	for i := range e.hosts {
		t = min(t, e.hosts[i].nextEvent())
	}
	if t >= never-e.lookahead {
		return never
	}
	return max(t, now)
}

func (e *engine) isLeaf(node int32) bool {
	at := int(node) - e.net.Hosts()
	return at >= 0 && at < e.net.Leaves
}

// stillMoving reports whether frames other than acknowledgements were in flight when the last flow ended
// (needless retransmissions, their trimmed headers or NACKs): how many of them are counted depends on where
// the last window ends.
func (e *engine) stillMoving() bool {
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

// holds reports whether any frame of the ring lacks a flag.
func (q *fifo) holds(flag uint64) bool {
	for i := q.head; i != q.tail; i++ {
		if !q.at(i).has(flag) {
			return true
		}
	}
	return false
}
