package packet

import (
	"github.com/simccl/simccl/packet/internal/rng"
	"github.com/simccl/simccl/packet/internal/route"
)

// buildTables makes tables of next hops.
func (e *engine) buildTables() {
	e.tables = e.routes.Tables()
	for i := range e.switches {
		if s := &e.switches[i]; e.cfg.Routing.Balance == PerFlow && s.flowlets == nil {
			s.flowlets = make([]route.Flowlet, route.Flowlets)
		}
	}
}

// leave returns the link by which a frame leaves a switch where paths are chosen
// or a watchdog runs; nil: the frame is dropped.
func (e *engine) leave(w *worker, s *switchNode, f *frame) (l *link) {
	if e.tables != nil {
		l = e.onward(w, s, f)
	} else {
		l = &e.links[e.hops[f.Route]]
	}
	if l == nil || l.Watch.Drops(f.Class) {
		w.Drops++
		e.links[s.in[f.Tag]].Repay(f, f.At)
		return nil
	}
	return l
}

// onward chooses the link by which a frame leaves a switch; nil: no path leads
// on.
func (e *engine) onward(w *worker, s *switchNode, f *frame) *link {
	key := e.key(f)
	among := e.tables.Next(s.node, key.Dst)
	switch {
	case len(among) == 0:
		return nil
	case len(among) == 1:
		return &e.links[among[0]]
	case f.Flags&flagAck != 0 || e.cfg.Routing.Balance == Hashed:
		return &e.links[among[key.Hash(s.node)%uint32(len(among))]]
	case e.cfg.Routing.Balance == PerPacket:
		return e.shortest(w, s, f, among)
	}
	l := &s.flowlets[f.Flow&(route.Flowlets-1)]
	if l.Begins(f.Flow, f.At, int64(e.cfg.Routing.Gap)) || e.links[l.Link].Down {
		l.Link = e.shortest(w, s, f, among).ID
	}
	return &e.links[l.Link]
}

// key is what switches hash of a frame.
func (e *engine) key(f *frame) route.Key {
	x := &e.flows[f.Flow]
	k := route.Key{Src: x.Src, Dst: x.Dst, SPort: e.result[f.Flow].SrcPort, DPort: x.DstPort}
	if f.Flags&flagAck != 0 {
		return k.Back()
	}
	k.SPort += uint16(f.Psn % uint32(e.paths))
	return k
}

// shortest returns the link with the least to send before the frame, one drawn
// of several. Cables that are down are known at their ends.
func (e *engine) shortest(w *worker, s *switchNode, f *frame, among []int32) *link {
	best := &e.links[among[0]]
	s.draws++
	draw := rng.NewLeast(rng.Hash(e.cfg.Seed, s.node, rng.Path, s.draws))
	for _, id := range among {
		l := &e.links[id]
		if !s.Exact { // in closed form ports are behind
			for l.Waiting&^l.Paused != 0 && l.Free < f.At {
				e.completed(w, l)
				e.dequeue(w, s, l, l.Free)
			}
		}
		if l.Down {
			continue
		}
		d := l.Backlog(f.At)
		if q := e.cfg.Routing.Quantum; q > 0 {
			d /= q
		}
		if draw.Takes(d) {
			best = l
		}
	}
	return best
}

// detour takes a cable out of all routes from now on, as the HPCC simulator does
// (scratch/third.cc, TakeDownLink): what waits for it is dropped and stays in the
// accounts of the shared memory, and frames on their way are routed anew at the
// next switch.
func (e *engine) detour(cable int, at int64) {
	for k := range 2 {
		e.workers[0].Drops += e.links[2*cable+k].TakeDown(e.links, at)
	}
	r := e.routes
	r.Remove(cable)
	for i := range e.flows {
		if f := &e.flows[i]; !e.result[i].Done && !r.Both(f.Src, f.Dst) {
			e.broken = wrong("flow %d: no path between nodes %d and %d once cable %d is down", i, f.Src,
				f.Dst, cable)
			return
		}
	}
	if n := r.Longest(); n > e.slot { // longer routes of flows that are to begin
		e.slot, e.base = n, len(e.hops)
		e.hops = append(e.hops, make([]int32, (1+e.paths)*n*len(e.flows))...)
		e.outs = append(e.outs, make([]uint16, len(e.hops)-len(e.outs))...)
	}
	e.buildTables()
	e.egressPerFrame = true
}
