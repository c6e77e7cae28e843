package packet

import (
	"errors"
	"slices"

	"github.com/simccl/simccl/packet/internal/port"
	"github.com/simccl/simccl/packet/spec"
)

// errOrder reports whether the order of events of one instant has come to count: the run
// begins anew with it.
var errOrder = errors.New("packet: the order of events counts")

// errAgain reports whether frames are sent again, or that the run is to stop before all flows end: it begins
// anew with windows that are the same for all nodes, as what is in progress then depends on where they end.
var errAgain = errors.New("packet: where windows end counts")

// mustOrder reports whether frames are to be marked in a run without the order of events that is
// asked for, or will be: were the deepest queue to grow as before, it would get there; or that
// frames found no room, or that a port was paused, or will be.
func (e *engine) mustOrder(windows int64) bool {
	if !e.cfg.EventOrder {
		return false
	}
	look, sent, deepest := false, int64(0), 0.0
	for i := range e.workers {
		w := &e.workers[i]
		if w.Drops > 0 || w.Pauses > 0 {
			return true
		}
		look, sent, deepest = look || w.again, sent+w.sent, max(deepest, w.deepest)
		w.again = false
	}
	if look && (deepest > 1 || deepest*float64(e.frames) > float64(sent)) {
		return true
	}
	return windows >= 8 && windows&(windows-1) == 0 && slices.ContainsFunc(e.switches,
		func(s switchNode) bool {
			return s.Fills(e.frames, sent)
		})
}

// drawLosses draws which of the frames that arrive before end are lost, in the order of
// their arrival.
func (e *engine) drawLosses(end int64) {
	for i := range e.losses {
		e.losses[i].Draw(end, flagLost, &e.workers[0].Calendar, e.travel, func(id int32) (*fifo, float64) {
			return &e.links[id].Wire, e.links[id].Loss
		})
	}
}

// cut returns where a window must end so that it contains no change, after it
// has made those that are due.
func (e *engine) cut(now, end int64) int64 {
	if e.cfg.Buffer.Quanta > 0 {
		e.workers[0].Pauses += port.Renew(e.links, e.due, now)
	}
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
		e.links[2*f.Cable+k].Suffer(f, &c.Now, &e.cfg.CC, k, c.At)
	}
	if f.Down && f.Reroute && c.Begin {
		e.detour(f.Cable, c.At)
	}
	if f.Storm && !c.Begin {
		from := cable.A
		if f.Back {
			from = cable.B
		}
		if at := e.hostOf[from]; at >= 0 {
			e.hosts[at].Wake, e.acts[at] = c.At, min(e.acts[at], c.At)
		}
	}
}
