package packet

import (
	"slices"

	"github.com/simccl/simccl/units"
)

// Fault is what is wrong with a cable for a time, in both directions. A cable
// that flaps has several.
type Fault struct {
	Cable    int
	From, To units.Time // To 0: to the end
	Down     bool       // what arrives is lost
	Slow     float64    // share of the rate that is left; 0: all
	Loss     float64    // probability that a frame is lost on arrival
	// Storm: the node at B pauses its neighbour A all the time, in every priority.
	Storm bool
	Back  bool // Storm the other way: A pauses B
	// Reroute: with Down, routes avoid the cable from then on, for ever.
	Reroute bool
}

// change is a moment at which faults begin or end.
type change struct {
	at    int64
	fault int
	begin bool
}

func (f *Fault) check(n *Network, i int) error {
	switch {
	case f.Cable < 0 || f.Cable >= len(n.Cables):
		return wrong("fault %d: cable %d: there are cables 0 to %d", i, f.Cable, len(n.Cables)-1)
	case f.From < 0 || f.To != 0 && f.To <= f.From || f.To > maxTime:
		return wrong("fault %d: from %v to %v: it must end after it begins", i, f.From, f.To)
	case !(f.Slow >= 0 && f.Slow <= 1) || !(f.Loss >= 0 && f.Loss <= 1):
		return wrong("fault %d: a rate of %g and a loss of %g: write shares from 0 to 1", i, f.Slow, f.Loss)
	case f.Slow > 0 && f.Slow*float64(n.Cables[f.Cable].Rate) < 1e6:
		return wrong("fault %d: %g of %d bit/s is below 1 Mb/s", i, f.Slow, n.Cables[f.Cable].Rate)
	}
	return nil
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
			e.hosts[at].wake = c.at
		}
	}
}
