package engine

import "github.com/simccl/simccl/sim/internal/host"

// Groups and connections of a large run do not fit a cache near the processor, and in
// lockstep each one comes up when all others have: what an event needs is asked for some
// events before, the group first, which says what else.

const (
	groupsAhead = 8
	connsAhead  = 4
)

// comes asks for what the events need that come soon in this instant.
func (e *Engine) comes() {
	if a := e.Queue.Ahead(groupsAhead); a != nil && a.Kind() < host.Kinds {
		fetchGroup(&e.Groups[a.ID])
	}
	a := e.Queue.Ahead(connsAhead)
	if a == nil || a.Kind() >= host.Kinds {
		return
	}
	switch g := &e.Groups[a.ID]; {
	case a.Kind() == evJoin:
	case a.Kind() == evStart && g.state == idle:
		fetchStream(g)
		fallthrough
	default:
		e.connsOf(g)
	}
}

// connsOf asks for the connections of a group.
func (e *Engine) connsOf(g *Group) {
	for _, id := range g.Op.From {
		fetchConn(&e.Conns[id])
	}
	for _, id := range g.Op.To {
		fetchConn(&e.Conns[id])
	}
}
