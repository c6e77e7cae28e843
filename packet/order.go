package packet

import (
	"github.com/simccl/simccl/packet/internal/port"
	"github.com/simccl/simccl/packet/internal/tiebreak"
)

// With Config.EventOrder, simultaneous events happen in the order in which they were scheduled (package
// tiebreak).

// travel returns the transmission time and delay of a frame on a link, in ps.
func (e *engine) travel(id int32, size uint16) int64 {
	return e.links[id].Travel(e.cfg, size, e.full, e.ack)
}

// noteArrival sets the present event to the arrival of a frame whose transmission has number n. Events that
// are scheduled from now on are ordered after it.
func (e *engine) noteArrival(w *worker, n tiebreak.Number) {
	if e.ordered {
		w.SetCause(n)
	}
}

// noteHostArrival is noteArrival for a frame at a host.
func (e *engine) noteHostArrival(w *worker, h *host, f *frame) {
	if e.ordered {
		w.SetCause(tiebreak.Number(f.Tag))
		w.since, w.link, w.size = f.At, h.in, f.Size
	}
}

// noteCompletion sets the present event to the end of the transmission on l.
func (e *engine) noteCompletion(w *worker, l *link) {
	if e.ordered {
		w.SetCause(l.Begun)
		w.since, w.size = l.Start, 0
	}
}

// noteWakeup sets the present event to the end of a host's pacing gap.
func (e *engine) noteWakeup(w *worker, h *host) {
	if p := &h.Pacing; e.ordered {
		w.Wakes(p.Number, p.Place)
		w.since, w.size = p.At, 0
	}
}

// noteFlowStart sets the present event to the start of a flow, which comes after all other events scheduled
// for that time.
func (e *engine) noteFlowStart(w *worker, flow int32, now int64) {
	e.noteRoot(w, e.starts.Of(flow))
	if e.ordered {
		w.SetCause(w.Slept(now))
		w.since = now
	}
}

// recordEnding records that a flow ends with the arrival of acknowledgement f.
func (e *engine) recordEnding(w *worker, s *sender, f *frame) {
	in := e.hosts[e.hostOf[e.flows[f.Flow].Src]].in
	w.ended = append(w.ended, ending{Flow: f.Flow, At: f.At, Travels: e.travel(in, f.Size),
		Began: tiebreak.Number(f.Tag)})
	if s.Ending = true; e.cfg.Repair.Stubborn() {
		s.Moved = f.At
	}
}

// noteRoot sets the present event to one without a cause in the network: a node's own action or the start of
// a flow.
func (e *engine) noteRoot(w *worker, root int) {
	w.By, w.since, w.size = tiebreak.Root(int32(root)), -never, 0
}

// nodeRoot returns the root number of a node's own actions, among them returning credits.
func (e *engine) nodeRoot(node int32) int { return len(e.flows) + int(node) }

// leadTime returns how long before now, in ps, the present event was scheduled. Without the order of events
// it is longer than any timer, so that the event precedes a timer of the same instant.
func (e *engine) leadTime(w *worker, now int64) int64 {
	switch {
	case !e.ordered || w.since == -never:
		return never
	case w.size > 0:
		return e.travel(w.link, w.size)
	}
	return now - w.since
}

// ownFirst reports whether a host's own event (end of transmission if ended is true, else pacing) precedes
// the arrival of f at the same instant.
func (e *engine) ownFirst(w *worker, h *host, l *link, f *frame, ended bool) bool {
	return h.OwnFirst(w.order, l, e.travel(h.in, f.Size), f, ended)
}

// settleTie handles a port whose transmission ends at the instant at which f arrives: if that end was
// scheduled first, the port starts its next frame or becomes free before f is handled.
func (e *engine) settleTie(w *worker, s *switchNode, l *link, f *frame, n tiebreak.Number) {
	switch {
	case !l.EndsFirst(w.order, e.travel(s.in[f.Tag], f.Size), n):
	case l.Waiting&^l.Paused == 0:
		l.Free--
	default:
		e.noteCompletion(w, l)
		e.dequeue(w, s, l, l.Free)
	}
}

// entry returns the ingress port of the i-th arrival.
func (s *switchNode) entry(e *engine, i int) uint32 {
	if e.ordered {
		return uint32(s.from[i])
	}
	return s.arrived[i].Tag
}

// enter returns the i-th arrival, with the ingress port as its tag, and the transmission number that the tag
// held before.
func (s *switchNode) enter(e *engine, i uint64) (*frame, tiebreak.Number) {
	f := &s.arrived[i]
	n := tiebreak.Number(f.Tag)
	if e.ordered {
		f.Tag = uint32(s.from[i])
	}
	return f, n
}

// orderTies sorts keys of equal times by the order of events.
func (e *engine) orderTies(w *worker, s *switchNode, a []uint64) {
	if t := &w.ties; len(a) > 1 {
		t.In, t.Arrived, t.From, t.Uniform = s.in, s.arrived, s.from, s.uniform
		t.Untie(a)
	}
}

// notePacing records when a host began to wait for pacing; ties with its wake-up are decided by that time.
func (e *engine) notePacing(w *worker, h *host, now int64) {
	if e.ordered {
		h.Pacing = port.PacingPlan{At: now, Number: w.Slept(now)}
	}
}

// skipDraw draws and drops a number: ns-3 draws one for each PFC frame too, and the random streams must stay
// equal.
func (e *engine) skipDraw(w *worker, at int64, pause bool) {
	if e.ordered && e.streams != nil {
		w.Skip(at, pause)
	}
}

// openCalendars makes the workers' calendars and the ranker that orders their events after each window.
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
	e.ranker.Open(all, e.lookahead, port.Horizon(e.links, e.cfg, e.lookahead-e.lag), len(e.flows)+e.net.Nodes)
	e.ranker.Marked, e.ranker.Skipped, e.ranker.Pauses = e.drawMark, e.streams.Skip, e.pauses
}

// pauses calls each for every open pacing gap of a host.
func (e *engine) pauses(each func(n *tiebreak.Number, place *uint64)) {
	for i := range e.hosts {
		if h := &e.hosts[i]; h.Wake > 0 {
			each(&h.Pacing.Number, &h.Pacing.Place)
		}
	}
}

// drawMark draws the ECN mark of a frame that started in this window from the one stream that all links
// share, in the order of events.
func (e *engine) drawMark(link int32, wire uint32, p float64) {
	if e.streams.Draw() < p {
		l := &e.links[link]
		if !e.ranker.Wait { // else the frame may have arrived already, and no sender reacts to its mark
			l.Wire.Buf[wire&uint32(len(l.Wire.Buf)-1)].Flags |= flagCE
		}
		e.workers[0].Marks++
		l.Stats.Marks++
	}
}
