package fluid

import (
	"github.com/simccl/simccl/sim/internal/event"
	"github.com/simccl/simccl/sim/wire"
)

var _ wire.Parted = (*Fluid)(nil)

// splitting is the state of Split: the Fluid that is divided and the new numbers of its bundles and flows.
type splitting struct {
	*Fluid
	part    []int32       // by route
	bundles []int32       // new numbers by old, in the same order within a part
	flows   []wire.FlowID // new numbers by old; -1: ended
}

// Split implements wire.Parted. Parts share the arrays of links and routes, each of which only one part uses;
// flows and bundles belong to a part. No part's rates depend on another's, as levels propagate along
// routes, and bundles and flows keep their order within a part: results are those of the undivided model.
func (f *Fluid) Split(n int, part []int32) ([]wire.Model, []wire.FlowID) {
	f.refill()
	models := make([]wire.Model, n)
	for i := range models {
		p := &Fluid{Layout: f.Layout, links: f.links, routes: f.routes, keys: f.keys, seq: f.seq, now: f.now}
		p.ends.Continue(&f.ends)
		f.parts = append(f.parts, p)
		models[i] = p
	}
	s := &splitting{Fluid: f, part: part, bundles: make([]int32, len(f.bundles)),
		flows: make([]wire.FlowID, len(f.flows))}
	s.dealBundles()
	s.dealFlows()
	s.renumber()
	s.dealEnds()
	return models, s.flows
}

// dealBundles moves bundles and their shares to their parts.
func (s *splitting) dealBundles() {
	for bi := range s.Fluid.bundles {
		b := s.Fluid.bundles[bi]
		p := s.parts[s.part[b.route]]
		s.bundles[bi] = int32(len(p.bundles))
		p.bundles, p.shares = append(p.bundles, b), append(p.shares, s.shares[bi])
	}
}

// dealFlows moves the flows in progress to their parts.
func (s *splitting) dealFlows() {
	for id := range s.Fluid.flows {
		fl := s.Fluid.flows[id]
		if s.flows[id] = -1; fl.own < 0 {
			continue
		}
		p := s.parts[s.part[fl.route]]
		fl.own = s.bundles[fl.own]
		if fl.in >= 0 {
			fl.in = s.bundles[fl.in]
		}
		s.flows[id] = wire.FlowID(len(p.flows))
		p.flows = append(p.flows, fl)
	}
}

// renumber replaces the numbers of bundles and flows in links, routes and bundles.
func (s *splitting) renumber() {
	for li := range s.links {
		for i, a := range s.links[li].active {
			if a.bundle >= 0 {
				s.links[li].active[i].bundle = s.bundles[a.bundle]
			}
		}
	}
	for ri := range s.routes {
		rt := &s.routes[ri]
		if int(rt.host) < len(s.bundles) && s.Fluid.bundles[rt.host].route == int32(ri) {
			rt.host = s.bundles[rt.host]
		} else {
			rt.host = 0 // stale: the bundle of another route; place checks that
		}
		for i := range s.keys[ri] {
			s.keys[ri][i].bundle = s.bundles[s.keys[ri][i].bundle]
		}
		if len(s.keys[ri]) > 0 {
			rt.last.bundle = s.bundles[rt.last.bundle]
		}
		for i, id := range rt.alone {
			rt.alone[i] = s.flows[id]
		}
	}
	for _, p := range s.parts {
		for bi := range p.bundles {
			for i := range p.bundles[bi].heap {
				e := &p.bundles[bi].heap[i]
				e.flow = s.flows[e.flow]
			}
			p.bundles[bi].pos = -1
		}
	}
}

// dealEnds moves scheduled completions to their parts.
func (s *splitting) dealEnds() {
	for _, d := range s.order {
		p := s.parts[s.part[s.Fluid.bundles[d.bundle].route]]
		d.bundle = s.bundles[d.bundle]
		if d.flow >= 0 {
			d.flow = s.flows[d.flow]
		}
		p.order = append(p.order, due{})
		p.orderPlace(len(p.order)-1, d)
	}
	for _, e := range s.ends.AppendAll(nil) {
		if s.isTimed(&e) {
			p := s.parts[s.part[s.Fluid.flows[e.ID].route]]
			e.ID = int32(s.flows[e.ID])
			p.ends.Put(&e)
		}
	}
	s.order, s.ends, s.stale = nil, event.Queue{}, 0
	s.Fluid.bundles, s.Fluid.shares, s.Fluid.flows, s.free = nil, nil, nil, nil
}
