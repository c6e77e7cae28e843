package packet

import (
	"github.com/simccl/simccl/packet/internal/port"
	"github.com/simccl/simccl/packet/internal/tiebreak"
)

// With Config.EventOrder what happens at one instant happens in the order in which it
// was planned (package tiebreak).

// travel is how long, in ps, a frame is on its way over a link.
func (e *engine) travel(id int32, size uint16) int64 {
	return e.links[id].Travel(e.cfg, size, e.full, e.ack)
}

// arrived reports whether a frame arrives that began under a number.
func (e *engine) arrived(w *worker, n tiebreak.Number) {
	if e.ordered {
		w.Happens(n)
	}
}

// came reports whether a frame arrives at a host.
func (e *engine) came(w *worker, h *host, f *frame) {
	if e.ordered {
		w.Happens(tiebreak.Number(f.Tag))
		w.since, w.link, w.size = f.At, h.in, f.Size
	}
}

// completed reports whether the frame in transmission ends.
func (e *engine) completed(w *worker, l *link) {
	if e.ordered {
		w.Happens(l.Begun)
		w.since, w.size = l.Start, 0
	}
}

// woken reports whether a pause of pacing ends.
func (e *engine) woken(w *worker, h *host) {
	if p := &h.Pacing; e.ordered {
		w.Wakes(p.Number, p.Place)
		w.since, w.size = p.At, 0
	}
}

// begins reports whether a flow starts: after all that was planned before for that time.
func (e *engine) begins(w *worker, flow int32, now int64) {
	e.started(w, e.starts.Of(flow))
	if e.ordered {
		w.Happens(w.Slept(now))
		w.since = now
	}
}

// ends reports whether a flow ends with an acknowledgement.
func (e *engine) ends(w *worker, s *sender, f *frame) {
	in := e.hosts[e.hostOf[e.flows[f.Flow].Src]].in
	w.ended = append(w.ended, ending{Flow: f.Flow, At: f.At, Travels: e.travel(in, f.Size),
		Began: tiebreak.Number(f.Tag)})
	if s.Ending = true; e.cfg.Repair.Stubborn() {
		s.Moved = f.At
	}
}

// started reports whether a host or a switch does something of its own, or a flow.
func (e *engine) started(w *worker, root int) {
	w.By, w.since, w.size = tiebreak.Root(int32(root)), -never, 0
}

// itself is the root of what a node does of its own, or as credits come back, which have no number.
func (e *engine) itself(node int32) int { return len(e.flows) + int(node) }

// notice is for how long, in ps, the present event was planned; without EventOrder longer
// than any timer.
func (e *engine) notice(w *worker, now int64) int64 {
	switch {
	case !e.ordered || w.since == -never:
		return never
	case w.size > 0:
		return e.travel(w.link, w.size)
	}
	return now - w.since
}

// ownFirst reports whether a host's transmission ends, or else its pacing, before a frame that comes at that
// instant.
func (e *engine) ownFirst(w *worker, h *host, l *link, f *frame, ended bool) bool {
	return h.OwnFirst(w.order, l, e.travel(h.in, f.Size), f, ended)
}

// end lets a port whose frame ends when another comes end it before that, if it is to: it starts the next,
// or is free from then on.
func (e *engine) end(w *worker, s *switchNode, l *link, f *frame, n tiebreak.Number) {
	switch {
	case !l.EndsFirst(w.order, e.travel(s.in[f.Tag], f.Size), n):
	case l.Waiting&^l.Paused == 0:
		l.Free--
	default:
		e.completed(w, l)
		e.dequeue(w, s, l, l.Free)
	}
}

// entry is the port by which a frame arrived at a switch.
func (s *switchNode) entry(e *engine, i int) uint32 {
	if e.ordered {
		return uint32(s.from[i])
	}
	return s.arrived[i].Tag
}

// enter takes a frame that arrived at a switch: its tag becomes the port by which it came; it
// returns what it was.
func (s *switchNode) enter(e *engine, i uint64) (*frame, tiebreak.Number) {
	f := &s.arrived[i]
	n := tiebreak.Number(f.Tag)
	if e.ordered {
		f.Tag = uint32(s.from[i])
	}
	return f, n
}

// untie puts keys of frames of equal times in the order of events.
func (e *engine) untie(w *worker, s *switchNode, a []uint64) {
	if t := &w.ties; len(a) > 1 {
		t.In, t.Arrived, t.From, t.Uniform = s.in, s.arrived, s.from, s.uniform
		t.Untie(a)
	}
}

// await records a host that waits for its pacing from now on.
func (e *engine) await(w *worker, h *host, now int64) {
	if e.ordered {
		h.Pacing = port.PacingPlan{At: now, Number: w.Slept(now)}
	}
}

// skip records a number that is drawn for a PFC frame.
func (e *engine) skip(w *worker, at int64, pause bool) {
	if e.ordered && e.streams != nil {
		w.Skip(at, pause)
	}
}

// openCalendars makes the calendars of all workers.
func (e *engine) openCalendars() {
	var all []*tiebreak.Calendar
	for i := range e.workers {
		w := &e.workers[i]
		w.order, all = &w.Calendar, append(all, &w.Calendar)
		w.ties = port.Ties{Config: e.cfg, Calendar: w.order, Links: e.links, Full: e.full, Ack: e.ack}
	}
	for i := range e.switches {
		e.switches[i].uniform = len(e.cfg.Faults) == 0 && port.Uniform(e.links, e.switches[i].in)
	}
	e.ranker.Open(all, e.look, port.Horizon(e.links, e.cfg, e.look-e.lag), len(e.flows)+e.net.Nodes)
	e.ranker.Marked, e.ranker.Skipped, e.ranker.Pauses = e.drawMark, e.streams.Skip, e.pauses
}

// pauses goes through the pauses of pacing that last.
func (e *engine) pauses(each func(n *tiebreak.Number, place *uint64)) {
	for i := range e.hosts {
		if h := &e.hosts[i]; h.Wake > 0 {
			each(&h.Pacing.Number, &h.Pacing.Place)
		}
	}
}

// drawMark draws whether a frame is marked that began in this window.
func (e *engine) drawMark(link int32, wire uint32, p float64) {
	if e.streams.Draw() < p {
		l := &e.links[link]
		if !e.ranker.Wait { // else it may have arrived, and no sender minds
			l.Wire.Buf[wire&uint32(len(l.Wire.Buf)-1)].Flags |= flagCE
		}
		e.workers[0].Marks++
		l.Stats.Marks++
	}
}
