package packet

import (
	"github.com/simccl/simccl/packet/internal/rng"
	"github.com/simccl/simccl/packet/internal/route"
)

// buildTables builds the tables of next hops by destination that adaptive routing chooses from.
func (e *engine) buildTables() {
	e.tables = e.routes.Tables()
	for i := range e.switches {
		if s := &e.switches[i]; e.cfg.Routing.Balance == PerFlow && s.flowlets == nil {
			s.flowlets = make([]route.Flowlet, route.Flowlets)
		}
	}
}

// egressOf returns the link by which a frame leaves a switch whose egress ports are chosen per frame, or nil:
// it is dropped, as no path exists or the watchdog drops its class.
func (e *engine) egressOf(w *worker, s *switchNode, f *frame) (l *link) {
	if e.tables != nil {
		l = e.chooseEgress(w, s, f)
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

// chooseEgress chooses among the next hops of equal cost: by hash for acknowledgements and ECMP, by queue
// length for each frame (PerPacket) or each flowlet (PerFlow). It returns nil without a next hop.
func (e *engine) chooseEgress(w *worker, s *switchNode, f *frame) *link {
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

// key returns the header fields that switches hash. A flow over several paths varies its source port by
// frame.
func (e *engine) key(f *frame) route.Key {
	x := &e.flows[f.Flow]
	k := route.Key{Src: x.Src, Dst: x.Dst, SPort: e.result[f.Flow].SrcPort, DPort: x.DstPort}
	if f.Flags&flagAck != 0 {
		return k.Back()
	}
	k.SPort += uint16(f.Psn % uint32(e.paths))
	return k
}

// shortest returns the link with the fewest bytes to send, in steps of Routing.Quantum; of equal ones one is
// drawn. Links that are down are left out, as their switch knows.
func (e *engine) shortest(w *worker, s *switchNode, f *frame, among []int32) *link {
	best := &e.links[among[0]]
	s.draws++
	draw := rng.NewLeast(rng.Hash(e.cfg.Seed, s.node, rng.Path, s.draws))
	for _, id := range among {
		l := &e.links[id]
		if !s.Exact { // in closed form ports are behind
			for l.Waiting&^l.Paused != 0 && l.Free < f.At {
				e.noteCompletion(w, l)
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

// rerouteAround removes a failed cable from all routes, as the HPCC simulator does (scratch/third.cc,
// TakeDownLink): queued frames are dropped but stay in the accounts of the shared buffer, frames in flight
// take a new route at the next switch.
func (e *engine) rerouteAround(cable int, at int64) {
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
