package host

import (
	"math"

	"github.com/simccl/simccl/sim/internal/event"
	"github.com/simccl/simccl/sim/wire"
	"github.com/simccl/simccl/units"
)

// A run may be handled in parts, side by side, each with a queue of its own: the proxy
// threads of some nodes, or some of the messages between them. What a part has for others it
// writes into letters, which are delivered when all parts have come to the same time. A
// message reaches the network in the instant in which it is posted; all else takes at
// least the latency of a connection (Lookahead).
//
// What a connection has is its sender's (pending, posted, sent, acked, allowed, srcFree), its
// receiver's (arrived, dstFree) or the network's (wired, begun, landed, rest, its queue
// pairs): no part writes what is another's.

// CrossMessage is an event that one partition of a run schedules in another.
type CrossMessage struct {
	At          units.Time
	Conn, stage int32
}

// send has a stage of a connection begin at a time, in whichever part of the run.
func (n *Network) send(at units.Time, id, stage int32) {
	if n.apart {
		n.CrossMessages = append(n.CrossMessages, CrossMessage{max(at, n.queue.Now), id, stage})
		return
	}
	n.pushNamed(at, id, stage)
}

// ToNetwork reports whether a letter is for the part that has its connection's messages.
func (l *CrossMessage) ToNetwork() bool { return l.stage == stageBegin }

// To is the rank in whose part the end of a connection is that a letter is for.
func (n *Network) To(l *CrossMessage) int32 {
	if c := &n.Conns[l.Conn]; l.stage == stageArrive {
		return c.Dst
	} else {
		return c.Src
	}
}

// Owner says who handles one of the network's events: the part of a rank, or that of a
// connection's messages, where rank is -1.
func (n *Network) Owner(ev *event.Event) (rank, conn int32) {
	switch {
	case ev.Kind() == evRound:
		return ev.ID, -1
	case ev.Kind() == evRepeat:
		return -1, n.Pairs[ev.ID].Conn
	case ev.Arg == stageNext || ev.Arg == stageBegin:
		return -1, ev.ID
	}
	switch c := &n.Conns[ev.ID]; ev.Arg {
	case stageArrive, stageFree, stageArrive + polled, stageFree + polled:
		return c.Dst, -1
	default:
		return c.Src, -1
	}
}

// Take takes a letter, before anything is handled that is not earlier than its time.
func (n *Network) Take(l *CrossMessage) {
	if l.stage == stageFree {
		n.allow(l.Conn, l.At)
		return
	}
	n.queue.PushNamed(l.At, event.Done, evStep, l.Conn, l.stage)
}

// Taken is how many events a part has handled that are none of a whole run.
func (n *Network) Taken() int64 { return n.taken }

// Lookahead is how long what nodes and the network have for each other takes at least; 0
// where they cannot be separated: over sockets a sender knows at once of the receiver's
// room, a network that reduces waits for all nodes, what is lost depends on what its
// sender has posted since.
func (n *Network) Lookahead() units.Time {
	if n.frames != nil || len(n.Rails) > 0 || len(n.Conns) == 0 {
		return 0
	}
	least := units.Time(math.MaxInt64)
	for i := range n.Conns {
		c := &n.Conns[i]
		if c.batch >= 0 || c.tcp.on {
			return 0
		}
		least = min(least, n.Behind(c), c.msg.ack(c), c.msg.offered(c, 0))
	}
	for i := range n.Pairs {
		if n.Pairs[i].again.loss > 0 {
			return 0
		}
	}
	return least
}

// Part returns a part of the network's run, which shares all else with the others.
func (n *Network) Part(q *event.Queue, m wire.Model, k Kernels) *Network {
	if n.proxy.ends == nil {
		n.countEnds()
	}
	p := *n
	p.queue, p.model, p.kernels, p.apart, p.waits = q, m, k, true, nil
	return &p
}

// Rejoin adds what a part has summed up.
func (n *Network) Rejoin(p *Network) {
	for r := range p.waits {
		for r >= len(n.waits) {
			n.waits = append(n.waits, integral{})
		}
		n.waits[r].grow(p.waits[r], 1)
	}
}
