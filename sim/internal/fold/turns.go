package fold

import (
	"github.com/simccl/simccl/connect"
	"github.com/simccl/simccl/plan"
	"github.com/simccl/simccl/sim/internal/engine"
	"github.com/simccl/simccl/sim/wire"
	"github.com/simccl/simccl/units"
)

// manyTurns is the number of a node's connections from which the scan of sends
// and receives takes the schedule as it is known to be: what one rank sends to
// another so many groups and places away, all do. Below, it compares the programs.
const manyTurns = 1 << 14

// turns walks over the traffic of the first node without making its programs: that
// of the connections laid out, and where a rank remains, what each other rank of
// the node sends in place of it. Nodes are equal, so equal routes between ranks of
// equal places cross equal links.
type turns struct {
	s     *scan
	known map[turnKey]turned
	model []turned // by connection of the engine
	cur   plan.Cursor
	op    plan.Op
}

// turnKey is what decides which links a connection crosses.
type turnKey struct {
	src, dst int32 // places in their nodes
	far      bool  // on different nodes
	route    connect.Route
}

// turned is what a connection crosses, as ranges of scan.uses.
type turned struct {
	stores, message [2]int32
	rate            wire.Rate
	later           units.Time
	net             bool
}

// turns scans a quotient by rotation that has many connections.
func (s *scan) turns() error {
	t := &turns{s: s, known: map[turnKey]turned{}, model: make([]turned, len(s.e.Conns))}
	per, step := int32(1), int32(1)
	if s.q.within {
		per, step = int32(len(s.plan.Comm.NodeRanks[0])), s.q.step
	}
	n := len(s.e.Conns) * int(per/step)
	s.flows, s.byThread = make([]flow, 0, 2*n), make([]served, 0, 2*n)
	for by := int32(0); by < per; by += step {
		if err := s.e.Poll(); err != nil {
			return err
		}
		for c := range s.q.model {
			pc := s.q.model[c]
			if by > 0 {
				pc.Src += by
				pc.Dst += by
				if pc.Dst%per < by {
					pc.Dst -= per
				}
				pc.Route = s.plan.Comm.RouteOf(pc.Src, pc.Dst, int(pc.Channel), pc.Kind)
			}
			if err := t.add(int32(c), &pc, by == 0); err != nil {
				return err
			}
		}
	}
	return nil
}

// add notes a connection's traffic.
func (t *turns) add(c int32, pc *plan.Conn, rep bool) error {
	s := t.s
	x, err := t.of(pc)
	if err != nil {
		return err
	}
	if rep {
		t.model[c] = x
	}
	m, own := &s.q.model[c].Route, &t.model[c]
	s.holds = s.holds && pc.Route.Transport == m.Transport && pc.Route.SrcGDR == m.SrcGDR &&
		pc.Route.DstGDR == m.DstGDR && pc.Route.Flush == m.Flush &&
		x.rate == own.rate && x.later == own.later &&
		s.w.Reads(pc) == s.e.Conns[c].Read
	s.noteUses(c, x.stores, rep)
	if engine.Staged(pc) {
		s.w.Stage(pc, t.inTransit(c))
	}
	if !x.net {
		return nil
	}
	kind := c + int32(len(s.e.Conns))
	s.noteUses(kind, x.message, rep)
	for role, thread := range [2]int32{pc.Route.SrcProxy, pc.Route.DstProxy} {
		s.byThread = append(s.byThread, served{threadKind{kind, int32(role), thread}, pc.Channel, pc.ID})
	}
	return nil
}

// inTransit is how many bytes a connection of the engine may hold, as those that it
// represents.
func (t *turns) inTransit(c int32) units.Bytes {
	g := &t.s.e.Groups[t.s.e.Conns[c].Snd]
	t.s.plan.OpenInto(&t.cur, &g.Program)
	if !t.cur.Next(&t.op) {
		return 0
	}
	return g.InTransit(&t.op)
}

// of returns the links that a connection crosses, found once for each turnKey.
func (t *turns) of(pc *plan.Conn) (turned, error) {
	s, c := t.s, t.s.plan.Comm
	key := turnKey{c.LocalRank[pc.Src], c.LocalRank[pc.Dst], c.NodeOf[pc.Src] != c.NodeOf[pc.Dst], pc.Route}
	if r := &key.route; r.Transport == connect.NET {
		r.SrcProxy, r.DstProxy = c.LocalRank[r.SrcProxy], c.LocalRank[r.DstProxy]
	}
	if x, ok := t.known[key]; ok {
		return x, nil
	}
	var x turned
	s.w.Uses = s.w.Uses[:0]
	if err := s.w.Stores(pc); err != nil {
		return x, err
	}
	x.stores = s.keepUses()
	if x.net = pc.Route.Transport == connect.NET; x.net {
		var err error
		if x.rate, err = s.nw.PortRate(c.NodeOf[pc.Src], pc.Route.SrcNet); err != nil {
			return x, err
		}
		x.later = s.nw.Later(pc)
		s.w.Uses = s.w.Uses[:0]
		if err := s.nw.Gather(pc); err != nil {
			return x, err
		}
		if err := s.nw.Cross(pc, x.rate); err != nil {
			return x, err
		}
		x.message = s.keepUses()
	}
	t.known[key] = x
	return x, nil
}

// keepUses keeps the gathered uses and returns where.
func (s *scan) keepUses() [2]int32 {
	from := int32(len(s.uses))
	s.uses = append(s.uses, s.w.Uses...)
	return [2]int32{from, int32(len(s.uses))}
}
