package packet

import (
	"errors"
	"slices"

	"github.com/simccl/simccl/packet/internal/port"
	"github.com/simccl/simccl/packet/spec"
	"github.com/simccl/simccl/units"
)

// errOrder requests a restart that keeps the order of simultaneous events, as it has begun to matter.
var errOrder = errors.New("packet: the order of events counts")

// errAgain requests a restart with equal windows for all nodes: once frames are lost, sent again, or the run
// stops early, frames in flight at the end of a window affect the result.
var errAgain = errors.New("packet: where windows end counts")

// mustOrder reports whether the result could depend on the order of simultaneous events: a frame was dropped,
// a port paused, or the deepest queue, grown in proportion to the frames still to send, would reach the
// marking threshold or fill the buffer.
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

// drawLosses draws which of the frames that arrive before end (ps) are lost, in the order of arrival, as ns-3
// does: all losses come from one random stream.
func (e *engine) drawLosses(end int64) {
	for i := range e.losses {
		e.losses[i].Draw(end, flagLost, &e.workers[0].Calendar, e.travel, func(id int32) (*fifo, float64) {
			return &e.links[id].Wire, e.links[id].Loss
		})
	}
}

// windowEnd applies the fault changes that are due and returns end, or the time of the next change if that is
// earlier, so that no window contains a change.
func (e *engine) windowEnd(now, end int64) int64 {
	if e.cfg.Buffer.Quanta > 0 {
		e.workers[0].Pauses += port.Renew(e.links, e.due, now)
	}
	for len(e.changes) > 0 && e.changes[0].At <= now {
		e.applyFault(e.changes[0])
		e.changes = e.changes[1:]
	}
	if len(e.changes) > 0 {
		end = min(end, e.changes[0].At)
	}
	if e.samples != nil {
		end = int64(e.samples.Before(units.Time(end)))
	}
	return end
}

// applyFault begins or ends a fault on both directions of its cable.
func (e *engine) applyFault(c spec.Change) {
	f := &e.cfg.Faults[c.Fault]
	cable := &e.net.Cables[f.Cable]
	for k := range 2 {
		e.links[2*f.Cable+k].SetCondition(f, &c.Now, &e.cfg.CC, k, c.At)
	}
	if f.Down && f.Reroute && c.Begin {
		e.rerouteAround(f.Cable, c.At)
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
