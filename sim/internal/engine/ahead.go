package engine

import "github.com/simccl/simccl/sim/internal/host"

// Groups and connections of a large run do not fit a cache near the processor, and in
// lockstep each one is used again only after all others. So memory is prefetched for events that come
// soon: the group groupsAhead events before its own, then, as the group names them, its connections.

const (
	groupsAhead = 8
	connsAhead  = 4
)

// comes prefetches groups and connections of the next events of this instant.
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

// connsOf prefetches the connections of a group's op.
func (e *Engine) connsOf(g *Group) {
	for _, id := range g.Op.From {
		fetchConn(&e.Conns[id])
	}
	for _, id := range g.Op.To {
		fetchConn(&e.Conns[id])
	}
}
