package sim

import (
	"github.com/simccl/simccl/sim/internal/packets"
	"github.com/simccl/simccl/sim/wire"
	"github.com/simccl/simccl/units"
)

// frameView is the model of links as one operation of a Session sees it, where what
// hosts send each other goes frame by frame: cables and queue pairs are the session's.
type frameView struct {
	view
	m      wire.Messages
	cables map[wire.LinkID]wire.Cable
	wanted []wanted
	queues []wire.QueueID // of the session
}

// wanted is a queue pair that an operation declares.
type wanted struct {
	route wire.RouteID
	key   wire.QueueKey
}

var _ wire.Messages = (*frameView)(nil)

// viewOf makes an operation's view.
func (s *Session) viewOf(op *operation) wire.Model {
	m, ok := s.model.(wire.Messages)
	if !ok {
		return &view{s: s, op: op}
	}
	return &frameView{view: view{s: s, op: op}, m: m, cables: map[wire.LinkID]wire.Cable{}}
}

// Hop implements wire.Messages.
func (v *frameView) Hop() units.Time { return v.m.Hop() }

// Whole implements wire.Messages.
func (v *frameView) Whole() bool { return v.m.Whole() }

// Cable implements wire.Messages.
func (v *frameView) Cable(l wire.LinkID, c wire.Cable) { v.cables[l] = c }

// Queue implements wire.Messages: queue pairs of one plan go on from run to run.
func (v *frameView) Queue(r wire.RouteID, key wire.QueueKey) wire.QueueID {
	key.Comm = v.op.kind
	v.wanted = append(v.wanted, wanted{r, key})
	return wire.QueueID(len(v.wanted) - 1)
}

// Seal implements wire.Model.
func (v *frameView) Seal() {
	s := v.s
	for i := range v.full {
		id := wire.LinkID(i)
		c, ok := v.cables[id]
		if g := s.link(v.Name(id), v.full[id], true); ok && !s.cabled[g] && s.err == nil {
			s.cabled[g] = true
			v.m.Cable(g, c)
		}
	}
	v.view.Seal()
	for _, w := range v.wanted {
		q, ok := s.pairs[w.key]
		if !ok {
			if s.sealed {
				s.fail(&ConfigError{"Packets", "a queue pair was not declared"})
				return
			}
			q = v.m.Queue(v.routes[w.route], w.key)
			s.pairs[w.key] = q
		}
		v.queues = append(v.queues, q)
	}
}

// Post implements wire.Messages.
func (v *frameView) Post(now units.Time, q wire.QueueID, bound wire.Rate, w wire.Work, local int32) {
	v.m.Post(now, v.queues[q], bound, w, v.s.token(v.op, local))
}

// Observe implements wire.Messages: nothing is reported.
func (v *frameView) Observe(func(wire.PortState)) {}

// Why implements wire.Messages.
func (v *frameView) Why() error { return v.m.Why() }

// Congestion implements wire.Messages; the session's links have it.
func (v *frameView) Congestion() []wire.Congestion { return nil }

// token is a new token of the session's model for an operation's own.
func (s *Session) token(op *operation, local int32) int32 {
	t := token{op, local}
	if n := len(s.free); n > 0 {
		at := s.free[n-1]
		s.free = s.free[:n-1]
		s.tokens[at] = t
		return at
	}
	s.tokens = append(s.tokens, t)
	return int32(len(s.tokens) - 1)
}

// attachPackets chooses the model of links by the first Config that is declared.
func (s *Session) attachPackets(cfg *Config) {
	if len(s.kinds) == 0 && cfg.Packets != nil {
		s.model, s.cabled, s.pairs = packets.New(*cfg.Packets), map[wire.LinkID]bool{},
			map[wire.QueueKey]wire.QueueID{}
	}
}

// PortState is that of the port where a link of a Session begins, or of a queue pair, since At.
type PortState struct {
	At      units.Time
	Link    int32
	Queue   int32 // of QueuePairs; -1: it is of a link
	Queued  units.Bytes
	Marks   int64 // frames marked so far
	Paused  bool
	Credits bool  // what Paused says is that it waits for credits of the other end
	Rate    int64 // of a queue pair, bytes a millisecond on the wire
}

// Observe, after Seal, requests a call where the state of a port or of a queue pair has
// changed, where what hosts send each other goes frame by frame. Times do not depend on it.
func (s *Session) Observe(report func(PortState)) {
	if m, ok := s.model.(wire.Messages); ok {
		m.Observe(func(x wire.PortState) {
			report(PortState{At: x.At, Link: int32(x.Link), Queue: int32(x.Queue), Queued: x.Queued,
				Marks: x.Marks, Paused: x.Paused, Credits: x.Credits, Rate: int64(x.Rate)})
		})
	}
}

// Link is the name of a link.
func (s *Session) Link(l int32) string { return s.model.Name(wire.LinkID(l)) }

// QueuePair is a queue pair of a Session.
type QueuePair struct {
	Plan     int32 // number of the declared plan
	Src, Dst int32 // ranks of the job
	Channel  int32
	Number   int32 // among those of its connection
}

// QueuePairs lists those whose messages go frame by frame, in the order of their numbers.
func (s *Session) QueuePairs() []QueuePair {
	out := make([]QueuePair, len(s.pairs))
	for key, id := range s.pairs { //lint:sorted each by itself
		kd := &s.kinds[key.Comm]
		c := kd.plan.Conn(key.Conn)
		out[id] = QueuePair{Plan: key.Comm, Src: kd.ranks[c.Src], Dst: kd.ranks[c.Dst], Channel: c.Channel,
			Number: key.Pair}
	}
	return out
}
