package packet

import "github.com/simccl/simccl/sim/wire/packet/spec"

// cut returns where a window must end so that it contains no change, after it
// has made those that are due.
func (e *engine) cut(now, end int64) int64 {
	for len(e.changes) > 0 && e.changes[0].At <= now {
		e.apply(e.changes[0])
		e.changes = e.changes[1:]
	}
	if len(e.changes) > 0 {
		end = min(end, e.changes[0].At)
	}
	return end
}

// apply begins or ends a fault.
func (e *engine) apply(c spec.Change) {
	f := &e.cfg.Faults[c.Fault]
	cable := &e.net.Cables[f.Cable]
	for k := range 2 {
		l := &e.links[2*f.Cable+k]
		l.rate, l.loss = cable.Rate, cable.Loss
		if c.Begin {
			if f.Slow > 0 {
				l.rate = int64(f.Slow * float64(cable.Rate))
			}
			l.loss = 1 - (1-cable.Loss)*(1-f.Loss)
			if f.Down {
				l.loss = 1
			}
		}
		l.lossy = l.loss > 0
		l.sizes = [2]uint16{}
	}
	if f.Down {
		for k := range 2 {
			e.links[2*f.Cable+k].down = c.Begin || f.Reroute
		}
		if f.Reroute && c.Begin {
			e.detour(f.Cable)
		}
	}
	if f.Storm {
		l := &e.links[2*f.Cable]
		if f.Back {
			l = &e.links[2*f.Cable+1]
		}
		if l.storm = c.Begin; c.Begin {
			l.port.stormed = c.At
		} else {
			l.port.paused += c.At - l.port.stormed
		}
		l.hold()
		l.free = max(l.free, c.At) // what waited starts now
		if at := e.hostOf[l.from]; at >= 0 && !c.Begin {
			e.hosts[at].wake, e.acts[at] = c.At, min(e.acts[at], c.At)
		}
	}
}
