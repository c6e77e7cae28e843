package packet

import (
	"github.com/simccl/simccl/sim/wire/packet/internal/regroup"
	"github.com/simccl/simccl/sim/wire/packet/internal/route"
	"github.com/simccl/simccl/sim/wire/packet/internal/streams"
)

// flowlet is the path of a flow since it was last silent.
type flowlet struct {
	at   int64
	flow int32
	link int32
}

// flowlets is how many of them a switch remembers: a power of two.
const flowlets = 1 << 12

// buildTables makes tables of next hops.
func (e *engine) buildTables() {
	e.tables = e.routes.Tables()
	for i := range e.switches {
		if s := &e.switches[i]; e.cfg.Routing.Balance == PerFlow && s.flowlets == nil {
			s.flowlets = make([]flowlet, flowlets)
		}
	}
}

// leave returns the link by which a frame leaves a switch where paths are chosen
// or a watchdog runs; nil: the frame is dropped.
func (e *engine) leave(w *worker, s *swtch, f *frame) (l *link) {
	if e.tables != nil {
		l = e.onward(w, s, f)
	} else {
		l = &e.links[e.hops[f.Route]]
	}
	if l == nil || l.Watch.Drops(f.Class) {
		w.Drops++
		return nil
	}
	return l
}

// onward chooses the link by which a frame leaves a switch; nil: no path leads
// on.
func (e *engine) onward(w *worker, s *swtch, f *frame) *link {
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
	l := &s.flowlets[f.Flow&(flowlets-1)]
	if l.flow != f.Flow+1 || f.At-l.at >= int64(e.cfg.Routing.Gap) || e.links[l.link].Down {
		l.link = e.shortest(w, s, f, among).ID
	}
	l.flow, l.at = f.Flow+1, f.At
	return &e.links[l.link]
}

// key is what switches hash of a frame.
func (e *engine) key(f *frame) route.Key {
	flow := &e.flows[f.Flow]
	k := route.Key{Src: flow.Src, Dst: flow.Dst, SPort: e.result[f.Flow].SrcPort, DPort: flow.DstPort}
	switch {
	case f.Flags&flagAck != 0:
		k.Src, k.Dst, k.SPort, k.DPort = k.Dst, k.Src, k.DPort, k.SPort
	case e.paths > 1:
		k.SPort += uint16(f.Psn % uint32(e.paths))
	}
	return k
}

// shortest returns the link with the least to send before the frame, one drawn
// of several. Cables that are down are known at their ends.
func (e *engine) shortest(w *worker, s *swtch, f *frame, among []int32) *link {
	best := &e.links[among[0]]
	s.draws++
	draw := streams.NewLeast(streams.Hash(e.cfg.Seed, s.node, streams.Path, s.draws))
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
		e.workers[0].Drops += e.links[2*cable+k].TakeDown()
	}
	r := e.routes
	r.Remove(cable)
	for i := range e.flows {
		if e.result[i].Done {
			continue
		}
		f := &e.flows[i]
		for _, p := range [2][2]int32{{f.Dst, f.Src}, {f.Src, f.Dst}} {
			if !r.Towards(p[0], p[1]) {
				e.broken = wrong("flow %d: no path from node %d to node %d once cable %d is down", i, p[1], p[0], cable)
				return
			}
		}
	}
	if r.Longest() > e.slot {
		e.slots(r.Longest())
	}
	e.buildTables()
	e.picky, e.astray = true, true
	e.regroup(at)
}

// regroup lets queue pairs take turns anew, in the order that the peer has then (RdmaHw's RedistributeQp).
func (e *engine) regroup(at int64) {
	pairs := make([][]regroup.Pair, len(e.hosts))
	for i := range e.flows {
		if f := &e.flows[i]; e.snd[i].Frames > 0 {
			h := e.hostOf[f.Src]
			pairs[h] = append(pairs[h], regroup.Of(int32(i), f, &e.result[i]))
		}
	}
	for h := range pairs {
		e.hosts[h].Regroup(regroup.Order(pairs[h], at), e.snd)
	}
}

// slots makes room for longer routes of flows that are to begin.
func (e *engine) slots(longest int) {
	e.slot = longest
	e.hops = append(e.hops, make([]int32, (1+e.paths)*longest*len(e.flows))...)
	e.outs = append(e.outs, make([]uint16, len(e.hops)-len(e.outs))...)
	e.base = len(e.hops) - (1+e.paths)*longest*len(e.flows)
}
