package packet

import "slices"

// change is a moment at which faults begin or end.
type change struct {
	at    int64
	fault int
	begin bool
}

// plan puts the beginnings and ends of faults in order.
func (e *engine) plan() {
	for i, f := range e.cfg.Faults {
		e.changes = append(e.changes, change{int64(f.From), i, true})
		if f.To > 0 {
			e.changes = append(e.changes, change{int64(f.To), i, false})
		}
	}
	slices.SortStableFunc(e.changes, func(a, b change) int { return int(a.at - b.at) })
}

// cut returns where a window must end so that it contains no change, after it
// has made those that are due.
func (e *engine) cut(now, end int64) int64 {
	for len(e.changes) > 0 && e.changes[0].at <= now {
		e.apply(e.changes[0])
		e.changes = e.changes[1:]
	}
	if len(e.changes) > 0 {
		end = min(end, e.changes[0].at)
	}
	return end
}

// apply begins or ends a fault.
func (e *engine) apply(c change) {
	f := &e.cfg.Faults[c.fault]
	cable := &e.net.Cables[f.Cable]
	for k := range 2 {
		l := &e.links[2*f.Cable+k]
		l.rate, l.loss = cable.Rate, cable.Loss
		if c.begin {
			if f.Slow > 0 {
				l.rate = int64(f.Slow * float64(cable.Rate))
			}
			l.loss = 1 - (1-cable.Loss)*(1-f.Loss)
			if f.Down {
				l.loss = 1
			}
		}
		l.lossy = l.loss > 0
		l.tx = [2]duration{}
	}
	if f.Down {
		for k := range 2 {
			e.links[2*f.Cable+k].down = c.begin || f.Reroute
		}
		if f.Reroute && c.begin {
			e.detour(f.Cable)
		}
	}
	if f.Storm {
		l := &e.links[2*f.Cable]
		if f.Back {
			l = &e.links[2*f.Cable+1]
		}
		if l.storm = c.begin; c.begin {
			l.port.stormed = c.at
		} else {
			l.port.paused += c.at - l.port.stormed
		}
		l.hold()
		l.free = max(l.free, c.at) // what waited starts now
		if at := e.hostOf[l.from]; at >= 0 && !c.begin {
			e.hosts[at].wake, e.acts[at] = c.at, min(e.acts[at], c.at)
		}
	}
}
