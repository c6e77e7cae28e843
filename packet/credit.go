package packet

// Links with credits, as InfiniBand has them: a frame starts only if the buffer at the other end has room for
// the whole frame; a departing frame's room is reported to the sender one link delay after its departure.
// There are no pauses, thresholds or drops. Control frames (class 0) need no credit, as on VL15.

// credited adds credits that a neighbour returned to an egress port, and starts a frame that waited for them.
func (e *engine) credited(w *worker, s *switchNode, f *frame) {
	e.noteRoot(w, e.nodeRoot(s.node))
	l := &e.links[s.out[f.Tag]]
	l.Credit[f.Class] += int64(f.Size)
	e.gate(l, f.At)
	if s.starts.Update(l); l.Waiting&^l.Paused != 0 && l.Free < f.At {
		e.dequeue(w, s, l, f.At)
	}
}

// gate blocks the classes of a link whose next frame lacks credit.
func (e *engine) gate(l *link, at int64) {
	if l.Gate(int64(e.cfg.Frames.Most()), at) && l.Queues == nil && !e.hosts[e.hostOf[l.From]].Wants(e.snd) {
		l.Stats.Since = -1
	}
}
