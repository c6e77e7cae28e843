package packet

// advance moves una.
func (s *sender) advance(to uint32) {
	if s.gapped {
		s.gaps.Advance(s.una, to)
	}
	s.una = to
}

// reported handles a report that a frame came out of order.
func (s *sender) reported(psn, reorder uint32) {
	if psn >= s.una && psn < s.nxt {
		s.gapped = true
		s.gaps.Came(psn, s.una, reorder)
	}
}

// overdue returns when the timeout of a host's flows may next end; never if
// none runs.
func (e *engine) overdue(h *host) int64 {
	t := never
	for _, id := range h.qps {
		if s := &e.snd[id]; s.una < s.nxt {
			t = min(t, s.moved+int64(e.cfg.Repair.Timeout))
		}
	}
	return t
}

// timeouts sends again what is overdue at a host.
func (e *engine) timeouts(w *worker, h *host, now int64) {
	c := &e.cfg.Repair
	for _, id := range h.qps {
		s := &e.snd[id]
		if s.una >= s.nxt || s.moved+int64(c.Timeout) > now {
			continue
		}
		w.timeouts++
		s.moved = now
		s.nextAvail = min(s.nextAvail, now)
		if s.retries++; c.Retries > 0 && s.retries > c.Retries {
			s.una, s.nxt, s.ended, s.ending = s.frames, s.frames, true, true // it sends no more
			h.over++
			e.result[id].Failed = true
			continue
		}
		e.lossSeen(id, s, now, s.retries)
		if c.Selective {
			s.gapped = true
			s.gaps.Lost(s.una, s.nxt)
			continue
		}
		w.retx += int64(s.nxt - s.una)
		s.resent += s.nxt - s.una
		s.nxt = s.una
	}
	h.timer = e.overdue(h)
}

// backTo is the frame to which a gap before psn leads back, in a flow of so many bytes.
func (e *engine) backTo(psn uint32, bytes int64) uint32 {
	return e.cfg.Repair.Back(psn, bytes, int64(e.cfg.Frames.Payload))
}
